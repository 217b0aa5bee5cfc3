//! Shell: Bats.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Candidate, Confidence, Found};
use crate::Framework;

/// Bats and its libraries, kept in the repository: their own tests are not the project's.
const LIBRARIES: [&str; 5] = ["bats-core", "bats-assert", "bats-support", "bats-file", "test_helper"];

/// One run for all files: Bats has no projects.
pub(super) fn detect(found: &mut Found<'_>) {
    let tree = found.tree;
    // A directory `bats` may hold the project's tests, or Bats itself.
    let holds_bats = |path: &Utf8Path| path.file_name() == Some("bats") && tree.has(path, "install.sh");
    let is_library = |path: &Utf8Path| {
        path.ancestors().any(holds_bats)
            || path
                .components()
                .any(|part| LIBRARIES.contains(&part.as_str()) || super::FIXTURES.contains(&part.as_str()))
    };
    let directories: Vec<Utf8PathBuf> = tree
        .directories()
        .filter(|(path, files)| !is_library(path) && files.iter().any(|name| name.ends_with(".bats")))
        .map(|(path, _)| path.to_owned())
        .collect();
    let Some(first) = directories.first() else { return };
    let file = tree.files(first).iter().find(|name| name.ends_with(".bats")).cloned().unwrap_or_default();
    let mut candidate =
        Candidate::new(Framework::Bats, Utf8Path::new(""), Confidence::Certain).because(first.join(file), "");
    candidate.invocation.targets = directories
        .iter()
        .map(|path| if path.as_str().is_empty() { ".".to_owned() } else { path.to_string() })
        .collect();
    found.add(candidate);
}
