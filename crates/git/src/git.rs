//! git in a directory: a clean environment, no hooks, bounded in time and output.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{BoxFuture, Oid, Timestamp};
use rehearsal_process::{Command, Input, Keep, Output, RunError};

use crate::GitError;

/// One call of git on this machine. A checkout of 50,000 files takes seconds, and a disk that stalls was seen to
/// make it 17 times that; what takes longer hangs.
const LOCAL_LIMIT: Duration = Duration::from_secs(300);

/// One call that talks to a remote: a first fetch of a large repository takes minutes.
const REMOTE_LIMIT: Duration = Duration::from_secs(600);

/// The most that is read of an answer. A list of 100,000 file names has about 6 MiB.
const MAX_OUTPUT: usize = 64 << 20;

/// How much of what git printed is kept in an error: the reason is at its end.
const MAX_REASON: usize = 16 << 10;

/// Set for every call. What an agent wrote into the repository's configuration must not make us run a program, and
/// what a user likes for work by hand must not make us wait for a person.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "push.followTags=false",
    "rebase.autoStash=false",
    "rebase.updateRefs=false",
    "rerere.enabled=false",
    "merge.conflictStyle=merge",
    // As many as there are cores: half the time of a large checkout.
    "checkout.workers=0",
    "advice.detachedHead=false",
];

/// Where git is asked to work, how long it may take, and as whom it commits.
#[derive(Debug, Clone)]
pub struct Git {
    dir: Utf8PathBuf,
    limit: Duration,
    identity: Option<Identity>,
    is_isolated: bool,
    held: Option<Arc<File>>,
    date: Option<Timestamp>,
    index: Option<Utf8PathBuf>,
}

/// Who commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: &'static str,
    /// The address.
    pub email: &'static str,
}

/// Who commits where the user has not said who they are.
const OURS: Identity = Identity { name: "Rehearsal", email: "rehearsal@localhost" };

/// The answer to a question that git answers by its exit status.
#[derive(Debug)]
pub struct Answer {
    /// Exit status 0 is yes, 1 is no.
    pub yes: bool,
    /// What git printed.
    pub stdout: Vec<u8>,
}

/// The beginning of what git printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// As much as was asked for.
    pub text: String,
    /// Whether there was more.
    pub is_cut: bool,
}

