//! Where cargo builds. cargo tells what is fresh by the times of files: two checkouts that share a target directory
//! can run each other's binaries, and a test that fails in one passes with the other's code. So a directory that is
//! shared gets a subdirectory for each checkout.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::super::{Planner, RunPlan};
use crate::detect::file::read_inside;

#[derive(Default, Deserialize)]
struct Config {
    #[serde(default)]
    build: Build,
}

#[derive(Default, Deserialize)]
struct Build {
    #[serde(rename = "target-dir")]
    target_dir: Option<String>,
}

pub(super) fn keep_apart(planner: &Planner<'_>, plan: &mut RunPlan) {
    let root = planner.root.canonicalize_utf8().unwrap_or_else(|_| planner.root.clone());
    let (directory, named_by) =
        configured(planner, &root).unwrap_or_else(|| (root.join("target"), String::new()));
    if directory.starts_with(&root) {
        plan.writable.push(directory);
        return;
    }
    let own = directory.join("rehearsal").join(key(&root));
    plan.note(format!(
        "{named_by} builds into `{directory}`, which other checkouts may share: this one builds into `{own}`"
    ));
    plan.set("CARGO_TARGET_DIR", own.as_str());
    plan.writable.push(own);
}

/// The target directory that the environment or a configuration file names.
fn configured(planner: &Planner<'_>, root: &Utf8Path) -> Option<(Utf8PathBuf, String)> {
    for variable in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"] {
        if let Some(directory) = planner.machine.variable(variable) {
            return Some((root.join(directory), format!("`{variable}`")));
        }
    }
    let home = planner.machine.cache("CARGO_HOME", ".cargo");
    let above = root.ancestors().map(|directory| directory.join(".cargo"));
    above.chain(home).find_map(|directory| {
        ["config.toml", "config"].iter().find_map(|name| {
            let config: Config = toml::from_str(&read_inside(&directory, &directory.join(name))?).ok()?;
            // A relative one is relative to what holds `.cargo`.
            let target = directory.parent()?.join(config.build.target_dir?);
            Some((target, format!("`{}`", directory.join(name))))
        })
    })
}

/// Names a checkout by its place.
fn key(root: &Utf8Path) -> String {
    let digest = Sha256::digest(root.as_str());
    let short: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{short}", root.file_name().unwrap_or("root"))
}
