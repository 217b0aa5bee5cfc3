//! Asking git, with a deadline, for a bounded answer, in an environment that cannot lead it astray.

use std::io::Read;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::{ChangedLines, Changes, Since, hunks};

/// A repository that needs longer for a diff is not worth waiting for: the analysis goes without.
const DEADLINE: Duration = Duration::from_secs(10);
/// A change larger than this is no change that a failure could be pinned on.
const LARGEST: u64 = 16 << 20;

/// What is in the repository's configuration must not make us run a program, nor change what a diff looks like.
const SAFE: &[&str] = &[
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.pager=cat",
];
const DIFF: &[&str] = &[
    "diff",
    "-U0",
    "-M",
    "--relative",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// Why the changes are not known.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// There is no git, or it could not be started.
    #[error("git could not be started")]
    NoGit(#[source] std::io::Error),
    /// The directory is in no repository.
    #[error("`{0}` is not in a git repository")]
    NotARepository(Utf8PathBuf),
    /// There is no such commit.
    #[error("`{0}` is no commit of this repository")]
    UnknownRevision(String),
    /// git did not come back.
    #[error("git took longer than {} s", DEADLINE.as_secs())]
    TimedOut,
}

pub(super) fn read(project: &Utf8Path, since: Since) -> Result<Changes, ChangesError> {
    let head = commit(project, "HEAD");
    let head = match head {
        Err(ChangesError::UnknownRevision(_)) => None,
        head => Some(head?),
    };
    let start = match &since {
        Since::LastCommit => commit(project, "HEAD~1").ok(),
        Since::Base(base) => Some(fork_point(project, base)?),
    };
    // A repository that begins with this commit, or has none yet, begins with nothing.
    let nothing = || Ok(answer(project, &["hash-object", "-t", "tree", "/dev/null"])?.text.trim().to_owned());
    let start = start.map_or_else(nothing, Ok)?;
    let head = head.map_or_else(nothing, Ok)?;
    let all = answer(project, &[DIFF, &[&start, "--"]].concat())?;
    let uncommitted = answer(project, &[DIFF, &[&head, "--"]].concat())?;
    let untracked = answer(project, &["ls-files", "-z", "--others", "--exclude-standard"])?;
    let mut changes = Changes {
        since,
        all: hunks(&all.text),
        uncommitted: hunks(&uncommitted.text),
        cut: all.cut || uncommitted.cut || untracked.cut,
    };
    for name in untracked.text.split('\0').filter(|name| !name.is_empty()) {
        let added = ChangedLines { added: true, ..ChangedLines::default() };
        changes.all.insert(name.to_owned(), added.clone());
        changes.uncommitted.insert(name.to_owned(), added);
    }
    Ok(changes)
}

/// Where the work left a branch; a commit of another history stands for itself.
fn fork_point(project: &Utf8Path, base: &str) -> Result<String, ChangesError> {
    let base = commit(project, base)?;
    let fork = answer(project, &["merge-base", &base, "HEAD"])?;
    Ok(if fork.good { fork.text.trim().to_owned() } else { base })
}

fn commit(project: &Utf8Path, revision: &str) -> Result<String, ChangesError> {
    let unknown = || ChangesError::UnknownRevision(revision.to_owned());
    // A revision that begins with a dash would be an option.
    if revision.starts_with('-') || revision.is_empty() {
        return Err(unknown());
    }
    let named = answer(project, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])?;
    if named.good {
        return Ok(named.text.trim().to_owned());
    }
    let inside = answer(project, &["rev-parse", "--is-inside-work-tree"])?;
    Err(if inside.good { unknown() } else { ChangesError::NotARepository(project.to_owned()) })
}

/// What git printed.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Whether it went well.
    pub(crate) good: bool,
    /// Whether there was more.
    pub(crate) cut: bool,
}

pub(crate) fn answer(project: &Utf8Path, args: &[&str]) -> Result<Answer, ChangesError> {
    let mut child = start(project, args)?;
    let Some(output) = child.stdout.take() else { return Err(ChangesError::TimedOut) };
    let (send, receive) = mpsc::channel();
    // Ends with the pipe: git is killed below if it does not end by itself.
    let reader = std::thread::spawn(move || {
        let _ = send.send(read_bounded(output));
    });
    let read = receive.recv_timeout(DEADLINE);
    if !matches!(&read, Ok((_, false))) {
        let _ = child.kill();
    }
    let status = child.wait();
    let (bytes, cut) = read.map_err(|_| ChangesError::TimedOut)?;
    let _ = reader.join();
    let good = cut || status.is_ok_and(|status| status.success());
    Ok(Answer { text: String::from_utf8_lossy(&bytes).into_owned(), good, cut })
}

fn start(project: &Utf8Path, args: &[&str]) -> Result<Child, ChangesError> {
    let mut command = Command::new("git");
    // Outside variables such as GIT_DIR or GIT_EXTERNAL_DIFF would turn us to another repository, or to a program.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command
        .args(SAFE)
        .args(args)
        .current_dir(project)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(ChangesError::NoGit)
}

/// The answer, and whether it was longer than we read.
fn read_bounded(output: ChildStdout) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let mut bounded = output.take(LARGEST + 1);
    let _ = bounded.read_to_end(&mut bytes);
    let cut = bytes.len() as u64 > LARGEST;
    (bytes, cut)
}
