//! Rust: packages and workspaces, with cargo-nextest where it is installed.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use globset::Glob;
use serde::Deserialize;

use super::{Candidate, Confidence, Found};
use crate::Framework;

#[derive(Debug, Default, Deserialize)]
struct Manifest {
    package: Option<serde::de::IgnoredAny>,
    workspace: Option<Workspace>,
    lib: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    test: Vec<Target>,
}

#[derive(Debug, Default, Deserialize)]
struct Workspace {
    #[serde(default)]
    members: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: Option<String>,
    harness: Option<bool>,
}

pub(super) fn detect(found: &mut Found<'_>, has_program: &dyn Fn(&str) -> bool) {
    let mut manifests: BTreeMap<Utf8PathBuf, Manifest> = BTreeMap::new();
    for root in found.tree.having("Cargo.toml").map(Utf8Path::to_owned).collect::<Vec<_>>() {
        match toml::from_str(&found.tree.read(&root, "Cargo.toml").unwrap_or_default()) {
            Ok(manifest) => drop(manifests.insert(root, manifest)),
            Err(error) => {
                let error: toml::de::Error = error;
                found.note(format!("{} cannot be read: {}", root.join("Cargo.toml"), error.message()));
                manifests
                    .insert(root, Manifest { package: Some(serde::de::IgnoredAny), ..Manifest::default() });
            }
        }
    }
    for (root, manifest) in &manifests {
        if manifest.package.is_none() && manifest.workspace.is_none() {
            continue;
        }
        let what = if manifest.workspace.is_some() { "a workspace" } else { "a package" };
        let evidence = |framework| {
            Candidate::new(framework, root, Confidence::Certain).because(root.join("Cargo.toml"), what)
        };
        if let Some(workspace) = workspace_of(root, &manifests) {
            found.add(evidence(Framework::CargoTest).passed_over(workspace));
            continue;
        }
        let members: Vec<_> =
            manifests.iter().filter(|(path, _)| is_run_with(path, root, &manifests)).collect();
        let has_library =
            members.iter().any(|(path, it)| it.lib.is_some() || found.tree.has(&path.join("src"), "lib.rs"));
        let own_harness = members
            .iter()
            .find_map(|(path, it)| Some((path, it.test.iter().find(|test| test.harness == Some(false))?)));
        let mut cargo = evidence(Framework::CargoTest);
        let mut nextest = evidence(Framework::Nextest);
        let configured = found.tree.has(&root.join(".config"), "nextest.toml");
        if configured {
            nextest = nextest.because(root.join(".config/nextest.toml"), "");
        }
        // nextest runs no doctests: the planner adds them where there is a library.
        nextest.invocation.targets.extend(has_library.then(|| "doc".to_owned()));
        match own_harness {
            _ if !has_program("cargo-nextest") => {
                nextest = nextest.passed_over("cargo-nextest is not installed");
            }
            Some((path, test)) if !configured => {
                let name = test.name.as_deref().unwrap_or("?");
                let file = path.join("Cargo.toml");
                nextest = nextest.passed_over(format!("test `{name}` of `{file}` has a harness of its own"));
            }
            _ => cargo = cargo.passed_over("cargo-nextest is installed, and tells more"),
        }
        // Without cargo-nextest and without a word of the project it is not worth mentioning.
        if nextest.passed_over.is_none() || configured {
            found.add(nextest);
        }
        found.add(cargo);
    }
}

/// Whether a package is run when the tests of `root` are.
fn is_run_with(path: &Utf8Path, root: &Utf8Path, manifests: &BTreeMap<Utf8PathBuf, Manifest>) -> bool {
    let in_workspace = || manifests.get(root).is_some_and(|it| it.workspace.is_some());
    path == root || (path.starts_with(root) && in_workspace() && workspace_of(path, manifests).is_some())
}

/// The workspace above that a package belongs to, as a reason.
fn workspace_of(root: &Utf8Path, manifests: &BTreeMap<Utf8PathBuf, Manifest>) -> Option<String> {
    if manifests.get(root).is_some_and(|own| own.workspace.is_some()) {
        return None;
    }
    root.ancestors().skip(1).find_map(|above| {
        let workspace = manifests.get(above)?.workspace.as_ref()?;
        let relative = root.strip_prefix(above).ok()?;
        if workspace.exclude.iter().any(|excluded| relative.starts_with(excluded.trim_end_matches('/'))) {
            return None;
        }
        let matches = |glob: &String| {
            Glob::new(glob.trim_end_matches('/')).is_ok_and(|glob| glob.compile_matcher().is_match(relative))
        };
        let above = if above.as_str().is_empty() { "." } else { above.as_str() };
        Some(if workspace.members.iter().any(matches) {
            format!("it is a member of the workspace in `{above}`")
        } else {
            format!("it lies in the workspace of `{above}`: cargo runs it there or not at all")
        })
    })
}
