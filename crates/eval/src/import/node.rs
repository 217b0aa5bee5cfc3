//! YAML of which everything is known with its place.

use std::sync::Arc;

use rehearsal_core::{Place, SourceError, place_of, yaml_error};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::Spanned;

/// So often one anchor may stand for another thing: what it stands for is there as often in memory.
const MOST_EXPANSIONS: usize = 50;
/// So many things may come of anchors in all.
const MOST_REPLAYED: usize = 50_000;

/// What is said of a file that would fill the memory, or the stack.
const TOO_MUCH: &str = "this stands for more than is read: too deep, too long, or anchors in anchors";

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

/// What is written.
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
    let options = serde_saphyr::options! {
        // As JavaScript reads it: `y` and `on` are texts.
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MOST_REPLAYED,
            max_alias_expansions_per_anchor: MOST_EXPANSIONS,
        },
    };
    let mut node: Node = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let error = yaml_error(&error);
        let is_too_much =
            ["budget", "alias", "recursion limit"].iter().any(|start| error.message.starts_with(start));
        if is_too_much { SourceError::at(error.place, TOO_MUCH) } else { error }
    })?;
    if let Some(file) = file {
        node.is_of(&Arc::from(file));
    }
    Ok(node)
}

impl Node {
    fn is_of(&mut self, file: &Arc<str>) {
        self.at.file = Some(Arc::clone(file));
        match &mut self.tree {
            Tree::List(nodes) => nodes.iter_mut().for_each(|node| node.is_of(file)),
            Tree::Map(pairs) => pairs.iter_mut().for_each(|(_, node)| node.is_of(file)),
            _ => {}
        }
    }

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

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Tree>::deserialize(deserializer)?;
        Ok(Self { at: At { place: place_of(&spanned), file: None }, tree: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Tree;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E>(self, is: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
        Ok(Number::from_f64(number).map_or_else(|| Tree::Text(number.to_string()), Tree::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Tree, E> {
        Ok(Tree::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Tree::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
        }
        Ok(Tree::Map(pairs))
    }
}
