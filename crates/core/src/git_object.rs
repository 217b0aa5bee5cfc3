//! What is in the files in which git keeps its objects: `KIND SIZE\0CONTENT`, compressed, under the name of its own sum.
//!
//! What cannot be told for certain is none: git can still be asked.

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// What counts of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitObject {
    /// All its files, by one name.
    pub tree: String,
    /// The commits before it.
    pub parents: Vec<String>,
    /// When it was made.
    pub seconds: Option<i64>,
    /// The first paragraph of its message, in one line; none if that is not in the usual encoding.
    pub subject: Option<String>,
}

/// The content of an object of this kind, from its file. No more than so many bytes are unpacked. What somebody wrote under
/// another object's name is not that object.
pub fn content(file: &[u8], id: &str, kind: &str, limit: usize) -> Option<Vec<u8>> {
    let mut object = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(file, limit).ok()?;
    let sum = if id.len() == 64 { hex(&Sha256::digest(&object)) } else { hex(&Sha1::digest(&object)) };
    if sum != id {
        return None;
    }
    let header = object.iter().position(|byte| *byte == 0)?;
    let content = object.split_off(header + 1);
    (object == format!("{kind} {}\0", content.len()).as_bytes()).then_some(content)
}

/// Bytes as git writes them in names.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl CommitObject {
    /// Reads headers, an empty line, and the message.
    pub fn read(content: &[u8]) -> Option<Self> {
        let (mut tree, mut parents, mut seconds, mut is_usual) = (None, Vec::new(), None, true);
        let mut rest = content;
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if line.is_empty() {
                break;
            }
            // The lines of a signature begin with a blank.
            let text = String::from_utf8_lossy(line);
            match text.split_once(' ') {
                Some(("tree", id)) => tree = Some(id.to_owned()),
                Some(("parent", id)) => parents.push(id.to_owned()),
                // `NAME <MAIL> SECONDS ZONE`
                Some(("committer", who)) => seconds = who.rsplit(' ').nth(1).and_then(|at| at.parse().ok()),
                Some(("encoding", _)) => is_usual = false,
                _ => {}
            }
        }
        let subject = is_usual.then(|| subject(rest)).flatten();
        Some(Self { tree: tree?, parents, seconds, subject })
    }
}

/// The first paragraph in one line, as `git log` shows it. None for a message that is no text.
fn subject(message: &[u8]) -> Option<String> {
    if message.contains(&0) {
        return None;
    }
    let lines = message.split(|byte| *byte == b'\n').map(trim_end);
    let lines = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    Some(String::from_utf8_lossy(&lines.collect::<Vec<_>>().join(&b' ')).into_owned())
}

/// What git takes for blank.
fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    end.map_or(&[], |end| &line[..=end])
}

#[cfg(test)]
mod tests {
    use miniz_oxide::deflate::compress_to_vec_zlib;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_object_is_what_its_name_says_and_nothing_else() {
        let object = b"blob 6\0hello\n";
        let (file, id) = (compress_to_vec_zlib(object, 6), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(content(&file, id, "blob", 100).unwrap(), b"hello\n");
        assert_eq!(content(&file, id, "commit", 100), None, "another kind");
        assert_eq!(content(&file, id, "blob", 10), None, "too large");
        assert_eq!(content(&file, &"0".repeat(40), "blob", 100), None, "under another's name");
        let long = hex(&Sha256::digest(object));
        assert_eq!(content(&file, &long, "blob", 100).unwrap(), b"hello\n");
    }

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
        let commit = b"tree t\nparent p\nauthor A <a> 1 +0000\ncommitter B b <b> 7 +0100\n\
                       gpgsig ---\n parent x\n \n ---\n\nSubject\n\nparent y\n";
        let read = CommitObject::read(commit).unwrap();
        assert_eq!((read.tree.as_str(), read.parents), ("t", vec!["p".to_owned()]));
        assert_eq!((read.seconds, read.subject.as_deref()), (Some(7), Some("Subject")));
    }

    #[test]
    fn what_is_not_certain_is_left_out() {
        let read = |text: &str| CommitObject::read(text.as_bytes());
        assert_eq!(read("tree t\nencoding latin1\n\nx\n").unwrap().subject, None);
        assert_eq!(read("tree t\ncommitter now\n\nx\n").unwrap().seconds, None);
        assert_eq!(read("tree t\n"), None, "it is cut");
        assert_eq!(read("parent p\n\nx\n"), None, "it has no files");
    }

    proptest! {
        #[test]
        fn junk_is_no_object_and_no_harm(junk in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(content(&junk, &"a".repeat(40), "commit", 1000), None);
            let _ = CommitObject::read(&junk);
        }
    }
}
