//! What a command has written over the project in overlay mode.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use camino::Utf8Path;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use serde::{Deserialize, Serialize};

/// The files that a command wrote, made or deleted in the project, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Written {
    /// Each file.
    pub files: Vec<WrittenFile>,
    /// Whether there were more.
    pub truncated: bool,
}

/// A file that was written, made or deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenFile {
    /// Its path in the project. What of a name is not UTF-8 is replaced.
    pub path: String,
    /// What happened to it.
    pub change: Change,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is not in the project.
    Created,
    /// It is in the project, with other content or attributes.
    Modified,
    /// It is in the project, and the command deleted it; for a directory, all that was in it.
    Deleted,
}

/// More nested directories than any tool makes; what lies deeper counts as truncated.
const DEEPEST: usize = 128;

/// Reads the upper directory of an overlay.
pub(crate) fn list(upper: &OwnedFd, project: &Utf8Path, most: usize) -> Written {
    let mut walk = Walk { project, most, written: Written::default() };
    if walk.directory(upper, Utf8Path::new(""), 0).is_none() {
        walk.written.truncated = true;
    }
    walk.written.files.sort();
    walk.written
}

struct Walk<'a> {
    project: &'a Utf8Path,
    most: usize,
    written: Written,
}

impl Walk<'_> {
    /// `None` when something was left out.
    fn directory(&mut self, directory: &OwnedFd, path: &Utf8Path, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        let mut all = Some(());
        for entry in Dir::read_from(directory).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if self.written.files.len() >= self.most {
                return None;
            }
            let path = path.join(name.to_string_lossy().as_ref());
            all = self.entry(directory, name, &path, depth).and(all);
        }
        all
    }

    fn entry(&mut self, directory: &OwnedFd, name: &CStr, path: &Utf8Path, depth: usize) -> Option<()> {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_in_project = self.project.join(path).symlink_metadata().is_ok();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let inner = openat(directory, name, flags, Mode::empty()).ok()?;
                if is_in_project && is_opaque(&inner) {
                    self.add(path, Change::Deleted);
                }
                return self.directory(&inner, path, depth + 1);
            }
            // The overlay's mark for what is gone.
            FileType::CharacterDevice if stat.st_rdev == 0 => self.add(path, Change::Deleted),
            _ if is_in_project => self.add(path, Change::Modified),
            _ => self.add(path, Change::Created),
        }
        Some(())
    }

    fn add(&mut self, path: &Utf8Path, change: Change) {
        self.written.files.push(WrittenFile { path: path.to_string(), change });
    }
}

/// Whether a directory hides all that the project has in its place.
fn is_opaque(directory: &OwnedFd) -> bool {
    let mut value = [0_u8; 1];
    let length = rustix::fs::fgetxattr(directory.as_fd(), c"user.overlay.opaque", &mut value);
    length == Ok(1) && value == *b"y"
}
