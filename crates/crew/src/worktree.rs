//! The one way to the files of a worktree: confined to it by the kernel, whatever a path says.
//!
//! A path is looked at twice. As it is written: no `..`, nothing absolute that lies elsewhere, no `.git`. And where it really led, after
//! all links: `openat2` lets none lead out of the worktree, and what was opened says by itself where it lies, so that a link to a
//! place that is refused does not help either. Kernels without `openat2` get a walk that follows no links at all.
//!
//! **Invariant:** between a check and what is done nothing is looked up by its full path again: files are read through the descriptor
//! that was checked, and written by a rename inside of a directory that is held open.

mod open;
mod path;
mod write;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{FileType, OFlags, fstat};

use open::Resolution;
pub(crate) use path::Wanted;
pub(crate) use write::Written;

/// A worktree whose files can be reached.
#[derive(Debug)]
pub(crate) struct Worktree {
    /// Without links.
    path: Utf8PathBuf,
    root: OwnedFd,
    resolution: Resolution,
}

/// Why a file cannot be had. Each is a text for a model, which knows the path as it wrote it.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Not a path at all.
    #[error("{0}")]
    NoPath(&'static str),
    /// It lies elsewhere, or leads there.
    #[error("`{0}` is outside of the worktree: only files below it can be used")]
    Outside(String),
    /// It is git's.
    #[error("`{0}` belongs to git: it can be neither read nor changed as a file")]
    Git(String),
    /// It says how agents work.
    #[error("`{0}` says how agents work: no agent changes it")]
    Obeyed(String),
    /// A pipe, a device, a socket.
    #[error("`{path}` is {what}, and no regular file")]
    NoFile {
        /// As it was asked for.
        path: String,
        /// What it is instead.
        what: &'static str,
    },
    /// It has another name, who knows where.
    #[error(
        "`{0}` has more than one name (hard links), and others may be outside of the worktree: remove it first, then write it anew"
    )]
    HardLinked(String),
    /// A link that leads nowhere.
    #[error("`{0}` is a link to nothing: remove it first, then write it anew")]
    DanglingLink(String),
    /// More than can be handled at once.
    #[error("`{path}` has {size} bytes, and more than {limit} cannot be handled at once")]
    TooLarge {
        /// As it was asked for.
        path: String,
        /// How much it is.
        size: u64,
        /// How much it may be.
        limit: u64,
    },
    /// What the system says.
    #[error("`{path}` {}", in_words(source))]
    Io {
        /// As it was asked for.
        path: String,
        /// What it said.
        source: io::Error,
    },
}

impl AccessError {
    /// Whether there is nothing at all.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether it is something else than the directory that was wanted.
    pub(crate) fn is_no_directory(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    }
}

/// A regular file that was opened to be read.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) size: u64,
}

impl Worktree {
    pub(crate) fn open(path: &Utf8Path) -> Result<Self, AccessError> {
        let told = |source: io::Error| AccessError::Io { path: path.to_string(), source };
        let path = path.canonicalize_utf8().map_err(told)?;
        let root = rustix::fs::open(path.as_str(), open::DIRECTORY, rustix::fs::Mode::empty())
            .map_err(|errno| told(errno.into()))?;
        let resolution = Resolution::of_kernel(&root);
        Ok(Self { path, root, resolution })
    }

    /// Where it is, without links.
    pub(crate) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// What a model means by a path.
    pub(crate) fn wanted(&self, given: &str) -> Result<Wanted, AccessError> {
        Wanted::read(given, &self.path)
    }

    /// Opens a regular file. Never waits, whatever is there.
    pub(crate) fn read(&self, wanted: &Wanted) -> Result<Opened, AccessError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (file, real) = self.resolve(wanted, flags)?;
        real.may_be_read()?;
        let stat = fstat(&file).map_err(|errno| wanted.io(errno))?;
        if let Some(what) = no_file(FileType::from_raw_mode(stat.st_mode)) {
            return Err(AccessError::NoFile { path: wanted.to_string(), what });
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(Opened { file: File::from(file), size })
    }

    /// The whole content of a file that is no larger than `limit`.
    pub(crate) fn read_whole(&self, wanted: &Wanted, limit: u64) -> Result<Vec<u8>, AccessError> {
        let Opened { file, size, .. } = self.read(wanted)?;
        let mut content = Vec::new();
        // One byte more than allowed: it may grow while we read.
        file.take(limit + 1)
            .read_to_end(&mut content)
            .map_err(|source| AccessError::Io { path: wanted.to_string(), source })?;
        let size = size.max(content.len() as u64);
        if size > limit {
            return Err(AccessError::TooLarge { path: wanted.to_string(), size, limit });
        }
        Ok(content)
    }

    /// Opens a directory that was found by its real path, to list it.
    pub(crate) fn open_directory(&self, found: &Wanted) -> Result<OwnedFd, AccessError> {
        let (opened, real) = self.resolve(found, open::DIRECTORY.difference(OFlags::NOFOLLOW))?;
        // Somebody has put a link there meanwhile.
        if real == *found { Ok(opened) } else { Err(AccessError::Outside(found.to_string())) }
    }

    /// The directory that a path leads to, below the worktree and without links.
    pub(crate) fn directory(&self, wanted: &Wanted) -> Result<Wanted, AccessError> {
        let (_, real) = self.resolve(wanted, OFlags::PATH | OFlags::DIRECTORY)?;
        real.may_be_read()?;
        Ok(real)
    }
}

/// What else than a regular file something is.
fn no_file(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        _ => Some("something else"),
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        io::ErrorKind::NotADirectory => "leads through something that is no directory".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "may not be used by us (permission denied)".to_owned(),
        _ => format!("cannot be used: {error}"),
    }
}

#[cfg(test)]
mod tests;
