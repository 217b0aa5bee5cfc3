//! Where things of ours are that belong to a repository and are outside of it.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::Settings;
use sha2::{Digest, Sha256};

use crate::error::CliError;
use crate::project::Project;

/// The directory under which this repository's worktrees are.
pub(crate) fn worktrees(settings: &Settings, project: &Project) -> Result<Utf8PathBuf, CliError> {
    match &settings.worktrees.directory {
        Some(directory) => Ok(project.root.join(directory)),
        None => Ok(data_directory()?.join("worktrees").join(name_of(&project.root))),
    }
}

/// The bare repository that stands in for a remote where there is none.
pub(crate) fn own_remote(project: &Project) -> Result<Utf8PathBuf, CliError> {
    Ok(data_directory()?.join("remotes").join(format!("{}.git", name_of(&project.root))))
}

fn data_directory() -> Result<Utf8PathBuf, CliError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| value.starts_with('/'));
    let base = variable("XDG_DATA_HOME").or_else(|| Some(format!("{}/.local/share", variable("HOME")?)));
    let base = base.ok_or_else(|| {
        CliError::usage("there is no place for worktrees: neither XDG_DATA_HOME nor HOME is set")
            .hint("set `directory:` under `worktrees:` in .rehearsal/config.yaml")
    })?;
    Ok(Utf8PathBuf::from(base).join("rehearsal"))
}

/// The repository's name, for people, and a hash of its path: two of one name are two.
fn name_of(root: &Utf8Path) -> String {
    let whole = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
    let hash = Sha256::digest(whole.as_str());
    let short: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{short}", whole.file_name().unwrap_or("repository"))
}
