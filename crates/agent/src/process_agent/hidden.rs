//! What the sandbox kept from a command of the agent, as far as its output says so.

use std::io::{Read, Seek, SeekFrom};

use camino::Utf8Path;
use rehearsal_core::Notice;
use rehearsal_sandbox::{HIDDEN, Policy, ProjectMode, holds_secrets};

/// More of the output is not searched: what stopped an agent is near its end.
const SEARCHED: u64 = 4 << 20;
/// More paths are not named.
const MOST_PATHS: usize = 5;
/// How systems and languages say that something is not there.
const NOT_THERE: [&str; 2] = ["No such file or directory", "ENOENT"];
/// How they say that something may not be written.
const READ_ONLY: [&str; 2] = ["Read-only file system", "EROFS"];

/// Paths of the machine that a command did not find or could not write, because the sandbox of `policy` hid or protected them.
pub(super) fn withheld(log: &Utf8Path, policy: &Policy) -> Option<Notice> {
    let text = end_of(log).ok()?;
    let (mut read, mut write) = (Vec::new(), Vec::new());
    // Agents quote what commands print, as JSON.
    for line in text.split('\n').flat_map(|line| line.split("\\n")) {
        let says = |words: [&str; 2]| words.iter().any(|word| line.contains(word));
        if says(NOT_THERE) {
            note(line, &mut read, |path| (path.exists() && is_hidden(policy, path)).then_some(path));
        } else if says(READ_ONLY) {
            note(line, &mut write, |path| {
                let directory = if path.is_dir() { Some(path) } else { path.parent() };
                directory.filter(|directory| directory.is_dir() && is_foreign(policy, directory))
            });
        }
    }
    let is_empty = read.is_empty() && write.is_empty();
    (!is_empty).then_some(Notice::WithheldBySandbox { read, write })
}

fn end_of(log: &Utf8Path) -> std::io::Result<String> {
    let mut file = fs_err::File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED)))?;
    let mut bytes = Vec::new();
    file.take(SEARCHED).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Adds what is meant by the absolute paths of a line.
fn note(line: &str, paths: &mut Vec<String>, meant: impl Fn(&Utf8Path) -> Option<&Utf8Path>) {
    let ends_path = |c: char| c.is_whitespace() || "'\"`()<>:;,\\".contains(c);
    for word in line.split(ends_path).filter(|word| word.len() > 1 && word.starts_with('/')) {
        let Some(path) = meant(Utf8Path::new(word)) else { continue };
        if paths.len() < MOST_PATHS && !paths.iter().any(|known| path == known.as_str()) {
            paths.push(path.to_string());
        }
    }
}

/// Whether it lies where the machine keeps homes, and is not a place of secrets, which no setting shows.
fn is_hidden(policy: &Policy, path: &Utf8Path) -> bool {
    let home = policy.home.as_deref();
    let mut hidden = HIDDEN.iter().map(Utf8Path::new).chain(home);
    hidden.any(|around| path.starts_with(around))
        && !policy.readable.iter().any(|shown| is_below(policy, path, shown))
        && is_foreign(policy, path)
}

/// Whether the agent was not meant to write it.
fn is_foreign(policy: &Policy, path: &Utf8Path) -> bool {
    let project = (policy.mode == ProjectMode::Writable).then_some(&policy.project);
    let own = policy.writable.iter().chain(&policy.own).chain(&policy.protected).chain(project);
    !own.into_iter().any(|own| is_below(policy, path, own))
        && !path.starts_with(&policy.project)
        && !policy.home.as_deref().is_some_and(|home| holds_secrets(home, path))
}

fn is_below(policy: &Policy, path: &Utf8Path, around: &Utf8Path) -> bool {
    let around = policy.home.as_ref().map_or_else(|| around.to_owned(), |home| home.join(around));
    path.starts_with(around)
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    #[test]
    fn only_what_is_there_and_hidden_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(scratch.path().canonicalize().unwrap()).unwrap();
        for directory in ["home/.ssh", "home/sdk-9", "home/cache", "project"] {
            fs_err::create_dir_all(root.join(directory)).unwrap();
        }
        let mut policy = Policy::new(root.join("project"));
        policy.home = Some(root.join("home"));
        policy.mode = ProjectMode::Writable;
        let home = root.join("home");
        let log = root.join("stdout.log");
        let text = format!(
            "{{\"content\":\"ls: {home}/sdk-9: No such file or directory\\nls: {home}/nothing: No such file or directory\"}}\n\
             Error: ENOENT: no such file or directory, open '{home}/.ssh'\n\
             sh: 1: cannot create {home}/cache/x: Read-only file system\n\
             cat: {root}/project/missing: No such file or directory\n"
        );
        fs_err::write(&log, text).unwrap();
        let (read, write) = (vec![format!("{home}/sdk-9")], vec![format!("{home}/cache")]);
        assert_eq!(withheld(&log, &policy), Some(Notice::WithheldBySandbox { read, write }));
        fs_err::write(&log, "all is well\n").unwrap();
        assert_eq!(withheld(&log, &policy), None);
    }
}
