//! YAML of which everything is known with its place.

use std::sync::Arc;

use rehearsal_core::{Place, SourceError, yaml};
use serde_json::{Number, Value};

/// Where something is written.
#[derive(Debug, Clone, Default)]
pub(super) struct At {
    pub(super) place: Option<Place>,
    /// The file, if it is not the one that was given.
    pub(super) file: Option<Arc<str>>,
}

/// Something that is written, with its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) tree: Tree,
}

#[derive(Debug, Clone)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Reads YAML; JSON is YAML too.
pub(super) fn read(text: &str, file: Option<&str>) -> Result<Node, SourceError> {
    let file = file.map(Arc::from);
    node(yaml::read_foreign(text)?, file.as_ref())
}

fn node(written: yaml::Node, file: Option<&Arc<str>>) -> Result<Node, SourceError> {
    let tree = match written.tree {
        yaml::Tree::Null => Tree::Null,
        yaml::Tree::Text(text) => Tree::Text(text),
        yaml::Tree::Plain { text, value } => plain(text, value),
        yaml::Tree::List(items) => {
            Tree::List(items.into_iter().map(|item| node(item, file)).collect::<Result<_, _>>()?)
        }
        yaml::Tree::Map(entries) => {
            let pair = |(key, value): (yaml::Node, yaml::Node)| Ok((key.to()?, node(value, file)?));
            Tree::Map(entries.into_iter().map(pair).collect::<Result<_, SourceError>>()?)
        }
    };
    Ok(Node { at: At { place: written.place, file: file.cloned() }, tree })
}

fn plain(text: String, value: yaml::Plain) -> Tree {
    match value {
        yaml::Plain::Bool(is) => Tree::Bool(is),
        yaml::Plain::Unsigned(number) => Tree::Number(number.into()),
        yaml::Plain::Signed(number) => Tree::Number(number.into()),
        yaml::Plain::Float(number) => Number::from_f64(number).map_or(Tree::Text(text), Tree::Number),
    }
}

impl Node {
    pub(super) fn text(&self) -> Option<&str> {
        match &self.tree {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match &self.tree {
            Tree::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.tree, Tree::Null)
    }

    pub(super) fn list(&self) -> Option<&[Node]> {
        match &self.tree {
            Tree::List(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// What stands under each key, in order; nothing for what is no map.
    pub(super) fn pairs(&self) -> &[(String, Node)] {
        match &self.tree {
            Tree::Map(pairs) => pairs,
            _ => &[],
        }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.tree, Tree::Map(_))
    }

    /// What stands under a key; null is as nothing.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.pairs().iter().find(|(name, node)| name == key && !node.is_null()).map(|(_, node)| node)
    }

    /// The same without its places.
    pub(super) fn value(&self) -> Value {
        match &self.tree {
            Tree::Null => Value::Null,
            Tree::Bool(is) => Value::Bool(*is),
            Tree::Number(number) => Value::Number(number.clone()),
            Tree::Text(text) => Value::String(text.clone()),
            Tree::List(nodes) => nodes.iter().map(Node::value).collect(),
            Tree::Map(pairs) => pairs.iter().map(|(key, node)| (key.clone(), node.value())).collect(),
        }
    }
}
