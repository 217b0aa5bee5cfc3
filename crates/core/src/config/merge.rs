//! Layers on top of each other.

use std::sync::LazyLock;

use serde::Serialize;

use super::{Layer, Origin, Origins, Profile, Settings};
use crate::SourceError;
use crate::yaml::{self, Node, Plain, Tree};

/// All settings with their defaults. A mapping that is not empty is a section: layers are merged inside it. Everything else is one
/// value, which a layer replaces as a whole. Every agent has the shape of `*`.
pub(super) static SHAPE: LazyLock<Node> = LazyLock::new(|| {
    let mut agent = defaults(&Profile::default());
    *agent.entry("budget") = Node::map();
    let mut all = defaults(&Settings::default());
    *all.entry("agents") = Node::map();
    *all.entry("agents").entry(ANY_AGENT) = agent;
    all
});

pub(super) const ANY_AGENT: &str = "*";

/// Settings as a tree. JSON keeps the order of the fields, and is YAML.
pub(super) fn defaults(settings: &impl Serialize) -> Node {
    let text = serde_json::to_string(settings).unwrap_or_default();
    yaml::read(&text).unwrap_or_else(|_| Node::map())
}

/// What is inside a section under this name.
pub(super) fn shape_of<'a>(section: &'a Node, name: &str) -> Option<&'a Node> {
    section.get(ANY_AGENT).or_else(|| section.get(name))
}

pub(super) fn is_section(shape: &Node) -> bool {
    matches!(&shape.tree, Tree::Map(entries) if !entries.is_empty())
}

/// A layer in the usual form: what is null is not set, and `sandbox: required` is `sandbox: { level: required }`.
pub(super) fn in_usual_form(mut layer: Node, shape: &Node) -> Node {
    if let Tree::Map(entries) = layer.tree {
        layer.tree = Tree::Map(entries.into_iter().filter_map(|entry| usual_entry(entry, shape)).collect());
    }
    layer
}

fn usual_entry((key, mut value): (Node, Node), section: &Node) -> Option<(Node, Node)> {
    let name: String = key.to().unwrap_or_default();
    // The deserializer refuses what is unknown, at its place.
    let Some(shape) = shape_of(section, &name) else { return Some((key, value)) };
    match &value.tree {
        Tree::Null if is_section(shape) => value.tree = Tree::Map(Vec::new()),
        Tree::Null => return None,
        Tree::Plain { .. } | Tree::Text(_) if name == "sandbox" => value = sandbox_level(value),
        _ if is_section(shape) => value = in_usual_form(value, shape),
        _ => {}
    }
    Some((key, value))
}

fn sandbox_level(mut word: Node) -> Node {
    // YAML reads a bare `off` as a boolean.
    if let Tree::Plain { value: Plain::Bool(is_on), .. } = word.tree {
        word.tree = Tree::Text(if is_on { "required" } else { "off" }.to_owned());
    }
    let mut sandbox = Node { place: word.place, ..Node::map() };
    *sandbox.entry("level") = word;
    sandbox
}

/// What the layers add up to.
pub(super) struct Merged {
    pub(super) tree: Node,
    pub(super) origins: Origins,
}

impl Merged {
    /// `layers` in rising strength.
    pub(super) fn new(layers: &[Layer]) -> Self {
        let mut merged = Self { tree: Node::map(), origins: Origins::default() };
        for layer in layers {
            merged.add(layer);
        }
        merged
    }

    /// Puts a layer on top.
    pub(super) fn add(&mut self, layer: &Layer) {
        self.origins.add(&mut self.tree, layer.tree(), &SHAPE, &layer.origin, &mut Vec::new());
    }

    pub(super) fn settings(&self) -> Result<Settings, SourceError> {
        let mut settings: Settings = self.tree.to()?;
        settings.origins = self.origins.clone();
        settings.testing.origins = self.origins.under(&["testing"]);
        for (name, profile) in &mut settings.agents {
            profile.origins = self.origins.under(&["agents", name.as_str()]);
        }
        Ok(settings)
    }
}

impl Origins {
    fn add(
        &mut self,
        into: &mut Node,
        layer: &Node,
        section: &Node,
        origin: &Origin,
        path: &mut Vec<String>,
    ) {
        for (key, value) in layer.entries().unwrap_or_default() {
            let name: String = key.to().unwrap_or_default();
            path.push(name.clone());
            match shape_of(section, &name).filter(|shape| is_section(shape)) {
                Some(shape) => {
                    let inside = into.entry(&name);
                    if inside.tree == Tree::Null {
                        inside.tree = Tree::Map(Vec::new());
                    }
                    self.add(inside, value, shape, origin, path);
                }
                None => {
                    *into.entry(&name) = value.clone();
                    self.insert(path.clone(), origin.at(value.place));
                }
            }
            path.pop();
        }
    }
}
