//! From text to a tree: the only place that calls the YAML library.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, NonFiniteFloatPolicy, Options};

use super::{Node, Plain, Tree};
use crate::{Place, SourceError};

/// What is said of a file that would fill the memory, or the stack.
const TOO_MUCH: &str = "this stands for more than is read: too deep, too long, or anchors in anchors";
/// Deeper than what people write. The library is recursive: a level takes about 35 KiB of stack in a debug build.
const MOST_LEVELS: usize = 40;
/// How often one anchor of a foreign file may be used: each use is a copy in memory.
const MOST_EXPANSIONS: usize = 50;
/// How many values may come from anchors in one foreign file.
const MOST_REPLAYED: usize = 50_000;

/// Reads a text with one document.
pub fn read(text: &str) -> Result<Node, SourceError> {
    read_with(text, options())
}

/// Reads a file of another tool: booleans as in JavaScript, where `y` and `on` are texts, and few copies of anchors.
pub fn read_foreign(text: &str) -> Result<Node, SourceError> {
    let mut options = options();
    options.strict_booleans = true;
    options.alias_limits.max_total_replayed_events = MOST_REPLAYED;
    options.alias_limits.max_alias_expansions_per_anchor = MOST_EXPANSIONS;
    read_with(text, options)
}

/// Reads all documents of a text, separated by `---`.
pub fn read_multiple(text: &str) -> Result<Vec<Node>, SourceError> {
    let documents: Vec<Raw> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| syntax_error(&error))?;
    Ok(documents.into_iter().map(|raw| raw.in_text(text)).collect())
}

fn read_with(text: &str, options: Options) -> Result<Node, SourceError> {
    let raw: Raw =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| syntax_error(&error))?;
    Ok(raw.in_text(text))
}

fn options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: MOST_LEVELS },
        // Whether infinity is allowed is known to whoever asks for a number.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    }
}

/// An error of the library in our words: one line, and the place apart.
fn syntax_error(error: &serde_saphyr::Error) -> SourceError {
    let place = error.location().and_then(place_at);
    let message = error.to_string();
    let message = message.lines().next().unwrap_or_default();
    let is_too_much = ["budget breached", "alias replay", "alias expansion", "recursion limit"]
        .iter()
        .any(|start| message.starts_with(start));
    if is_too_much {
        return SourceError::at(place, TOO_MUCH);
    }
    // The library appends the place to some messages, and to others advice for its caller.
    let message = [" at line ", ", set DuplicateKeyPolicy", "; use from_str"]
        .iter()
        .fold(message, |message, end| message.split(end).next().unwrap_or(message));
    let message = match message.trim_end_matches([':', ',']) {
        "recursive references require weak recursion types" => "this anchor contains itself",
        message => message,
    };
    SourceError::at(place, message)
}

fn place_at(location: Location) -> Option<Place> {
    (location.line() > 0).then(|| Place { line: location.line(), column: location.column() })
}

/// A node as the library hands it out: the text of plain scalars is still to be taken from the source.
struct Raw {
    referenced: Location,
    defined: Location,
    tree: RawTree,
}

enum RawTree {
    Null,
    Plain(Plain),
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(Raw, Raw)>),
}

impl Raw {
    fn in_text(self, source: &str) -> Node {
        let tree = match self.tree {
            RawTree::Null => Tree::Null,
            RawTree::Plain(value) => Tree::Plain { text: written(self.defined, source, value), value },
            RawTree::Text(text) => Tree::Text(text),
            RawTree::List(items) => Tree::List(items.into_iter().map(|item| item.in_text(source)).collect()),
            RawTree::Map(entries) => {
                let entry = |(key, value): (Self, Self)| (key.in_text(source), value.in_text(source));
                Tree::Map(entries.into_iter().map(entry).collect())
            }
        };
        Node { place: place_at(self.referenced), tree }
    }
}

/// The text of a plain scalar. With a tag, the text is quoted or in a block: then it is the value in its usual form.
fn written(location: Location, source: &str, value: Plain) -> String {
    let span = location.span();
    let slice = || {
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let length = usize::try_from(span.byte_len()?).ok()?;
        source.get(start..start + length)
    };
    match slice().map(str::trim) {
        Some(text) if !text.starts_with(['!', '"', '\'', '|', '>']) => text.to_owned(),
        _ => match value {
            Plain::Bool(value) => value.to_string(),
            Plain::Unsigned(value) => value.to_string(),
            Plain::Signed(value) => value.to_string(),
            Plain::Float(value) => value.to_string(),
        },
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::<RawTree>::deserialize(deserializer)?;
        Ok(Self { referenced: spanned.referenced, defined: spanned.defined, tree: spanned.value })
    }
}

impl<'de> Deserialize<'de> for RawTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyTree)
    }
}

struct AnyTree;

impl<'de> Visitor<'de> for AnyTree {
    type Value = RawTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<RawTree, E> {
        Ok(RawTree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawTree, E> {
        Ok(RawTree::Plain(Plain::Bool(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawTree, E> {
        Ok(RawTree::Plain(Plain::Unsigned(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawTree, E> {
        Ok(RawTree::Plain(Plain::Signed(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawTree, E> {
        Ok(RawTree::Plain(Plain::Float(value)))
    }

    fn visit_str<E>(self, text: &str) -> Result<RawTree, E> {
        Ok(RawTree::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<RawTree, E> {
        Ok(RawTree::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawTree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawTree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawTree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(RawTree::Map(map))
    }
}
