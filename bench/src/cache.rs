//! Where peers are kept that were installed: outside of the checkout, a directory each, named with its version.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory of a peer, which is installed there if it is not yet.
pub(crate) fn installed(
    name: &str,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let home = std::env::var_os("HOME").ok_or("there is no HOME")?;
    let root = PathBuf::from(home).join(".cache/rehearsal-bench").join(name);
    std::fs::create_dir_all(&root).map_err(|error| error.to_string())?;
    if !root.join("complete").exists() {
        install(&root)?;
        std::fs::File::create(root.join("complete")).map_err(|error| error.to_string())?;
    }
    Ok(root)
}

/// Installs packages of npm into a directory.
pub(crate) fn npm(npm: &mut Command, packages: &[&str], root: &Path) -> Result<(), String> {
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]);
    run(npm.args(packages).current_dir(root))
}

/// Runs a command that has to succeed.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
