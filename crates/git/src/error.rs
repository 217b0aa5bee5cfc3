//! Why git could not do it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

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
    /// There is no such commit.
    #[error("`{revision}` is not a commit of this repository")]
    UnknownRevision {
        /// As it was asked for.
        revision: String,
    },
    /// No branch is there that others could be based on.
    #[error("no base branch was found in `{dir}`")]
    NoBaseBranch {
        /// Which directory.
        dir: Utf8PathBuf,
    },
    /// git refused, or failed.
    #[error("`git {command}` failed: {stderr}")]
    Failed {
        /// The subcommand and its first argument.
        command: String,
        /// What git printed; its exit status if that is nothing.
        stderr: String,
    },
    /// Another git is at work, or one that was killed left its lock.
    #[error("`git {command}` found the lock `{lock}`")]
    LockHeld {
        /// The subcommand and its first argument.
        command: String,
        /// The lock file, as git names it.
        lock: Utf8PathBuf,
    },
    /// git did not end in time.
    #[error("`git {command}` took longer than {seconds} s")]
    TimedOut {
        /// The subcommand and its first argument.
        command: String,
        /// How long we waited.
        seconds: u64,
    },
    /// git printed more than we read.
    #[error("`git {command}` said too much")]
    TooMuch {
        /// The subcommand and its first argument.
        command: String,
    },
    /// git printed something that we do not understand.
    #[error("`git {command}` said `{said}`, which was not expected")]
    Unexpected {
        /// The subcommand and its first argument.
        command: String,
        /// What it printed.
        said: String,
    },
    /// git could not be started, or a file of a repository could not be used.
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
    /// Makes an error of the system one of git.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Reads what git printed on standard error when it failed in a directory, in the words of its C locale.
    pub(crate) fn read(command: String, stderr: &str, dir: &Utf8Path) -> Self {
        if stderr.contains("not a git repository (or any") {
            return Self::NotARepository { dir: dir.to_owned() };
        }
        match held_lock(stderr, dir) {
            Some(lock) => Self::LockHeld { command, lock },
            None => Self::Failed { command, stderr: stderr.to_owned() },
        }
    }
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
}
