//! What an import may look at: files below its own directory, and clones where they are said to be.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rehearsal_app::file::read_text;
use rehearsal_app::project::Project;

use super::Target;
use crate::context::Context;

/// The directory of an imported file.
pub(super) struct Beside {
    directory: Utf8PathBuf,
}

impl Beside {
    pub(super) fn of(file: &Utf8Path) -> Self {
        Self { directory: file.parent().unwrap_or(Utf8Path::new(".")).to_owned() }
    }

    /// Reads a file below it; what leads out, by its name or by a link, is refused.
    pub(super) fn read(&self, path: &str) -> Result<String, String> {
        let path = Utf8Path::new(path);
        let is_inside = |part| matches!(part, Utf8Component::Normal(_) | Utf8Component::CurDir);
        if !path.components().all(is_inside) {
            return Err("it is outside of the file's directory".to_owned());
        }
        let none = |_| "there is no such file".to_owned();
        let root = self.directory.canonicalize_utf8().map_err(none)?;
        let real = root.join(path).canonicalize_utf8().map_err(none)?;
        if !real.starts_with(&root) {
            return Err("a link leads outside of the file's directory".to_owned());
        }
        match read_text(&real) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err("there is no such file".to_owned()),
            Err(error) => Err(crate::error::CliError::from(error).message),
        }
    }
}

/// Where repositories are.
pub(super) struct Clones {
    directory: Utf8PathBuf,
}

impl Clones {
    /// Without a directory that was named, beside the eval.
    pub(super) fn of(
        given: Option<&Utf8Path>,
        target: &Target,
        project: &Project,
        context: &Context,
    ) -> Self {
        let directory = match given {
            Some(given) => context.directory.join(given),
            None => target.directory(&project.directory()).join("repositories"),
        };
        Self { directory: directory.canonicalize_utf8().unwrap_or(directory) }
    }

    /// The clone of `owner/name`; if it is not there, where it should be.
    pub(super) fn locate(&self, name: &str) -> Result<String, String> {
        let wanted = self.directory.join(name.replace('/', "__"));
        let short = self.directory.join(name.rsplit('/').next().unwrap_or(name));
        let is_repository = |path: &Utf8PathBuf| path.join(".git").exists() || path.join("HEAD").is_file();
        let places = [wanted.clone(), short, self.directory.clone()];
        match places.into_iter().find(is_repository) {
            Some(path) => Ok(path.to_string()),
            None => Err(wanted.to_string()),
        }
    }
}