impl Git {
    /// git in a directory, for work on this machine.
    pub fn at(dir: impl Into<Utf8PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            limit: LOCAL_LIMIT,
            identity: None,
            is_isolated: false,
            held: None,
            date: None,
            index: None,
        }
    }

    /// The same, with this date for commits.
    pub fn dated(self, date: Timestamp) -> Self {
        Self { date: Some(date), ..self }
    }

    /// The same, with another index than the working tree's.
    pub fn with_index(&self, index: Utf8PathBuf) -> Self {
        Self { index: Some(index), ..self.clone() }
    }

    /// The same, with another time limit.
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The same, with the time limit that a remote needs.
    pub fn remotely(&self) -> Self {
        self.clone().within(REMOTE_LIMIT)
    }

    /// The same, independent of how git is set up on this machine; commits by this identity.
    pub fn isolated(self, identity: Identity) -> Self {
        Self { is_isolated: true, identity: Some(identity), ..self }
    }

    /// The same for a repository that only we use; commits in our name.
    pub fn scratch(self) -> Self {
        self.isolated(OURS)
    }

    /// The same, holding a locked file for as long as git runs: a git that outlives us keeps the lock.
    pub fn holding(&self, lock: Arc<File>) -> Self {
        Self { held: Some(lock), ..self.clone() }
    }

    /// The same, able to commit: in the user's name, or in ours if git knows none.
    pub async fn committing(&self) -> Result<Self, GitError> {
        let known = self.end(&["var", "GIT_COMMITTER_IDENT"], &[], WHOLE).await?.status.success();
        Ok(Self { identity: if known { None } else { Some(OURS) }, ..self.clone() })
    }

    /// The variables that make any program commit as [`committing`](Self::committing) does: not every agent's shell reads the
    /// user's configuration.
    pub async fn identity_variables(&self) -> Result<Vec<(String, String)>, GitError> {
        let output = self.end(&["var", "GIT_COMMITTER_IDENT"], &[], WHOLE).await?;
        let said = String::from_utf8_lossy(&output.stdout);
        let known = said.split_once(" <").and_then(|(name, rest)| Some((name, rest.split_once('>')?.0)));
        let (name, email) = known.filter(|_| output.status.success()).unwrap_or((OURS.name, OURS.email));
        let variables = [
            ("GIT_AUTHOR_NAME", name),
            ("GIT_AUTHOR_EMAIL", email),
            ("GIT_COMMITTER_NAME", name),
            ("GIT_COMMITTER_EMAIL", email),
        ];
        Ok(variables.map(|(variable, value)| (variable.to_owned(), value.to_owned())).into())
    }

    /// Where it works.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Runs it; its standard output.
    pub async fn run(&self, args: &[&str]) -> Result<Vec<u8>, GitError> {
        self.feed(args, &[]).await
    }

    /// Runs it with something on its standard input; its standard output.
    pub async fn feed(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, GitError> {
        let output = self.end(args, input, WHOLE).await?;
        if output.status.success() { Ok(output.stdout) } else { Err(self.failed(args, &output)) }
    }

    /// Runs it for the beginning of what it prints: no more than this many bytes.
    pub async fn head(&self, args: &[&str], most: usize) -> Result<Head, GitError> {
        let output = self.end(args, &[], Keep::Head(most)).await?;
        if !output.is_cut && !output.status.success() {
            return Err(self.failed(args, &output));
        }
        Ok(Head { text: String::from_utf8_lossy(&output.stdout).into_owned(), is_cut: output.is_cut })
    }

    /// Runs it; its output as text without the end of the last line.
    pub async fn line(&self, args: &[&str]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.run(args).await?).trim_end().to_owned())
    }

    /// Runs it for the id of an object.
    pub async fn oid(&self, args: &[&str]) -> Result<Oid, GitError> {
        parse_oid(&self.line(args).await?, args)
    }

    /// The commit that a revision stands for.
    pub async fn commit(&self, revision: &str) -> Result<Oid, GitError> {
        self.find_commit(revision)
            .await?
            .ok_or_else(|| GitError::UnknownRevision { revision: revision.to_owned() })
    }

    /// The commit that a revision stands for; none if there is no such commit.
    pub async fn find_commit(&self, revision: &str) -> Result<Option<Oid>, GitError> {
        let commit = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let found = self.ask(&args).await?;
        let text = String::from_utf8_lossy(&found.stdout);
        if found.yes { parse_oid(text.trim_end(), &args).map(Some) } else { Ok(None) }
    }

    /// The short name of the branch that a symbolic reference stands for.
    pub async fn symbolic(&self, reference: &str) -> Result<Option<String>, GitError> {
        let found = self.ask(&["symbolic-ref", "--quiet", "--short", reference]).await?;
        let branch = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        Ok(Some(branch).filter(|branch| found.yes && !branch.is_empty()))
    }

    /// The branch that work usually goes into: the remote's default (`origin/main`), else `main` or `master`.
    pub async fn default_base(&self) -> Result<Option<String>, GitError> {
        if let Some(remote) = self.symbolic("refs/remotes/origin/HEAD").await? {
            return Ok(Some(remote));
        }
        for name in ["main", "master"] {
            if self.find_commit(&format!("refs/heads/{name}")).await?.is_some() {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }

    /// Whether a commit is in the history of another.
    pub async fn is_ancestor(&self, ancestor: &Oid, of: &Oid) -> Result<bool, GitError> {
        Ok(self.ask(&["merge-base", "--is-ancestor", ancestor.as_str(), of.as_str()]).await?.yes)
    }

    /// Runs what answers yes or no by its exit status.
    pub async fn ask(&self, args: &[&str]) -> Result<Answer, GitError> {
        let output = self.end(args, &[], WHOLE).await?;
        match output.status.code() {
            Some(code @ (0 | 1)) => Ok(Answer { yes: code == 0, stdout: output.stdout }),
            _ => Err(self.failed(args, &output)),
        }
    }

    fn end<'a>(
        &'a self,
        args: &'a [&'a str],
        input: &'a [u8],
        keep: Keep,
    ) -> BoxFuture<'a, Result<Output, GitError>> {
        Box::pin(async move {
            let command = || shown(args);
            let held = self.held.as_ref().map(|file| file.try_clone()).transpose();
            let input = match held.map_err(GitError::io("hand a lock to git"))? {
                Some(file) if input.is_empty() => Input::Held(file),
                _ if input.is_empty() => Input::Empty,
                _ => Input::Bytes(input.to_vec()),
            };
            let run = self.command(args).input(input).keep(keep).limit(self.limit).run();
            run.await.map_err(|error| match error {
                RunError::Io(error) if error.kind() == io::ErrorKind::NotFound && self.dir.is_dir() => {
                    GitError::Missing
                }
                RunError::Io(source) => {
                    GitError::Io { what: format!("run `git {}` in `{}`", command(), self.dir), source }
                }
                RunError::TimedOut => {
                    GitError::TimedOut { command: command(), seconds: self.limit.as_secs() }
                }
                RunError::TooMuch => GitError::TooMuch { command: command() },
            })
        })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = without_git_variables(Command::new(program(), &self.dir))
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            .args(args)
            .env("GIT_OPTIONAL_LOCKS", "0")
            // A replacement shows one object in place of another.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            // Nobody is there to be asked: neither on a terminal, nor by a window of `core.askPass`, nor by ssh.
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS", "false")
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("LC_ALL", "C");
        if self.is_isolated {
            command = command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        }
        if let Some(Identity { name, email }) = self.identity {
            command = command.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email);
            command = command.env("GIT_COMMITTER_NAME", name).env("GIT_COMMITTER_EMAIL", email);
        }
        if let Some(index) = &self.index {
            command = command.env("GIT_INDEX_FILE", index);
        }
        if let Some(date) = self.date {
            let date = format!("@{} +0000", date.0 / 1000);
            command = command.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        }
        command
    }

    fn failed(&self, args: &[&str], output: &Output) -> GitError {
        // Some say why on standard output, as `git commit` does where there is nothing to commit.
        let stdout = String::from_utf8_lossy(&output.stdout);
        let status = output.status.to_string();
        let said = [output.stderr.trim(), stdout.trim(), &status];
        let said = said.into_iter().find(|said| !said.is_empty()).unwrap_or_default();
        let from = said.ceil_char_boundary(said.len().saturating_sub(MAX_REASON));
        GitError::read(shown(args), &said[from..], &self.dir)
    }
}

const WHOLE: Keep = Keep::Whole(MAX_OUTPUT);

/// The same command without the variables that turn git to another repository (`GIT_DIR`), another index
/// (`GIT_INDEX_FILE`) or another program (`GIT_EXTERNAL_DIFF`): all that begin with `GIT_`. For git, and for every
/// program that calls git.
pub fn without_git_variables(command: Command) -> Command {
    std::env::vars_os()
        .filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
        .fold(command, |command, (name, _)| command.env_remove(name))
}

/// The texts between NUL bytes.
pub fn split_nul(bytes: &[u8]) -> impl Iterator<Item = String> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty())
        .map(|part| String::from_utf8_lossy(part).into_owned())
}

/// The id in what a call of git printed.
pub fn parse_oid(text: &str, args: &[&str]) -> Result<Oid, GitError> {
    Oid::new(text).map_err(|_| GitError::Unexpected { command: shown(args), said: text.to_owned() })
}

/// How a call is named in an error: its subcommand and first argument, without our own options.
fn shown(args: &[&str]) -> String {
    args.iter().take(2).copied().collect::<Vec<_>>().join(" ")
}

/// Where git is, looked up once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| which::which("git").unwrap_or_else(|_| PathBuf::from("git")))
}
