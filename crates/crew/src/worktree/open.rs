//! From a path to a descriptor, without ever leaving the worktree.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use camino::Utf8PathBuf;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2, readlink};
use rustix::io::Errno;

use super::{AccessError, Wanted, Worktree};

pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Who sees to it that no path leads out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    /// The kernel: links are followed as long as they stay inside.
    Kernel,
    /// We, a name at a time: no link is followed.
    Walk,
}

/// How often a lookup is tried again that ran into a rename. The kernel cannot say then whether a `..` stayed inside.
const PATIENCE: u32 = 64;

impl Resolution {
    /// Kernels before 5.6 have no `openat2`, and some sandboxes forbid it. Where a descriptor lies is told by `/proc`.
    pub(super) fn of_kernel(root: &OwnedFd) -> Self {
        let tried = openat2(root, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), BENEATH);
        if tried.is_ok() && place_of(root).is_some() { Self::Kernel } else { Self::Walk }
    }
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

impl Worktree {
    /// Opens what a path leads to, and says where that is.
    pub(super) fn resolve(&self, wanted: &Wanted, flags: OFlags) -> Result<(OwnedFd, Wanted), AccessError> {
        let flags = flags | OFlags::CLOEXEC;
        match self.resolution {
            Resolution::Kernel => {
                let opened = self.open_beneath(wanted, flags)?;
                let real = self.place_below(&opened, wanted)?;
                Ok((opened, real))
            }
            Resolution::Walk => Ok((self.walk(wanted, flags)?, wanted.clone())),
        }
    }

    fn open_beneath(&self, wanted: &Wanted, flags: OFlags) -> Result<OwnedFd, AccessError> {
        let path = if wanted.as_path().as_str().is_empty() { "." } else { wanted.as_path().as_str() };
        for _ in 0..PATIENCE {
            match openat2(&self.root, path, flags, Mode::empty(), BENEATH) {
                Ok(opened) => return Ok(opened),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A magic link of `/proc` is refused as a loop would be.
                Err(Errno::XDEV | Errno::LOOP) => return Err(AccessError::Outside(wanted.to_string())),
                Err(errno) => return Err(refused_open(wanted, errno)),
            }
        }
        Err(wanted.io(Errno::AGAIN))
    }

    /// Where an open file lies below the worktree. What was moved or removed meanwhile lies nowhere.
    fn place_below(&self, opened: &OwnedFd, wanted: &Wanted) -> Result<Wanted, AccessError> {
        let outside = || AccessError::Outside(wanted.to_string());
        let place = place_of(opened).ok_or_else(outside)?;
        let below = place.strip_prefix(&self.path).map_err(|_| outside())?;
        Wanted::found(below).ok_or_else(outside)
    }

    /// A name at a time; a link anywhere is an error.
    fn walk(&self, wanted: &Wanted, flags: OFlags) -> Result<OwnedFd, AccessError> {
        let told = |errno: Errno| match errno {
            Errno::LOOP => AccessError::Outside(wanted.to_string()),
            errno => refused_open(wanted, errno),
        };
        let Some((parent, name)) = wanted.split() else {
            return openat(&self.root, ".", flags, Mode::empty()).map_err(told);
        };
        let mut at = openat(&self.root, ".", DIRECTORY, Mode::empty()).map_err(told)?;
        for name in parent.names() {
            at = openat(&at, name, DIRECTORY, Mode::empty()).map_err(|errno| match errno {
                // That is how the kernel calls a link that should be a directory.
                Errno::NOTDIR => AccessError::Outside(wanted.to_string()),
                errno => told(errno),
            })?;
        }
        let opened = openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(told)?;
        // To look at a link itself is allowed with `PATH`.
        let stat = rustix::fs::fstat(&opened).map_err(told)?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink {
            return Err(AccessError::Outside(wanted.to_string()));
        }
        Ok(opened)
    }
}

/// Sockets, and devices without a driver, cannot even be opened.
fn refused_open(wanted: &Wanted, errno: Errno) -> AccessError {
    match errno {
        Errno::NXIO | Errno::NODEV => {
            AccessError::NoFile { path: wanted.to_string(), what: "a socket or a device" }
        }
        errno => wanted.io(errno),
    }
}

/// The path of an open file. None if it has none that is text.
fn place_of(opened: &impl AsFd) -> Option<Utf8PathBuf> {
    let link = format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd());
    readlink(link, Vec::new()).ok()?.into_string().ok().map(Utf8PathBuf::from)
}
