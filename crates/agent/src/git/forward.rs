//! The history of a HEAD that only moved forward, commit by commit: ids, subjects and files in one call.

use std::collections::BTreeSet;

use rehearsal_core::{Commit, Oid};

/// Header of a commit in the log below: id, parents, subject. File names follow, the first after a line end.
const FORMAT: &str = "--format=%x01%H %P%x02%s";

/// A longer chain is cut by git, and so is none.
const LIMIT: &str = "--max-count=500";

pub(super) fn log_args<'a>(before: &'a Oid, after: &'a Oid) -> [&'a str; 11] {
    [
        "log",
        "--reverse",
        "-z",
        FORMAT,
        "--name-only",
        "--no-renames",
        "--no-ext-diff",
        LIMIT,
        after.as_str(),
        "--not",
        before.as_str(),
    ]
}

/// Reads the log. None if it is no unbroken chain from `before` to `after`: a merge, a rewritten history, or a
/// file whose name plays a commit. Then others must look more closely.
pub(super) fn read(log: &[u8], before: &Oid, after: &Oid) -> Option<(Vec<Commit>, BTreeSet<String>)> {
    let mut commits: Vec<Commit> = Vec::new();
    let mut files = BTreeSet::new();
    let mut tip = before.clone();
    for token in log.split(|byte| *byte == 0).filter(|token| !token.is_empty()) {
        let Some(header) = token.strip_prefix(b"\x01") else {
            let name = token.strip_prefix(b"\n").unwrap_or(token);
            files.insert(String::from_utf8_lossy(name).into_owned());
            continue;
        };
        let header = String::from_utf8_lossy(header);
        let (ids, subject) = header.split_once('\u{2}')?;
        let (id, parents) = ids.split_once(' ')?;
        if parents != tip.as_str() {
            return None;
        }
        tip = Oid::new(id).ok()?;
        commits.push(Commit { id: tip.clone(), subject: subject.to_owned() });
    }
    (tip == *after).then_some((commits, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` stands for an id of nothing but `a`.
    fn oid(digit: &str) -> Oid {
        Oid::new(&digit.repeat(40)).unwrap()
    }

    /// A log whose commits are one letter each, and whose ids are spelled `<a>`.
    fn read_log(log: &str, before: &str, after: &str) -> Option<(Vec<Commit>, BTreeSet<String>)> {
        let spelled = ["a", "b", "c", "d", "e", "f"]
            .iter()
            .fold(log.to_owned(), |log, digit| log.replace(&format!("<{digit}>"), &digit.repeat(40)));
        read(spelled.as_bytes(), &oid(before), &oid(after))
    }

    #[test]
    fn an_unbroken_chain_is_read_with_its_files() {
        let log = "\x01<b> <a>\x02First\0\none.txt\0two.txt\0\x01<c> <b>\x02Empty\0\x01<d> <c>\x02Third\0\none.txt\0";
        let (commits, files) = read_log(log, "a", "d").unwrap();
        let subjects: Vec<&str> = commits.iter().map(|commit| commit.subject.as_str()).collect();
        assert_eq!(subjects, ["First", "Empty", "Third"]);
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["one.txt", "two.txt"]);
    }

    #[test]
    fn a_rewritten_history_a_merge_and_a_played_commit_are_left_to_others() {
        assert_eq!(read_log("\x01<c> <e>\x02Amended\0", "a", "c"), None);
        assert_eq!(read_log("\x01<b> <a>\x02One\0\x01<f> <b> <e>\x02Merge\0", "a", "f"), None);
        assert_eq!(read_log("\x01<b> <a>\x02One\0\nx\0\x01<f> <b>\x02a file's name\0", "a", "b"), None);
        assert_eq!(read_log("", "a", "b"), None);
    }
}
