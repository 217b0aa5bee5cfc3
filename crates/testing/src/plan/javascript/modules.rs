//! What is installed in `node_modules`.

use camino::{Utf8Path, Utf8PathBuf};
use globset::Glob;
use serde::Deserialize;

use super::super::Planner;
use crate::detect::file::read_inside;

/// So many files a glob of a script stands for at most.
const MOST_FILES: usize = 10_000;

/// A program of the project: from its own `node_modules` or one above, up to the repository's, else from the `PATH`.
pub(crate) fn program(planner: &Planner<'_>, name: &str) -> Option<Utf8PathBuf> {
    let local =
        module_directories(planner).map(|modules| modules.join(".bin").join(name)).find(|it| it.is_file());
    local.or_else(|| planner.find(name))
}

/// Directories of modules that are links to outside of the repository.
pub(crate) fn linked(planner: &Planner<'_>) -> Vec<Utf8PathBuf> {
    let real = module_directories(planner).filter_map(|modules| modules.canonicalize_utf8().ok());
    real.filter(|modules| !modules.starts_with(planner.repository)).collect()
}

pub(crate) fn version(planner: &Planner<'_>, package: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Manifest {
        version: String,
    }
    module_directories(planner).find_map(|modules| {
        let directory = modules.join(package).canonicalize_utf8().ok()?;
        let text = read_inside(&directory, &directory.join("package.json"))?;
        serde_json::from_str(&text).ok().map(|manifest: Manifest| manifest.version)
    })
}

fn module_directories<'a>(planner: &'a Planner<'_>) -> impl Iterator<Item = Utf8PathBuf> + 'a {
    let inside = |directory: &&Utf8Path| directory.starts_with(planner.repository);
    planner.root.ancestors().take_while(inside).map(|directory| directory.join("node_modules"))
}

/// The files that a shell would make of a glob; what is none stays as it is.
pub(super) fn expanded(root: &Utf8Path, arg: String) -> Vec<String> {
    if arg.starts_with('-') || !arg.contains(['*', '?', '{']) {
        return vec![arg];
    }
    let pattern = arg.trim_start_matches("./");
    let Ok(glob) = globset::GlobBuilder::new(pattern).literal_separator(true).build() else {
        return vec![arg];
    };
    let matcher = Glob::compile_matcher(&glob);
    let mut files: Vec<String> = Vec::new();
    let mut pending = vec![Utf8PathBuf::new()];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = root.join(&directory).read_dir_utf8() else { continue };
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (directory.join(entry.file_name()), entry.file_type()) else { continue };
            if kind.is_dir() && entry.file_name() != "node_modules" && entry.file_name() != ".git" {
                pending.push(path);
            } else if kind.is_file() && matcher.is_match(&path) {
                files.push(path.into_string());
            }
        }
        if files.len() + pending.len() > MOST_FILES {
            break;
        }
    }
    files.sort();
    if files.is_empty() { vec![arg] } else { files }
}
