//! Where our files are that belong to a repository and are outside of it.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::Settings;
use rehearsal_forge::{WorktreeError, WorktreeSettings, Worktrees};
use sha2::{Digest, Sha256};

use crate::caller::Caller;
use crate::project::{Project, ProjectError};

/// Why the worktrees of a repository cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorktreesError {
    /// There is no directory for them.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The directory cannot be used.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
}

/// The worktrees of a repository, where its settings want them.
pub async fn open_worktrees(settings: &Settings, project: &Project) -> Result<Worktrees, WorktreesError> {
    let under = worktrees(settings, project)?;
    let settings = WorktreeSettings {
        setup: settings.worktrees.setup.clone(),
        keep_warm: settings.worktrees.keep_warm as usize,
    };
    Ok(Worktrees::open(&project.root, &under, settings)?)
}

/// The directory under which this repository's worktrees are.
pub fn worktrees(settings: &Settings, project: &Project) -> Result<Utf8PathBuf, ProjectError> {
    match &settings.worktrees.directory {
        Some(directory) => Ok(project.root.join(directory)),
        None => Ok(data_directory(&project.caller)?.join("worktrees").join(name_of(&project.root))),
    }
}

/// The bare repository that is used where there is no remote.
pub(crate) fn own_remote(project: &Project) -> Result<Utf8PathBuf, ProjectError> {
    Ok(data_directory(&project.caller)?.join("remotes").join(format!("{}.git", name_of(&project.root))))
}

pub(crate) fn data_directory(caller: &Caller) -> Result<Utf8PathBuf, ProjectError> {
    let absolute = |name: &str| caller.variable(name).filter(|value| value.starts_with('/'));
    let base = match (absolute("XDG_DATA_HOME"), absolute("HOME")) {
        (Some(data), _) => Utf8PathBuf::from(data),
        (None, Some(home)) => Utf8Path::new(home).join(".local/share"),
        (None, None) => return Err(ProjectError::NoDataDirectory),
    };
    Ok(base.join("rehearsal"))
}

/// The repository's name, for people, and a hash of its path, because two may have the same name.
pub(crate) fn name_of(root: &Utf8Path) -> String {
    let whole = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
    let hash = Sha256::digest(whole.as_str());
    let short: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{short}", whole.file_name().unwrap_or("repository"))
}
