//! Packages within packages: whose tests are run where.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use super::package::Package;
use crate::Framework;
use crate::detect::Candidate;
use crate::detect::tree::Tree;

/// Runs nothing twice. A runner that looks for test files in all directories below runs those of nested packages
/// too; a root that only hands on to its workspaces gives way to them.
pub(super) fn settle(candidates: &mut [Candidate], packages: &BTreeMap<Utf8PathBuf, Package>, tree: &Tree) {
    let running: Vec<(Framework, Utf8PathBuf, bool)> = candidates
        .iter()
        .filter(|it| it.passed_over.is_none())
        .map(|it| (it.framework, it.root.clone(), looks_below(it)))
        .collect();
    for candidate in candidates.iter_mut().filter(|it| it.passed_over.is_none()) {
        let above = running.iter().find(|(framework, root, looks_below)| {
            *looks_below
                && *framework == candidate.framework
                && *root != candidate.root
                && candidate.root.starts_with(root)
        });
        if let Some((framework, root, _)) = above {
            let root = if root.as_str().is_empty() { "." } else { root.as_str() };
            candidate.passed_over = Some(format!("{framework} in `{root}` runs its tests too"));
            continue;
        }
        let Some(package) = packages.get(&candidate.root) else { continue };
        let members = members(&candidate.root, package, tree);
        let has_tested_member = running.iter().any(|(_, root, _)| {
            root != &candidate.root
                && root
                    .strip_prefix(&candidate.root)
                    .is_ok_and(|relative| members.is_match(relative.as_str()))
        });
        if has_tested_member && (candidate.framework == Framework::Generic || package.delegates()) {
            candidate.passed_over =
                Some("it hands on to its workspaces, which are run one by one".to_owned());
        }
    }
}

/// Whether the runner takes test files from all directories below its root.
fn looks_below(candidate: &Candidate) -> bool {
    let names_files =
        candidate.invocation.args.iter().any(|arg| !arg.starts_with('-') && arg.contains(['/', '*']));
    match candidate.framework {
        Framework::Jest | Framework::Vitest | Framework::Bun => true,
        Framework::NodeTest => !names_files,
        _ => false,
    }
}

#[derive(Deserialize)]
struct PnpmWorkspace {
    #[serde(default)]
    packages: Vec<String>,
}

/// The members of a workspace, relative to its root.
fn members(root: &Utf8Path, package: &Package, tree: &Tree) -> GlobSet {
    let mut globs = package.workspaces().to_vec();
    let pnpm = tree.read(root, "pnpm-workspace.yaml");
    let pnpm = pnpm.and_then(|text| rehearsal_core::yaml::from_str::<PnpmWorkspace>(&text).ok());
    globs.extend(pnpm.map(|it| it.packages).unwrap_or_default());
    let mut set = GlobSetBuilder::new();
    for glob in globs.iter().filter(|glob| !glob.starts_with('!')) {
        let glob = glob.strip_prefix("./").unwrap_or(glob).trim_end_matches('/');
        if let Ok(glob) = Glob::new(glob) {
            set.add(glob);
        }
    }
    set.build().unwrap_or_default()
}

/// The package manager whose lock file the package, or a directory above it, has.
pub(super) fn package_manager(tree: &Tree, root: &Utf8Path) -> &'static str {
    const LOCKS: [(&str, &str); 5] = [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
        ("package-lock.json", "npm"),
    ];
    let of =
        |directory: &Utf8Path| LOCKS.iter().find(|(lock, _)| tree.has(directory, lock)).map(|(_, it)| *it);
    root.ancestors().find_map(of).unwrap_or("npm")
}
