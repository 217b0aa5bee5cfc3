//! YAML that people write: read once into a tree with places, then deserialized from that tree.
//!
//! The YAML library is generic over the type that it reads into, and large. It is instantiated here for one type only, so every other
//! type costs no more than a small [`Deserializer`](serde::Deserializer) over [`Node`].

mod de;
mod error;
mod raw;
mod spanned;

use serde::de::DeserializeOwned;

pub use raw::{read, read_foreign, read_multiple};
pub use spanned::{Entries, Spanned};

use crate::{Place, SourceError};

/// A value and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it starts, or where the alias is that stands for it; none if it is not from a text.
    pub place: Option<Place>,
    /// What is written there.
    pub tree: Tree,
}

/// What is written at one place.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// Nothing, `~` or `null`.
    Null,
    /// Unquoted text that YAML reads as something else. The text is kept: `version: 1.10` may be a string to its reader.
    Plain {
        /// As written.
        text: String,
        /// As read.
        value: Plain,
    },
    /// Quoted text, block text, or unquoted text that is nothing else.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping in the order in which it is written. No key occurs twice.
    Map(Vec<(Node, Node)>),
}

/// What YAML reads in unquoted text.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the variants are named after the types that they hold")]
pub enum Plain {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl Node {
    /// An empty mapping that is not from a text.
    pub(crate) fn map() -> Self {
        Self { place: None, tree: Tree::Map(Vec::new()) }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let entry = self.entries().ok()?.iter().find(|(name, _)| name.text() == Ok(key));
        entry.map(|(_, value)| value)
    }

    /// The value of a key, null if it is new. What is not a mapping becomes one.
    pub(crate) fn entry(&mut self, key: &str) -> &mut Self {
        if !matches!(self.tree, Tree::Map(_)) {
            self.tree = Tree::Map(Vec::new());
        }
        let Tree::Map(entries) = &mut self.tree else { unreachable!("it became a mapping above") };
        let known = entries.iter().position(|(name, _)| name.text() == Ok(key));
        let index = known.unwrap_or_else(|| {
            let node = |tree| Self { place: None, tree };
            entries.push((node(Tree::Text(key.to_owned())), node(Tree::Null)));
            entries.len() - 1
        });
        &mut entries[index].1
    }

    /// Deserializes the value. An error has the place of what is wrong.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, SourceError> {
        T::deserialize(self).map_err(|error| error.or_at(self.place))
    }
}

/// Reads a text with one document.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, SourceError> {
    read(text)?.to()
}

#[cfg(test)]
mod tests;
