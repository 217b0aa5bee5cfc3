//! Rust: the graph of a workspace's packages, from `cargo metadata`.

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

pub(super) fn reach(framework: Framework, files: &[&str], json: &str, root: &str) -> Reached {
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
    for member in members {
        if graph.is_reached(&reached, &member.id) {
            reach.selectors.push(Selector::Package(member.name.clone()));
        } else {
            reach.skipped.push(member.name.clone());
        }
    }
    if framework == Framework::Nextest {
        let filters = changed.iter().map(|package| Selector::Filter(format!("rdeps(={})", package.name)));
        reach.selectors = filters.collect();
    }
    Ok(reach)
}

/// The directory of a package within the project.
fn within<'p>(package: &'p Package, root: &str) -> Option<&'p str> {
    let directory = directory(&package.manifest_path);
    let rest = directory.strip_prefix(root.trim_end_matches('/'))?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}
