//! What a model means by a path, before anything is looked up.

use std::fmt;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rehearsal_agent::OBEYED_IN_PROJECT;
use rustix::io::Errno;

use super::AccessError;

/// The kernel's limit.
const LONGEST: usize = 4096;

/// A path below the worktree: relative, of plain names only. Empty: the worktree itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    path: Utf8PathBuf,
}

impl Wanted {
    /// A path as it was written; `root` is where absolute ones must lie.
    pub(super) fn read(given: &str, root: &Utf8Path) -> Result<Self, AccessError> {
        if given.is_empty() {
            return Err(AccessError::NoPath("the path is empty"));
        }
        if given.contains('\0') {
            return Err(AccessError::NoPath("the path has a NUL in it"));
        }
        if given.len() > LONGEST {
            return Err(AccessError::NoPath("the path is longer than 4096 bytes"));
        }
        let outside = || AccessError::Outside(given.to_owned());
        let given_path = Utf8Path::new(given);
        let below = if given_path.is_absolute() {
            given_path.strip_prefix(root).map_err(|_| outside())?
        } else {
            given_path
        };
        let wanted = Self::of_plain_names(below).ok_or_else(outside)?;
        wanted.may_be_read()?;
        Ok(wanted)
    }

    /// A path that the kernel told, or a walk found.
    pub(super) fn found(path: &Utf8Path) -> Option<Self> {
        Self::of_plain_names(path)
    }

    /// None if it goes up.
    fn of_plain_names(path: &Utf8Path) -> Option<Self> {
        let mut names = Utf8PathBuf::new();
        for component in path.components() {
            match component {
                Utf8Component::Normal(name) => names.push(name),
                Utf8Component::CurDir => {}
                Utf8Component::ParentDir | Utf8Component::RootDir | Utf8Component::Prefix(_) => return None,
            }
        }
        Some(Self { path: names })
    }

    pub(crate) fn as_path(&self) -> &Utf8Path {
        &self.path
    }

    /// The directory that it is in, and its name there; none for the worktree itself.
    pub(super) fn split(&self) -> Option<(Self, &str)> {
        Some((Self { path: self.path.parent()?.to_owned() }, self.path.file_name()?))
    }

    pub(crate) fn join(&self, name: &str) -> Self {
        Self { path: self.path.join(name) }
    }

    /// The directories above it, from the worktree itself on.
    pub(crate) fn ancestors(&self) -> Vec<Self> {
        let mut above: Vec<Self> =
            self.path.ancestors().skip(1).map(|path| Self { path: path.to_owned() }).collect();
        above.reverse();
        above
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.path.components().map(|component| component.as_str())
    }

    /// git executes what its directory says, and a nested one is obeyed as well. Where the file system does not tell letters apart, neither
    /// must we.
    pub(super) fn may_be_read(&self) -> Result<(), AccessError> {
        if self.names().any(|name| name.eq_ignore_ascii_case(".git")) {
            return Err(AccessError::Git(self.to_string()));
        }
        Ok(())
    }

    /// Not what says how agents work, and not what the engine keeps.
    pub(super) fn may_be_written(&self) -> Result<(), AccessError> {
        self.may_be_read()?;
        let mut names = self.names();
        let is_ours = names.next().is_some_and(|name| name.eq_ignore_ascii_case(".rehearsal"));
        let is_obeyed = |name: &str| {
            OBEYED_IN_PROJECT.iter().chain(&["state"]).any(|obeyed| name.eq_ignore_ascii_case(obeyed))
        };
        match names.next() {
            // As a file, `.rehearsal` would take the place of all that is in it.
            None if is_ours => Err(AccessError::Obeyed(self.to_string())),
            Some(name) if is_ours && is_obeyed(name) => Err(AccessError::Obeyed(self.to_string())),
            _ => Ok(()),
        }
    }

    pub(super) fn io(&self, errno: Errno) -> AccessError {
        AccessError::Io { path: self.to_string(), source: errno.into() }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.path.as_str().is_empty() { "." } else { self.path.as_str() })
    }
}
