//! One source of settings.

use super::merge::{SHAPE, in_usual_form};
use super::{Origin, Settings, TestingFile};
use crate::SourceError;
use crate::yaml::{self, Node, Tree};

/// One source of settings: a tree in the form of a configuration file, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub(super) origin: Origin,
    tree: Node,
}

impl Layer {
    /// A layer that sets nothing yet.
    pub fn new(origin: Origin) -> Self {
        Self { origin, tree: Node::map() }
    }

    /// Reads a configuration file.
    pub fn parse(text: &str, origin: Origin) -> Result<Self, SourceError> {
        Self::of(yaml::read(text)?, origin)
    }

    /// The settings in a tree. A mistake is reported here, whether or not another layer sets the same.
    pub fn of(tree: Node, origin: Origin) -> Result<Self, SourceError> {
        let tree = in_usual_form(tree, &SHAPE);
        tree.to::<Settings>()?;
        Ok(Self { origin, tree })
    }

    /// Reads a `testing.yaml`.
    pub fn parse_testing(text: &str, origin: Origin) -> Result<Self, SourceError> {
        let mut shape = Node::map();
        *shape.entry("testing") = SHAPE.get("testing").cloned().unwrap_or_else(Node::map);
        let tree = in_usual_form(yaml::read(text)?, &shape);
        tree.to::<TestingFile>()?;
        Ok(Self { origin, tree })
    }

    /// What it says at a path.
    pub fn get(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(&self.tree, |node, name| node.get(name))
    }

    /// Sets the value at a path.
    pub fn set(&mut self, path: &[&str], value: &str) {
        self.entry(path).tree = Tree::Text(value.to_owned());
    }

    /// Adds a section that may be empty: an agent exists if its section does.
    pub fn add_section(&mut self, path: &[&str]) {
        let section = self.entry(path);
        if section.tree == Tree::Null {
            section.tree = Tree::Map(Vec::new());
        }
    }

    fn entry(&mut self, path: &[&str]) -> &mut Node {
        path.iter().fold(&mut self.tree, |node, name| node.entry(name))
    }

    pub(super) fn tree(&self) -> &Node {
        &self.tree
    }
}
