//! Where the state of a repository is: its database, runs and logs. It is outside of the working tree, where neither `git clean` nor
//! an agent reaches it, under a key that the repository keeps in its git directory. So a repository that is moved keeps its state,
//! and a clone begins without one.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_git::Repository;
use rehearsal_store::SqliteStore;

use super::{DIRECTORY, ProjectError};
use crate::caller::Caller;
use crate::places::{data_directory, name_of};

/// In the git directory: the key, and in a second line [`HAS_STORE`] once there was a store.
const KEY_FILE: &str = "rehearsal-state";
const HAS_STORE: &str = "has a store";
/// In the state: the root of the repository that it belongs to.
const ROOT_FILE: &str = "repository";

/// The state of a repository.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Where it is.
    pub(super) directory: Utf8PathBuf,
    /// Where the key is kept; none without a git directory that can be written.
    key_file: Option<Utf8PathBuf>,
}

impl State {
    /// Where it is, or will be. The key is drawn when it is first asked for.
    pub(super) fn find(root: &Utf8Path, caller: &Caller) -> Result<Self, ProjectError> {
        let all = data_directory(caller)?.join("state");
        let git_dir = Repository::find(root).ok().flatten().map(|repository| repository.git_dir);
        let Some(key_file) = git_dir.map(|git_dir| git_dir.join(KEY_FILE)) else {
            return Ok(Self { directory: all.join(name_of(root)), key_file: None });
        };
        if let Some((key, _)) = read_key(&key_file)? {
            return Ok(Self { directory: all.join(key), key_file: Some(key_file) });
        }
        let name = root.file_name().unwrap_or("repository");
        let key = format!("{name}-{:08x}", rehearsal_engine::random_bits() >> 32);
        Ok(match write_new(&key_file, &format!("{key}\n")) {
            Ok(()) => Self { directory: all.join(key), key_file: Some(key_file) },
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Self::find(root, caller),
            Err(_) => Self { directory: all.join(name_of(root)), key_file: None },
        })
    }

    /// Makes the directory, and refuses to begin anew where tasks should be.
    pub(super) fn prepare(&self, root: &Utf8Path, holds_store: bool) -> Result<(), ProjectError> {
        use std::os::unix::fs::DirBuilderExt;
        self.take_over(&root.join(DIRECTORY).join("state"))?;
        let had_store = match &self.key_file {
            Some(file) => read_key(file)?.is_some_and(|(_, has_store)| has_store),
            None => false,
        };
        if holds_store && had_store && !SqliteStore::is_in(self.directory.as_std_path()) {
            let key_file = self.key_file.clone().unwrap_or_default();
            return Err(ProjectError::LostState { directory: self.directory.clone(), key_file });
        }
        // What agents say is private.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        self.check_owner(root)
    }

    /// Notes that there is a store now.
    pub(super) fn note_store(&self) -> io::Result<()> {
        let Some(file) = &self.key_file else { return Ok(()) };
        match read_key(file) {
            Ok(Some((key, false))) => fs_err::write(file, format!("{key}\n{HAS_STORE}\n")),
            _ => Ok(()),
        }
    }

    /// The state of an earlier version was in the working tree.
    fn take_over(&self, earlier: &Utf8Path) -> Result<(), ProjectError> {
        if !SqliteStore::is_in(earlier.as_std_path()) || self.directory.exists() {
            return Ok(());
        }
        if let Some(above) = self.directory.parent() {
            fs_err::create_dir_all(above)?;
        }
        fs_err::rename(earlier, &self.directory).map_err(|source| ProjectError::NotMoved {
            from: earlier.to_owned(),
            to: self.directory.clone(),
            source,
        })
    }

    /// A copy of a repository has the key of the original. Both would work on the same tasks.
    fn check_owner(&self, root: &Utf8Path) -> Result<(), ProjectError> {
        let Some(key_file) = &self.key_file else { return Ok(()) };
        let root = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
        let file = self.directory.join(ROOT_FILE);
        let owner = fs_err::read_to_string(&file).map(|text| Utf8PathBuf::from(text.trim_end())).ok();
        if owner.as_ref() == Some(&root) {
            return Ok(());
        }
        if let Some(owner) = owner
            && let Some(repository) = Repository::find(&owner).ok().flatten()
            && repository.root == owner
            && let (Ok(theirs), Ok(ours)) = (read_key(&repository.git_dir.join(KEY_FILE)), read_key(key_file))
            && theirs.is_some()
            && theirs.map(|(key, _)| key) == ours.map(|(key, _)| key)
        {
            return Err(ProjectError::CopiedRepository { original: owner, key_file: key_file.clone() });
        }
        Ok(fs_err::write(file, format!("{root}\n"))?)
    }
}

/// The key of a repository, and whether there was a store.
fn read_key(file: &Utf8Path) -> Result<Option<(String, bool)>, ProjectError> {
    let text = match fs_err::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(ProjectError::BrokenKey { file: file.to_owned() });
        }
        Err(error) => return Err(error.into()),
    };
    let mut lines = text.lines();
    let key = lines.next().unwrap_or_default().to_owned();
    let is_name = !key.is_empty() && key != "." && key != ".." && !key.contains('/');
    if !is_name {
        return Err(ProjectError::BrokenKey { file: file.to_owned() });
    }
    Ok(Some((key, lines.any(|line| line == HAS_STORE))))
}

fn write_new(file: &Utf8Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    // Whole or not at all: a reader never sees half of a key.
    let above = file.parent().unwrap_or(file);
    let mut new = tempfile::NamedTempFile::new_in(above)?;
    new.write_all(text.as_bytes())?;
    new.persist_noclobber(file).map(drop).map_err(|error| error.error)
}
