//! A temporary directory on the disk, for where there is no private file system. Removed when dropped, and by the next
//! owner if this one is killed.

use std::io;
use std::path::{Path, PathBuf};

use crate::owner;

#[derive(Debug)]
pub(crate) struct Scratch {
    directory: PathBuf,
}

impl Scratch {
    pub(crate) fn make() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        owner::sweep(&parent, |directory| std::fs::remove_dir_all(directory));
        let directory = parent.join(owner::new_name()?);
        // Fails if it is there already, also as a link that somebody prepared.
        std::fs::DirBuilder::new().create(&directory)?;
        let scratch = Self { directory };
        std::fs::set_permissions(&scratch.directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _swept_later = std::fs::remove_dir_all(&self.directory);
    }
}
