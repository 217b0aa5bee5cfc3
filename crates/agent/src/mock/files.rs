//! Changes to files of the worktree, and to others.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::error::MockError;
use crate::excerpt::nearest_part;

/// The path of a file in the worktree. A script that means to leave it says so.
pub(super) fn inside(worktree: &Utf8Path, path: &Utf8Path) -> Result<Utf8PathBuf, MockError> {
    let stays =
        path.components().all(|part| matches!(part, Utf8Component::Normal(_) | Utf8Component::CurDir));
    if stays { Ok(worktree.join(path)) } else { Err(MockError::Outside { path: path.to_owned() }) }
}

/// Writes a file and the directories above it; returns whether it is new.
pub(super) fn write(path: &Utf8Path, content: &str) -> Result<bool, MockError> {
    let is_new = !path.exists();
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent).map_err(MockError::file)?;
    }
    fs_err::write(path, content).map_err(MockError::file)?;
    Ok(is_new)
}

pub(super) fn read_or_empty(path: &Utf8Path) -> Result<String, MockError> {
    if path.exists() { read(path) } else { Ok(String::new()) }
}

pub(super) fn patch(path: &Utf8Path, find: &str, replace: &str) -> Result<(), MockError> {
    let before = read(path)?;
    if !before.contains(find) {
        let nearest = nearest_part(&before, find);
        return Err(MockError::Patch { path: path.to_owned(), find: find.to_owned(), nearest });
    }
    write(path, &before.replacen(find, replace, 1)).map(drop)
}

pub(super) fn delete(path: &Utf8Path) -> Result<(), MockError> {
    fs_err::remove_file(path).map_err(MockError::file)
}

fn read(path: &Utf8Path) -> Result<String, MockError> {
    fs_err::read_to_string(path).map_err(MockError::file)
}
