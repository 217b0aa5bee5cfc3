//! git, called in one way: a clean environment, hooks off, bounded in time and output, errors with a type.

mod batch;
mod loose;
mod object;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::process::Command;

use rehearsal_core::Timestamp;

use crate::child::{self, ChildError, Ended, Input};
use crate::lock::FileLock;
use crate::policy::{LOCAL_LIMIT, REMOTE_LIMIT};

pub(crate) use loose::Told;
pub(crate) use object::CommitObject;
use object::LooseObjects;

/// Set for every call. What an agent wrote into the repository's configuration must not make us run a program, and
/// what a user likes for work by hand must not make us wait for a hand.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
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

/// Where git is asked to work, and how long it may take.
#[derive(Debug, Clone)]
pub struct Git {
    dir: Utf8PathBuf,
    limit: Duration,
    identity: Option<&'static Identity>,
    held: Option<Arc<std::fs::File>>,
    date: Option<Timestamp>,
}

/// Why git could not do it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git was not found")]
    Missing,
    /// The directory is in no repository.
    #[error("`{dir}` is not in a git repository")]
    NotARepository {
        /// Which directory.
        dir: Utf8PathBuf,
    },
    /// git said no.
    #[error("`git {command}` failed: {stderr}")]
    Failed {
        /// What it was to do.
        command: String,
        /// What it said.
        stderr: String,
    },
    /// Another git is at work, or one that was killed left its lock.
    #[error("`git {command}` found the lock `{lock}`")]
    LockHeld {
        /// What it was to do.
        command: String,
        /// The lock file, as git names it.
        lock: Utf8PathBuf,
    },
    /// git did not come back.
    #[error("`git {command}` took longer than {seconds} s")]
    TimedOut {
        /// What it was to do.
        command: String,
        /// How long we waited.
        seconds: u64,
    },
    /// git said more than we read.
    #[error("`git {command}` said too much")]
    TooMuch {
        /// What it was to do.
        command: String,
    },
    /// git said something that we do not understand.
    #[error("`git {command}` said `{said}`, which was not expected")]
    Unexpected {
        /// What it was to do.
        command: String,
        /// What it said.
        said: String,
    },
    /// git could not be started, or a file of its could not be used.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl GitError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// A commit's, a tree's or a blob's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

/// A text that names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the full name of a git object")]
pub struct NotAnOid(String);

