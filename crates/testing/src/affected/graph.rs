//! What is reached when something changes: a graph walked against its arrows.

use std::collections::HashMap;

/// Nodes by name, each with those that depend on it.
#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    index: HashMap<&'a str, usize>,
    dependants: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    /// The node of this name, made if need be.
    pub(super) fn node(&mut self, name: &'a str) -> usize {
        *self.index.entry(name).or_insert_with(|| {
            self.dependants.push(Vec::new());
            self.dependants.len() - 1
        })
    }

    pub(super) fn depends(&mut self, on: &'a str, dependant: &'a str) {
        let (on, dependant) = (self.node(on), self.node(dependant));
        self.dependants[on].push(dependant);
    }

    /// For every node whether it is one of these, or depends on one.
    pub(super) fn reached_from(&self, changed: impl IntoIterator<Item = &'a str>) -> Vec<bool> {
        let mut reached = vec![false; self.dependants.len()];
        let mut open: Vec<usize> =
            changed.into_iter().filter_map(|name| self.index.get(name).copied()).collect();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                open.extend(&self.dependants[node]);
            }
        }
        reached
    }

    pub(super) fn is_reached(&self, reached: &[bool], name: &str) -> bool {
        self.index.get(name).is_some_and(|node| reached[*node])
    }
}

/// The directory of a file; empty for the project's own.
pub(super) fn directory(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// A directory and all above it, the project's own included.
pub(super) fn upwards(directory: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(directory);
    std::iter::from_fn(move || {
        let this = next?;
        next = if this.is_empty() { None } else { Some(self::directory(this)) };
        Some(this)
    })
}
