//! Writing files: whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawMode, fchmod, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{AccessError, Wanted, Worktree, no_file};

/// The place of a file that is to be written.
struct Place {
    directory: OwnedFd,
    /// Without links.
    path: Wanted,
    /// Of the file that is there already.
    mode: Option<RawMode>,
}

/// Whether there was a file before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// There was none.
    Created,
    /// Its content is another now.
    Replaced,
}

impl Worktree {
    /// Gives a file this content. Its mode stays; directories on the way are made.
    pub(crate) fn write(&self, wanted: &Wanted, content: &[u8]) -> Result<Written, AccessError> {
        let place = self.place(wanted)?;
        let io = |source: io::Error| AccessError::Io { path: wanted.to_string(), source };
        let Some((_, name)) = place.path.split() else {
            return Err(AccessError::NoFile { path: wanted.to_string(), what: "a directory" });
        };
        let temporary = Temporary::make(&place).map_err(|errno| wanted.io(errno))?;
        let mut file = File::from(temporary.file.try_clone().map_err(io)?);
        file.write_all(content).map_err(io)?;
        if let Some(mode) = place.mode {
            fchmod(&file, Mode::from_raw_mode(mode & 0o777)).map_err(|errno| wanted.io(errno))?;
        }
        temporary.rename_to(name).map_err(|errno| wanted.io(errno))?;
        Ok(if place.mode.is_some() { Written::Replaced } else { Written::Created })
    }

    /// Where to write, with all checks done.
    fn place(&self, wanted: &Wanted) -> Result<Place, AccessError> {
        wanted.may_be_written()?;
        let real = match self.resolve(wanted, OFlags::PATH) {
            Ok((_, real)) => real,
            Err(error) if error.is_not_found() => {
                let (parent, name) = wanted.split().ok_or_else(|| wanted.io(Errno::ISDIR))?;
                self.make_directories(&parent)?.join(name)
            }
            Err(error) => return Err(error),
        };
        real.may_be_written()?;
        let (parent, name) = real.split().ok_or_else(|| wanted.io(Errno::ISDIR))?;
        let directory = self.open_directory(&parent)?;
        let mode = mode_of(&directory, name, wanted)?;
        Ok(Place { directory, path: real, mode })
    }

    /// Makes what is missing of a directory; where it really is.
    fn make_directories(&self, wanted: &Wanted) -> Result<Wanted, AccessError> {
        let mut real = self.wanted(".")?;
        for name in wanted.names() {
            let next = real.join(name);
            real = match self.directory(&next) {
                Err(error) if error.is_not_found() => self.make_directory(&real, name)?,
                found => found?,
            };
        }
        Ok(real)
    }

    fn make_directory(&self, parent: &Wanted, name: &str) -> Result<Wanted, AccessError> {
        let made = parent.join(name);
        made.may_be_written()?;
        let directory = self.open_directory(parent)?;
        match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(made),
            // Not found and yet there: a link to nothing.
            Err(Errno::EXIST) => Err(AccessError::DanglingLink(made.to_string())),
            Err(errno) => Err(made.io(errno)),
        }
    }
}

/// The mode of the file with this name; none if there is none. Anything else than a file of its own is an error.
fn mode_of(directory: &OwnedFd, name: &str, wanted: &Wanted) -> Result<Option<RawMode>, AccessError> {
    let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(wanted.io(errno)),
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Symlink {
        return Err(AccessError::DanglingLink(wanted.to_string()));
    }
    if let Some(what) = no_file(kind) {
        return Err(AccessError::NoFile { path: wanted.to_string(), what });
    }
    if stat.st_nlink > 1 {
        return Err(AccessError::HardLinked(wanted.to_string()));
    }
    Ok(Some(stat.st_mode))
}

/// A file beside the one that it becomes. It is gone if it does not.
struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: Option<String>,
    file: OwnedFd,
}

impl<'a> Temporary<'a> {
    fn make(place: &'a Place) -> Result<Self, Errno> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = &place.directory;
        // A new file is as the user wants new files; one that takes another's place is nobody's until it has its mode.
        let mode = if place.mode.is_some() { 0o600 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".rehearsal-{}-{count}.tmp", std::process::id());
            match openat(directory, &name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => return Ok(Self { directory, name: Some(name), file }),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn rename_to(mut self, name: &str) -> Result<(), Errno> {
        if let Some(temporary) = &self.name {
            renameat(self.directory, temporary, self.directory, name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _stays_behind = unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}
