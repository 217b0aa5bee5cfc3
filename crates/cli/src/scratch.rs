//! Scratch repositories, independent of how git is set up on this machine.

use camino::Utf8Path;

use crate::error::CliError;
use crate::exit::Exit;

/// Makes a directory a git repository.
pub(crate) fn init_repository(root: &Utf8Path) -> Result<(), CliError> {
    git(root, &["init", "--quiet", "--initial-branch=main"])
}

/// Copies what is committed in a repository to a new directory.
pub(crate) fn clone_repository(from: &Utf8Path, to: &Utf8Path) -> Result<(), CliError> {
    git(from, &["clone", "--quiet", "--no-hardlinks", ".", to.as_str()])
}

/// Commits everything in it, also nothing.
pub(crate) fn commit_all(root: &Utf8Path, message: &str) -> Result<(), CliError> {
    git(root, &["add", "--all"])?;
    git(root, &["commit", "--quiet", "--allow-empty", "--message", message])
}

fn git(root: &Utf8Path, args: &[&str]) -> Result<(), CliError> {
    let mut command = std::process::Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.args(["-c", "user.name=Rehearsal", "-c", "user.email=rehearsal@localhost"]);
    match command.args(args).current_dir(root).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(CliError::new(Exit::Git, format!("git {} failed: {said}", args[0])))
        }
        Err(error) => {
            Err(CliError::new(Exit::Git, format!("git cannot be run: {error}")).hint("install git"))
        }
    }
}
