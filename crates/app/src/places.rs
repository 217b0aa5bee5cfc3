//! Where our files are that belong to a repository and are outside of it.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::Settings;
use rehearsal_forge::{WorktreeError, WorktreeSettings, Worktrees};
use rehearsal_git::GitError;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::caller::Caller;
use crate::project::{Project, ProjectError};

/// Why the worktrees of a repository cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum WorktreesError {
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for WorktreesError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// A directory that is deleted with the second value.
pub fn scratch(prefix: &str) -> Result<(Utf8PathBuf, TempDir), ProjectError> {
    let scratch = tempfile::Builder::new().prefix(prefix).tempdir()?;
    let path = Utf8PathBuf::from_path_buf(scratch.path().canonicalize()?).map_err(ProjectError::NotUtf8)?;
    Ok((path, scratch))
}

/// The same outside of `/tmp` where possible: some agent CLIs make `/tmp` writable, and keep no helpers below it.
pub(crate) fn scratch_outside_tmp(prefix: &str) -> Result<(Utf8PathBuf, TempDir), ProjectError> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix(prefix);
    let scratch = builder.tempdir_in("/var/tmp").or_else(|_| builder.tempdir())?;
    let path = Utf8PathBuf::from_path_buf(scratch.path().canonicalize()?).map_err(ProjectError::NotUtf8)?;
    Ok((path, scratch))
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
