//! The history of a HEAD that only moved forward, commit by commit: ids, subjects and files in one call.

use std::collections::BTreeSet;

use rehearsal_core::Commit;

use super::command::text;

/// Header of a commit in the log below: id, parents, subject. File names follow, the first after a line end.
const FORMAT: &str = "--format=%x01%H %P%x02%s";

/// A longer chain is cut by git, and so is none.
const LIMIT: &str = "--max-count=500";

pub(super) fn log_args<'a>(before: &'a str, after: &'a str) -> [&'a str; 11] {
    [
        "log",
        "--reverse",
        "-z",
        FORMAT,
        "--name-only",
        "--no-renames",
        "--no-ext-diff",
        LIMIT,
        after,
        "--not",
        before,
    ]
}

/// Reads the log. None if it is no unbroken chain from `before` to `after`: a merge, a rewritten history, or a
/// file whose name plays a commit. Then others must look more closely.
pub(super) fn read(log: &[u8], before: &str, after: &str) -> Option<(Vec<Commit>, BTreeSet<String>)> {
    let mut commits: Vec<Commit> = Vec::new();
    let mut files = BTreeSet::new();
    let mut tip = before.to_owned();
    for token in log.split(|byte| *byte == 0).filter(|token| !token.is_empty()) {
        let Some(header) = token.strip_prefix(b"\x01") else {
            files.insert(text(token.strip_prefix(b"\n").unwrap_or(token)));
            continue;
        };
        let header = text(header);
        let (ids, subject) = header.split_once('\u{2}')?;
        let (id, parents) = ids.split_once(' ')?;
        if parents != tip {
            return None;
        }
        id.clone_into(&mut tip);
        commits.push(Commit { id: id.to_owned(), subject: subject.to_owned() });
    }
    (tip == after).then_some((commits, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unbroken_chain_is_read_with_its_files() {
        let log = b"\x01b a\x02First\0\none.txt\0two.txt\0\x01c b\x02Empty\0\x01d c\x02Third\0\none.txt\0";
        let (commits, files) = read(log, "a", "d").unwrap();
        let subjects: Vec<&str> = commits.iter().map(|commit| commit.subject.as_str()).collect();
        assert_eq!(subjects, ["First", "Empty", "Third"]);
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["one.txt", "two.txt"]);
    }

    #[test]
    fn a_rewritten_history_a_merge_and_a_played_commit_are_left_to_others() {
        assert_eq!(read(b"\x01c x\x02Amended\0", "a", "c"), None);
        assert_eq!(read(b"\x01b a\x02One\0\x01m b y\x02Merge\0", "a", "m"), None);
        assert_eq!(read(b"\x01b a\x02One\0\nx\0\x01f b\x02a file's name\0", "a", "b"), None);
        assert_eq!(read(b"", "a", "b"), None);
    }
}
