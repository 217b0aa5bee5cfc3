//! What an import may look at: files below its own directory, and clones where they are said to be.

use crate::file::read_text;
use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// Reads a file below a directory; what leads out, by its name or by a link, is refused.
pub(super) fn read_below(directory: &Utf8Path, path: &str) -> Result<String, String> {
    let path = Utf8Path::new(path);
    let is_inside = |part| matches!(part, Utf8Component::Normal(_) | Utf8Component::CurDir);
    if !path.components().all(is_inside) {
        return Err("it is outside of the file's directory".to_owned());
    }
    let none = |_| "there is no such file".to_owned();
    let root = directory.canonicalize_utf8().map_err(none)?;
    let real = root.join(path).canonicalize_utf8().map_err(none)?;
    if !real.starts_with(&root) {
        return Err("a link leads outside of the file's directory".to_owned());
    }
    match read_text(&real) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err("there is no such file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The clone of `owner/name` in a directory; if it is not there, where it should be.
pub(super) fn find_clone(directory: &Utf8Path, name: &str) -> Result<String, String> {
    let wanted = directory.join(name.replace('/', "__"));
    let short = directory.join(name.rsplit('/').next().unwrap_or(name));
    let is_repository = |path: &Utf8PathBuf| path.join(".git").exists() || path.join("HEAD").is_file();
    match [wanted.clone(), short, directory.to_owned()].into_iter().find(is_repository) {
        Some(path) => Ok(path.to_string()),
        None => Err(wanted.to_string()),
    }
}
