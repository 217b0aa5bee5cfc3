//! Scenarios: those to play, a few to begin with, and one from a run that was real.

mod play;
mod promote;

use camino::Utf8PathBuf;

use crate::project::{Project, ProjectError};

pub use play::{RehearseError, find, suite};
pub use promote::{PromoteDocument, PromoteError, promote};

/// Name and text of each.
const STARTER: [(&str, &str); 3] = [
    ("first-steps", include_str!("scenarios/first-steps.yaml")),
    ("rejected-once", include_str!("scenarios/rejected-once.yaml")),
    ("worker-killed", include_str!("scenarios/worker-killed.yaml")),
];

/// Where a project's scenarios are.
pub fn directory(project: &Project) -> Utf8PathBuf {
    project.directory().join("scenarios")
}

fn path_of(project: &Project, name: &str) -> Utf8PathBuf {
    directory(project).join(format!("{name}.yaml"))
}

/// Writes the scenarios to begin with that are not there yet; returns their files.
pub fn write_starter(project: &Project) -> Result<Vec<String>, ProjectError> {
    project.caller.may_change()?;
    let mut written = Vec::new();
    for (name, text) in STARTER {
        let path = path_of(project, name);
        if !path.exists() {
            fs_err::create_dir_all(directory(project))?;
            fs_err::write(&path, text)?;
            written.push(project.shown(&path));
        }
    }
    Ok(written)
}
