//! A disk on which there is little room.

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;

/// A small file system in place of a directory.
pub(crate) struct SmallDisk {
    path: Utf8PathBuf,
}

impl SmallDisk {
    /// None where one may not mount, which is said aloud.
    pub(crate) fn mount(path: Utf8PathBuf, size: &str) -> Option<Self> {
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs", path.as_str()]).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            let _ = writeln!(
                std::io::stderr(),
                "left out: a small file system cannot be mounted here (it takes root)"
            );
            return None;
        }
        Some(Self { path })
    }

    /// Leaves no room. This process may still be closing the database, whose files give room back, also when
    /// they are removed already: that is waited for.
    pub(crate) fn fill(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.is_used_here() {
            assert!(Instant::now() < deadline, "the database is not closed");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut chunk = 64 << 10;
        let mut file = fs_err::File::create(self.path.join("ballast")).unwrap();
        while chunk > 0 {
            if file.write_all(&vec![b'x'; chunk]).is_err() {
                chunk /= 2;
            }
        }
    }

    fn is_used_here(&self) -> bool {
        let open = fs_err::read_dir("/proc/self/fd").unwrap().flatten();
        open.into_iter().flat_map(|entry| entry.path().read_link()).any(|file| file.starts_with(&self.path))
    }

    pub(crate) fn free(&self) {
        fs_err::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path.as_str()).status();
    }
}
