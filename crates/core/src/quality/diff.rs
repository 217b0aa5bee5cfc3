//! From what git says to [`Facts`](super::Facts).

use super::{ChangedFile, FileChange};

/// git said something that is no listing of differences.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("git lists changed files in a form that is not known: `{entry}`")]
pub struct NotADiff {
    /// What it said.
    pub entry: String,
}

const LINK: &str = "120000";
const SUBMODULE: &str = "160000";
const EXECUTABLE: &str = "100755";

/// The files of `git diff --raw -z --no-renames`, with their lines from `git diff --unified=0 --no-renames` of the same
/// commits. Without the latter nobody has looked at the lines.
pub fn listed(raw: &[u8], patch: Option<&[u8]>) -> Result<Vec<ChangedFile>, NotADiff> {
    let mut sections = patch.map(sections);
    let mut fields = raw.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut files = Vec::new();
    while let Some(entry) = fields.next() {
        let entry = String::from_utf8_lossy(entry);
        let not_known = || NotADiff { entry: entry.chars().take(80).collect() };
        let path = fields.next().ok_or_else(not_known)?;
        // `:100644 100644 abc def M`
        let mut parts = entry.strip_prefix(':').ok_or_else(not_known)?.split(' ');
        let (before, after) = (parts.next().ok_or_else(not_known)?, parts.next().ok_or_else(not_known)?);
        let status = parts.nth(2).ok_or_else(not_known)?;
        // A file that is of another kind now is told as one that is gone and one that is new.
        let told = if status.starts_with('T') { 2 } else { 1 };
        let section = sections.as_mut().and_then(|all| all.by_ref().take(told).last());
        let path = String::from_utf8_lossy(path).into_owned();
        files.push(ChangedFile { path, change: change(before, after, section) });
    }
    Ok(files)
}

fn change(before: &str, after: &str, section: Option<&[u8]>) -> FileChange {
    let odd = [LINK, SUBMODULE].iter().any(|mode| before == *mode || after == *mode);
    if odd || (after == EXECUTABLE && before != EXECUTABLE) {
        return FileChange::Kind;
    }
    let Some(section) = section else { return FileChange::Unread };
    let (mut added, mut removed, mut in_hunks) = (Vec::new(), Vec::new(), false);
    for line in section.split(|byte| *byte == b'\n') {
        let text =
            |line: &[u8]| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        match line {
            [b'@', b'@', ..] => in_hunks = true,
            [b'+', rest @ ..] if in_hunks => added.push(text(rest)),
            [b'-', rest @ ..] if in_hunks => removed.push(text(rest)),
            line if !in_hunks && line.starts_with(b"Binary files ") => return FileChange::Binary,
            _ => {}
        }
    }
    FileChange::Lines { added, removed }
}

/// The part of each file: between two of the lines that begin one. Lines of a file begin with `+`, `-` or `\`.
fn sections(patch: &[u8]) -> impl Iterator<Item = &[u8]> {
    const BEGINS: &[u8] = b"diff --git ";
    let mut rest = patch;
    std::iter::from_fn(move || {
        let own = rest.strip_prefix(BEGINS)?;
        let next =
            own.windows(BEGINS.len() + 1).position(|window| window[0] == b'\n' && &window[1..] == BEGINS);
        let (section, after) = match next {
            Some(at) => (&own[..at], &own[at + 1..]),
            None => (own, &[][..]),
        };
        rest = after;
        Some(section)
    })
}
