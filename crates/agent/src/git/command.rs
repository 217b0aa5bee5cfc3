//! git as a child process, in an environment that cannot lead it astray.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use camino::Utf8Path;
use tokio::process::Command;

use super::GitError;
use crate::policy::GIT_LIMIT;

/// Set for every call: what an agent wrote into the repository's configuration must not make us run a program.
const SAFE: &[&str] = &[
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.pager=cat",
    "-c",
    "core.quotePath=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
];

/// Where git is, looked up once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| which::which("git").unwrap_or_else(|_| PathBuf::from("git")))
}

/// Runs git in a directory; its standard output.
pub(super) async fn git(dir: &Utf8Path, args: &[&str]) -> Result<Vec<u8>, GitError> {
    let what = || args.first().copied().unwrap_or_default().to_owned();
    let mut command = Command::new(program());
    // Outside variables such as GIT_DIR or GIT_INDEX_FILE would turn us to another repository.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command
        .args(SAFE)
        .args(args)
        .current_dir(dir)
        .env("GIT_OPTIONAL_LOCKS", "0")
        // A replacement shows one commit in place of another: what a run did is told by what it made.
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = match tokio::time::timeout(GIT_LIMIT, command.output()).await {
        Err(_) => {
            return Err(GitError::TimedOut { command: what(), seconds: GIT_LIMIT.as_secs() });
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound && dir.is_dir() => {
            return Err(GitError::Missing);
        }
        Ok(Err(error)) => {
            return Err(GitError::Failed { command: what(), stderr: error.to_string() });
        }
        Ok(Ok(output)) => output,
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = text(&output.stderr);
    if stderr.contains("not a git repository") {
        return Err(GitError::NotARepository { dir: dir.to_owned() });
    }
    let stderr = if stderr.trim().is_empty() { output.status.to_string() } else { stderr.trim().to_owned() };
    Err(GitError::Failed { command: what(), stderr })
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
