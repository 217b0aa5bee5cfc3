//! The files of a worktree at one moment, as one name: which there are, and when each was last written, without a look into
//! any. While it stays the same, what git found out about them holds.

use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use camino::Utf8Path;
use sha2::{Digest, Sha256};

use super::admin::Admin;

/// The print of a worktree: its files, and git's index of them.
pub(super) fn print_of(worktree: &Utf8Path, admin: &Admin) -> io::Result<String> {
    let mut print = Sha256::new();
    for name in ["index", "HEAD"] {
        add(&mut print, name.as_bytes(), &admin.dir.join(name).symlink_metadata()?);
    }
    let mut open = vec![worktree.as_std_path().to_owned()];
    while let Some(directory) = open.pop() {
        for (path, found) in entries(&directory)? {
            let name = path.strip_prefix(worktree).unwrap_or(&path);
            add(&mut print, name.as_os_str().as_bytes(), &found);
            if found.is_dir() {
                open.push(path);
            }
        }
    }
    Ok(print.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What is in a directory, in the order of the names. Links are not followed.
fn entries(directory: &Path) -> io::Result<Vec<(std::path::PathBuf, Metadata)>> {
    let entries = fs_err::read_dir(directory)?.map(|entry| {
        let entry = entry?;
        Ok((entry.path(), entry.metadata()?))
    });
    let mut entries: Vec<_> = entries.collect::<io::Result<_>>()?;
    entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(entries)
}

/// A file that was written, made, moved or replaced has another change time, which no program can set.
fn add(print: &mut Sha256, name: &[u8], found: &Metadata) {
    print.update((name.len() as u64).to_le_bytes());
    print.update(name);
    for number in [found.ino(), found.size(), u64::from(found.mode()), u64::from(found.uid())] {
        print.update(number.to_le_bytes());
    }
    for number in [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()] {
        print.update(number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    #[test]
    fn whatever_is_done_to_a_file_shows() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().to_owned()).unwrap();
        let (worktree, admin) = (root.join("worktree"), Admin { dir: root.join("admin") });
        fs_err::create_dir_all(worktree.join("deep/er")).unwrap();
        fs_err::create_dir_all(&admin.dir).unwrap();
        for file in ["worktree/deep/er/a", "worktree/b", "admin/index", "admin/HEAD"] {
            fs_err::write(root.join(file), "one").unwrap();
        }
        let mut before = print_of(&worktree, &admin).unwrap();
        assert_eq!(print_of(&worktree, &admin).unwrap(), before);
        let replace = |file: &str| {
            // Another file of the same size: its number tells, however coarse the clock is.
            fs_err::write(root.join("new"), "two").unwrap();
            fs_err::rename(root.join("new"), root.join(file)).unwrap();
        };
        let deeds: [(&str, &dyn Fn()); 5] = [
            ("replace a file", &|| replace("worktree/deep/er/a")),
            ("add a file", &|| fs_err::write(worktree.join("deep/c"), "").unwrap()),
            ("remove a file", &|| fs_err::remove_file(worktree.join("b")).unwrap()),
            ("add a directory", &|| fs_err::create_dir(worktree.join("deep/d")).unwrap()),
            ("replace the index", &|| replace("admin/index")),
        ];
        for (what, deed) in deeds {
            deed();
            let after = print_of(&worktree, &admin).unwrap();
            assert_ne!(after, before, "{what}");
            before = after;
        }
    }
}
