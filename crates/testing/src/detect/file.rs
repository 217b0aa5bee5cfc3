//! Reading a project's files: they may be of any size, no files at all, or links to anywhere.

use std::io::Read;

use camino::Utf8Path;

use crate::regular_file;

/// No file by which a project describes itself is larger; of a larger one the beginning is read.
const LARGEST: u64 = 1 << 20;

/// A file's text; nothing if it is no regular file inside `root`.
pub(crate) fn read_inside(root: &Utf8Path, path: &Utf8Path) -> Option<String> {
    let path = if path.is_symlink() {
        let target = path.canonicalize_utf8().ok()?;
        target.starts_with(root.canonicalize_utf8().ok()?).then_some(target)?
    } else {
        path.to_owned()
    };
    read_regular(&path, LARGEST)
}

/// The text of a regular file, at most so much of it.
pub(crate) fn read_regular(path: &Utf8Path, most: u64) -> Option<String> {
    let mut bytes = Vec::new();
    regular_file::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