impl Oid {
    /// Checks the text: 40 or 64 hexadecimal digits, and not all zero, which git uses for no object.
    pub fn new(text: &str) -> Result<Self, NotAnOid> {
        let hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let zero = text.bytes().all(|byte| byte == b'0');
        if matches!(text.len(), 40 | 64) && hex && !zero {
            return Ok(Self(text.to_owned()));
        }
        Err(NotAnOid(text.chars().take(80).collect()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for Oid {
    type Error = NotAnOid;
    fn try_from(text: String) -> Result<Self, NotAnOid> {
        Self::new(&text)
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> String {
        oid.0
    }
}

/// The answer to a question that git answers by its exit status.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 is yes, 1 is no.
    pub(crate) yes: bool,
    pub(crate) stdout: Vec<u8>,
}

/// Who commits where the user has not said who they are.
#[derive(Debug)]
struct Identity {
    name: &'static str,
    email: &'static str,
}

const OURS: Identity = Identity { name: "Rehearsal", email: "rehearsal@localhost" };

impl Git {
    /// git in a directory, for work on this machine.
    pub fn at(dir: impl Into<Utf8PathBuf>) -> Self {
        Self { dir: dir.into(), limit: LOCAL_LIMIT, identity: None, held: None, date: None }
    }

    /// The same, with commits dated so.
    pub fn dated(self, date: Timestamp) -> Self {
        Self { date: Some(date), ..self }
    }

    /// The same with the patience that a remote needs.
    pub(crate) fn remotely(&self) -> Self {
        Self { limit: REMOTE_LIMIT, ..self.clone() }
    }

    /// The same, keeping a lock for as long as git runs: one that outlives us does not work without it.
    pub(crate) fn holding(&self, lock: &FileLock) -> Self {
        Self { held: Some(lock.file()), ..self.clone() }
    }

    /// The same, able to commit: by the user's name, and by ours where git knows none.
    pub(crate) async fn committing(&self) -> Result<Self, GitError> {
        let known = self.end(&["var", "GIT_COMMITTER_IDENT"], &[]).await?.status.success();
        Ok(Self { identity: if known { None } else { Some(&OURS) }, ..self.clone() })
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
        let ended = self.end(args, input).await?;
        if ended.status.success() { Ok(ended.stdout) } else { Err(self.failed(args, &ended)) }
    }

    /// Runs it; its answer as one text without the line's end.
    pub async fn line(&self, args: &[&str]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.run(args).await?).trim_end().to_owned())
    }

    /// Runs it for the name of an object.
    pub(crate) async fn oid(&self, args: &[&str]) -> Result<Oid, GitError> {
        let said = self.line(args).await?;
        Oid::new(&said).map_err(|_| GitError::Unexpected { command: shown(args), said: said.clone() })
    }

    /// The commit that a name stands for.
    pub async fn commit(&self, name: &str) -> Result<Oid, GitError> {
        if let Some(commit) = self.commit_in_file(name) {
            return Ok(commit);
        }
        self.oid(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")])
            .await
            .map_err(|error| match error {
                GitError::Failed { command, stderr } if stderr.starts_with("exit status") => {
                    GitError::Failed { command, stderr: format!("`{name}` is not a commit here") }
                }
                other => other,
            })
    }

    /// The same for `HEAD`, branches by their full names and commits by theirs, as far as it can be said without git.
    pub(crate) fn commit_in_file(&self, name: &str) -> Option<Oid> {
        match Oid::new(name) {
            Ok(commit) => self.commit_object(&commit).map(|_| commit),
            Err(_) => self.told(name).oid(),
        }
    }

    /// What git's files tell of `HEAD`, a branch, or a stash, by its full name.
    pub(crate) fn told(&self, name: &str) -> Told {
        loose::reference(&self.dir, name)
    }

    /// A commit, as far as it can be read without git.
    pub(crate) fn commit_object(&self, commit: &Oid) -> Option<CommitObject> {
        LooseObjects::at(&self.dir)?.commit(commit)
    }

    /// A blob, as far as it can be read without git.
    pub(crate) fn blob(&self, blob: &Oid) -> Option<Vec<u8>> {
        LooseObjects::at(&self.dir)?.blob(blob)
    }

    /// Whether a commit is in the history of another.
    pub async fn is_ancestor(&self, ancestor: &Oid, of: &Oid) -> Result<bool, GitError> {
        match LooseObjects::at(&self.dir).and_then(|objects| objects.is_ancestor(ancestor, of)) {
            Some(answer) => Ok(answer),
            None => Ok(self.ask(&["merge-base", "--is-ancestor", ancestor.as_str(), of.as_str()]).await?.yes),
        }
    }

    /// Whether it can be said without git that a commit is in the history of another.
    pub(crate) fn is_known_ancestor(&self, ancestor: &Oid, of: &Oid) -> bool {
        LooseObjects::at(&self.dir).and_then(|objects| objects.is_ancestor(ancestor, of)) == Some(true)
    }

    /// Where git has the things of the repository that begins here, as far as it can be said without git.
    pub(crate) fn own_directory(&self) -> Option<Utf8PathBuf> {
        loose::git_dir(&self.dir)?.canonicalize_utf8().ok()
    }

    /// Runs what answers yes or no by its exit status.
    pub(crate) async fn ask(&self, args: &[&str]) -> Result<Answer, GitError> {
        let ended = self.end(args, &[]).await?;
        match ended.status.code() {
            Some(code @ (0 | 1)) => Ok(Answer { yes: code == 0, stdout: ended.stdout }),
            _ => Err(self.failed(args, &ended)),
        }
    }

    async fn end(&self, args: &[&str], input: &[u8]) -> Result<Ended, GitError> {
        let command = || shown(args);
        let held = self.held.as_ref().map(|file| file.try_clone()).transpose();
        let held = held.map_err(GitError::io("hand a lock to git"))?;
        let input = match held {
            Some(file) if input.is_empty() => Input::Held(file),
            _ if input.is_empty() => Input::Nothing,
            _ => Input::Text(input),
        };
        child::run(self.command(args), input, self.limit).await.map_err(|error| match error {
            ChildError::Io(error) if error.kind() == io::ErrorKind::NotFound && self.dir.is_dir() => {
                GitError::Missing
            }
            ChildError::Io(source) => {
                GitError::Io { what: format!("run `git {}` in `{}`", command(), self.dir), source }
            }
            ChildError::TimedOut => GitError::TimedOut { command: command(), seconds: self.limit.as_secs() },
            ChildError::TooMuch => GitError::TooMuch { command: command() },
        })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        // Outside variables such as GIT_DIR or GIT_INDEX_FILE would turn us to another repository.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
        {
            command.env_remove(name);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command
            .args(args)
            .current_dir(&self.dir)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            // Nobody is there to be asked: neither on a terminal, nor by a window of `core.askPass`, nor by ssh.
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS", "false")
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("LC_ALL", "C");
        if let Some(Identity { name, email }) = self.identity {
            command.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email);
            command.env("GIT_COMMITTER_NAME", name).env("GIT_COMMITTER_EMAIL", email);
        }
        if let Some(date) = self.date {
            let date = format!("@{} +0000", date.0 / 1000);
            command.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        }
        command
    }

    fn failed(&self, args: &[&str], ended: &Ended) -> GitError {
        let (command, stderr) = (shown(args), &ended.stderr);
        if stderr.contains("not a git repository (or any") {
            return GitError::NotARepository { dir: self.dir.clone() };
        }
        if let Some(lock) = held_lock(stderr, &self.dir) {
            return GitError::LockHeld { command, lock };
        }
        let stderr = if stderr.is_empty() { ended.status.to_string() } else { stderr.clone() };
        GitError::Failed { command, stderr }
    }
}

/// What a call is called in an error: its verb and what it is about, without our own options.
fn shown(args: &[&str]) -> String {
    args.iter().take(2).copied().collect::<Vec<_>>().join(" ")
}

/// `Unable to create '/repo/.git/index.lock': File exists.` and `could not lock config file .git/config: File exists`
fn held_lock(stderr: &str, dir: &Utf8Path) -> Option<Utf8PathBuf> {
    let line = stderr.lines().find(|line| line.contains("File exists"))?;
    if let Some((_, rest)) = line.split_once("Unable to create '") {
        return Some(dir.join(rest.split_once('\'')?.0)).filter(|path| path.extension() == Some("lock"));
    }
    let (_, rest) = line.split_once("could not lock config file ")?;
    Some(dir.join(format!("{}.lock", rest.split_once(": File exists")?.0)))
}

/// Where git is, looked up once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| which::which("git").unwrap_or_else(|_| PathBuf::from("git")))
}

/// The texts between NUL bytes.
pub(crate) fn split_nul(bytes: &[u8]) -> impl Iterator<Item = String> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty())
        .map(|part| String::from_utf8_lossy(part).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_known_from_what_git_says() {
        let dir = Utf8Path::new("/repo");
        let index = "fatal: Unable to create '/repo/.git/index.lock': File exists.\n\nAnother git process …";
        assert_eq!(held_lock(index, dir).unwrap(), "/repo/.git/index.lock");
        let config = "error: could not lock config file .git/config: File exists";
        assert_eq!(held_lock(config, dir).unwrap(), "/repo/.git/config.lock");
        assert_eq!(held_lock("fatal: destination path 'x' already exists", dir), None);
        assert_eq!(held_lock("Unable to create 'x': File exists", dir), None);
    }

    #[test]
    fn only_full_names_of_objects_are_taken() {
        assert!(Oid::new(&"a1".repeat(20)).is_ok());
        assert!(Oid::new(&"a1".repeat(32)).is_ok());
        for wrong in ["", "abc", &"0".repeat(40), &"A1".repeat(20), "--upload-pack=touch x"] {
            assert_eq!(
                Oid::new(wrong).unwrap_err().to_string(),
                format!("`{wrong}` is not the full name of a git object")
            );
        }
    }
}
