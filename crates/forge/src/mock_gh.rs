//! The stand-in for GitHub's program: `rehearsal mock-gh`, or this binary linked as `gh`.
//!
//! With `GH_STATE_FILE` it remembers pull requests, and where `origin` is a directory it looks at the branches there
//! and really merges. Without, every call stands alone and answers for one pull request. `GH_MOCK_PR_NUMBER`,
//! `GH_MOCK_MERGE_STATUS`, `GH_MOCK_MERGE_FAIL`, `GH_MOCK_CREATE_FAIL`, `GH_MOCK_PR_EXISTS` and `GH_MOCK_CHECKS` say how it
//! answers; `GH_MOCK_LOG` names a file that gets a line of JSON for each call. Faults are in the state file.
//!
//! **Invariant:** it is loud. What it does not know, it refuses, with what it does know.

mod api;
mod arguments;
mod checks;
mod installed;
mod pull_request;
mod shown;
mod state;
mod upstream;

use std::collections::BTreeMap;
use std::io::{Read, Write};

use camino::Utf8PathBuf;
use serde::Serialize;

use arguments::{Arguments, Verb};
use rehearsal_git::GitError;
use state::{Kept, Memory};
use upstream::Upstream;

pub use installed::InstalledGh;
pub use state::{Fault, FaultKind, MockChecks, MockPullRequest, MockRemark, MockState, PullRequestState};

/// The world around the stand-in, taken once.
#[derive(Debug, Clone)]
pub struct MockGhEnv {
    /// The environment's variables.
    pub vars: BTreeMap<String, String>,
    /// The working directory.
    pub dir: Utf8PathBuf,
}

impl MockGhEnv {
    /// A variable that is set and not empty.
    fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a variable says yes, as the shell scripts of old said it.
    fn flag(&self, name: &str) -> bool {
        self.var(name) == Some("true") || self.var(name) == Some("1")
    }
}

/// What a call says, and how it ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Reply {
    stdout: String,
    stderr: String,
    code: u8,
}

impl Reply {
    fn says(text: impl Into<String>) -> Self {
        Self { stdout: text.into(), ..Self::default() }
    }

    fn fails(text: impl Into<String>) -> Self {
        Self { stderr: text.into(), code: 1, ..Self::default() }
    }
}

/// Why the stand-in itself cannot go on. A refusal that GitHub would give too is a [`Reply`].
#[derive(Debug, thiserror::Error)]
enum MockGhError {
    #[error("{0}")]
    Usage(String),
    #[error("cannot use `{path}`: {reason}")]
    File { path: Utf8PathBuf, reason: String },
    #[error(transparent)]
    Git(#[from] GitError),
}

#[derive(Debug, Serialize)]
struct LogLine<'a> {
    args: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    input: &'a str,
    exit: u8,
}

/// One call: what its verbs need.
struct Call<'a> {
    env: &'a MockGhEnv,
    arguments: Arguments,
    input: String,
    upstream: Option<Upstream>,
}

/// Plays one call of `gh` and returns its exit status. Reads standard input only where `gh` would.
pub fn run(
    args: &[String],
    env: &MockGhEnv,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    let mut input = String::new();
    let reply = play(args, env, stdin, &mut input).unwrap_or_else(|error| {
        let told = format!("mock-gh: {error}");
        Reply { stderr: told, code: 2, ..Reply::default() }
    });
    let reply = match log(args, env, &input, reply.code) {
        Ok(()) => reply,
        Err(error) => Reply { stderr: format!("mock-gh: {error}"), code: 2, ..reply },
    };
    // Nobody is left to tell if this fails.
    let _ = say(stdout, &reply.stdout).and_then(|()| say(stderr, &reply.stderr));
    reply.code
}

fn say(to: &mut dyn Write, text: &str) -> std::io::Result<()> {
    if text.is_empty() { Ok(()) } else { writeln!(to, "{text}") }
}

fn play(
    args: &[String],
    env: &MockGhEnv,
    stdin: &mut dyn Read,
    input: &mut String,
) -> Result<Reply, MockGhError> {
    let arguments = Arguments::parse(args).map_err(MockGhError::Usage)?;
    if arguments.value("body-file") == Some("-") {
        let cannot =
            |error: std::io::Error| MockGhError::Usage(format!("cannot read standard input: {error}"));
        stdin.read_to_string(input).map_err(cannot)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| MockGhError::Usage(error.to_string()))?;
    runtime.block_on(async {
        let mut memory = Memory::open(env)?;
        let known = memory.state.origin.as_deref();
        let upstream = if memory.is_kept() { Upstream::of(&env.dir, known).await } else { None };
        let call = Call { env, arguments, input: input.clone(), upstream };
        let reply = call.answer_with_faults(&mut memory).await?;
        memory.save()?;
        Ok(reply)
    })
}

impl Call<'_> {
    async fn answer_with_faults(&self, memory: &mut Memory) -> Result<Reply, MockGhError> {
        let Some(fault) = memory.state.next_fault(self.arguments.verb.name()) else {
            return self.answer(memory).await;
        };
        if fault.kind == FaultKind::ServerErrorAfter {
            self.answer(memory).await?;
        }
        Ok(Reply::fails(fault.words()))
    }

    async fn answer(&self, memory: &mut Memory) -> Result<Reply, MockGhError> {
        let kept = memory.kept();
        let state = &mut memory.state;
        match self.arguments.verb {
            Verb::PrCreate => self.create(state, kept).await,
            Verb::PrView => self.view(state, kept).await,
            Verb::PrList => self.list(state).await,
            Verb::PrChecks => self.pr_checks(state, kept).await,
            Verb::PrReview => self.review(state, kept),
            Verb::PrComment => self.comment(state, kept),
            Verb::PrMerge => self.merge(state, kept).await,
            Verb::PrClose => self.close(state, kept).await,
            Verb::PrEdit => self.edit(state, kept),
            Verb::Api => self.api(state),
            Verb::AuthStatus => {
                Ok(Reply::says("github.com\n  ✓ Logged in to github.com account mock (GH_TOKEN)"))
            }
            Verb::Version => Ok(Reply::says("gh version 2.63.0 (stand-in)")),
        }
    }
}

/// The log gets whole lines, whoever else writes to it.
fn log(args: &[String], env: &MockGhEnv, input: &str, exit: u8) -> Result<(), MockGhError> {
    let Some(path) = env.var("GH_MOCK_LOG") else { return Ok(()) };
    let path = env.dir.join(path);
    let cannot = |reason: String| MockGhError::File { path: path.clone(), reason };
    let line =
        serde_json::to_string(&LogLine { args, input, exit }).map_err(|error| cannot(error.to_string()))?;
    let file = fs_err::OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .map_err(|error| cannot(error.to_string()))
}

/// Whether state lasts from one call to the next.
fn is_kept(kept: Kept) -> bool {
    kept == Kept::Yes
}
