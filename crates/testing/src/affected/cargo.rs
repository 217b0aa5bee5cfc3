//! Rust: the graph of a workspace's packages, from `cargo metadata`.

use rehearsal_core::TestResult;
use serde::Deserialize;

use super::graph::{Graph, directory, upwards};
use super::{Reach, Reached, Selector};
use crate::Framework;

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Option<Resolve>,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: String,
    #[serde(default)]
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

pub(super) fn reach(
    framework: Framework,
    files: &[&str],
    failed_before: &[TestResult],
    json: &str,
    root: &str,
) -> Reached {
    let metadata: Metadata = serde_json::from_str(json)
        .map_err(|error| format!("the answer of `cargo metadata` cannot be read: {error}"))?;
    let resolve = metadata.resolve.ok_or("cargo did not tell what depends on what")?;
    let members: Vec<&Package> =
        metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id)).collect();
    let mut graph = Graph::default();
    for node in &resolve.nodes {
        graph.node(&node.id);
        for dependency in &node.dependencies {
            graph.depends(dependency, &node.id);
        }
    }
    let mut changed: Vec<&Package> = Vec::new();
    for file in files {
        let owner = upwards(directory(file))
            .find_map(|directory| members.iter().find(|member| within(member, root) == Some(directory)));
        // What lies beside the packages may be included by any of them.
        changed.push(owner.ok_or_else(|| format!("`{file}` changed, and belongs to no package"))?);
    }
    let reached = graph.reached_from(changed.iter().map(|package| package.id.as_str()));
    let mut reach = Reach::default();
    let mut again: Vec<&Package> = Vec::new();
    for test in failed_before {
        let owners: Vec<&Package> = members.iter().copied().filter(|member| member.has(test)).collect();
        if owners.is_empty() {
            return Err(format!("`{}` failed before, in a package that is not there", test.name));
        }
        if owners.iter().any(|owner| !graph.is_reached(&reached, &owner.id)) {
            reach.failed_before += 1;
            // cargo selects packages, or tests of all: not both at once. And it alone runs tests of documentation.
            if framework == Framework::CargoTest || test.package.ends_with(DOCUMENTATION) {
                again.extend(owners);
            } else {
                reach.selectors.push(Selector::of(test));
            }
        }
    }
    for member in members {
        if graph.is_reached(&reached, &member.id) || again.iter().any(|package| package.id == member.id) {
            reach.selectors.push(Selector::Package(member.name.clone()));
        } else {
            reach.skipped.push(member.name.clone());
        }
    }
    Ok(reach)
}

/// How a binary of documentation's tests is told from others.
const DOCUMENTATION: &str = " (doc)";

impl Package {
    /// Whether a test of an earlier run is one of its own. nextest names the package (`shop-core::it`), cargo the binary
    /// (`shop_core`, `it`, `shop_core (doc)`), which several packages may have.
    fn has(&self, test: &TestResult) -> bool {
        let named = test.package.trim_end_matches(DOCUMENTATION);
        let package = named.split_once("::").map_or(named, |(package, _)| package);
        let is_target = |target: &Target| target.name.replace('-', "_") == named;
        self.name == package || self.name.replace('-', "_") == named || self.targets.iter().any(is_target)
    }
}

/// The directory of a package within the project.
fn within<'p>(package: &'p Package, root: &str) -> Option<&'p str> {
    let directory = directory(&package.manifest_path);
    let rest = directory.strip_prefix(root.trim_end_matches('/'))?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}
