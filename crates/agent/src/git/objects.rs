//! Commits and trees, read from git's own files. Only what was not packed yet, which is where the work of a
//! moment ago is; whoever finds nothing here asks git.

use std::fs::File;
use std::io::Read;

use camino::Utf8PathBuf;

use super::command::text;
use crate::policy::MAX_GIT_OBJECT;

/// The objects of a repository that have a file each.
pub(super) struct LooseObjects {
    dir: Utf8PathBuf,
}

/// What counts of a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommitObject {
    pub(super) tree: String,
    pub(super) parents: Vec<String>,
    pub(super) subject: String,
}

/// One name in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) name: Vec<u8>,
    pub(super) kind: EntryKind,
    /// The mode as git writes it: a file that became executable has changed.
    pub(super) mode: Vec<u8>,
    pub(super) id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Tree,
    File,
    Submodule,
}

impl LooseObjects {
    pub(super) fn new(dir: Utf8PathBuf) -> Self {
        Self { dir }
    }

    pub(super) fn commit(&self, id: &str) -> Option<CommitObject> {
        parse_commit(&self.content(id, b"commit")?)
    }

    /// The entries of a tree, and how large it is.
    pub(super) fn tree(&self, id: &str) -> Option<(Vec<TreeEntry>, usize)> {
        let content = self.content(id, b"tree")?;
        Some((parse_tree(&content, id.len() / 2)?, content.len()))
    }

    /// The content of an object of this kind. The file is `KIND SIZE\0CONTENT`, compressed.
    fn content(&self, id: &str, kind: &[u8]) -> Option<Vec<u8>> {
        let (fan, rest) = id.split_at_checked(2)?;
        let file = File::open(self.dir.join(fan).join(rest)).ok()?;
        let mut packed = Vec::new();
        file.take(MAX_GIT_OBJECT as u64).read_to_end(&mut packed).ok()?;
        let object = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&packed, MAX_GIT_OBJECT).ok()?;
        let header = object.iter().position(|byte| *byte == 0)?;
        let size = object.get(..header)?.strip_prefix(kind)?.strip_prefix(b" ")?;
        let content = object.get(header + 1..)?;
        (size == content.len().to_string().as_bytes()).then(|| content.to_vec())
    }
}

/// Headers, an empty line, the message. None for one in an encoding of its own.
fn parse_commit(content: &[u8]) -> Option<CommitObject> {
    let (mut tree, mut parents, mut rest) = (None, Vec::new(), content);
    loop {
        let (line, after) = split_line(rest)?;
        rest = after;
        if line.is_empty() {
            break;
        }
        if let Some(id) = line.strip_prefix(b"tree ") {
            tree = Some(text(id));
        } else if let Some(id) = line.strip_prefix(b"parent ") {
            parents.push(text(id));
        } else if line.starts_with(b"encoding ") {
            return None;
        }
    }
    Some(CommitObject { tree: tree?, parents, subject: subject(rest)? })
}

/// The first paragraph in one line, as `git log` shows it. None for a message that is no text.
fn subject(message: &[u8]) -> Option<String> {
    if message.contains(&0) {
        return None;
    }
    let lines = message.split(|byte| *byte == b'\n').map(trim_end);
    let lines = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    Some(text(&lines.collect::<Vec<_>>().join(&b' ')))
}

/// What git takes for blank.
fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    end.map_or(&[], |end| &line[..=end])
}

fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// Entries of `MODE NAME\0ID`, the id in bytes.
fn parse_tree(mut content: &[u8], id_length: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !content.is_empty() {
        let blank = memchr::memchr(b' ', content)?;
        let end = memchr::memchr(0, content).filter(|end| *end > blank)?;
        let (mode, name) = (&content[..blank], &content[blank + 1..end]);
        let (id, rest) = content[end + 1..].split_at_checked(id_length)?;
        let kind = match mode {
            b"40000" => EntryKind::Tree,
            b"160000" => EntryKind::Submodule,
            _ => EntryKind::File,
        };
        let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        entries.push(TreeEntry { name: name.to_owned(), kind, mode: mode.to_owned(), id });
        content = rest;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_paragraph_is_the_subject() {
        let of = |message: &[u8]| subject(message).unwrap();
        assert_eq!(of(b"\n \nAdd a\t\r\n greeting \n\nbody\n"), "Add a  greeting");
        assert_eq!(of(b"no line end"), "no line end");
        assert_eq!(of(b""), "");
        assert_eq!(subject(b"a\0b"), None);
    }

    #[test]
    fn a_signature_is_not_taken_for_a_header() {
        let commit = b"tree t\nparent p\nauthor A <a> 1 +0000\ngpgsig ---\n parent x\n \n ---\n\nSubject\n";
        let expected =
            CommitObject { tree: "t".into(), parents: vec!["p".into()], subject: "Subject".into() };
        assert_eq!(parse_commit(commit), Some(expected));
        assert_eq!(parse_commit(b"tree t\nencoding latin1\n\nx\n"), None);
        assert_eq!(parse_commit(b"tree t\n"), None);
    }

    proptest! {
        #[test]
        fn junk_is_no_object_and_no_harm(junk in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_commit(&junk);
            let _ = parse_tree(&junk, 20);
            let dir = tempfile::tempdir().unwrap();
            let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
            fs_err::create_dir(dir.join("ab")).unwrap();
            fs_err::write(dir.join("ab/cd"), &junk).unwrap();
            let objects = LooseObjects::new(dir);
            prop_assert!(objects.commit("abcd").is_none());
            prop_assert!(objects.tree("abcd").is_none());
        }
    }
}
