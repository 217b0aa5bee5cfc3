//! Errors in what people wrote, with the place where they wrote it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

/// A place in a text: both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Something in a file that a person wrote is not right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// What is wrong: one lowercase sentence.
    pub message: String,
    /// Where, if it can be told.
    pub place: Option<Place>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl SourceError {
    /// An error at a place.
    pub fn at(place: Option<Place>, message: impl Into<String>) -> Self {
        Self { message: message.into(), place, hint: None }
    }

    /// The same with advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Where a value stood in its YAML.
pub fn place_of<T>(spanned: &Spanned<T>) -> Option<Place> {
    place_at(spanned.referenced)
}

fn place_at(location: serde_saphyr::Location) -> Option<Place> {
    (location.line() > 0).then(|| Place { line: location.line(), column: location.column() })
}

/// A mapping whose keys keep their order and their places.
#[derive(Debug, Clone)]
pub struct Entries<K, T>(pub Vec<(Spanned<K>, T)>);

impl<K, T> Default for Entries<K, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, K: Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for Entries<K, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<K, T>(PhantomData<(K, T)>);
        impl<'de, K: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<K, T> {
            type Value = Entries<K, T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping from names")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

/// A YAML error in our words: the message in one line, the place apart.
pub fn yaml_error(error: &serde_saphyr::Error) -> SourceError {
    let place = error.location().and_then(place_at);
    let message = error.without_snippet().to_string();
    let message = message.lines().next().unwrap_or_default();
    // The library appends the place to some messages; it is kept apart here.
    let message = message.split(" at line ").next().unwrap_or(message).trim_end_matches(&[':', ','][..]);
    // Advice to whoever calls the library, not to whoever wrote the file.
    let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or(message);
    let message = message.strip_prefix("invalid ").and_then(number_expected).unwrap_or(message);
    let error = SourceError::at(place, message);
    match near_hint(message).or_else(|| missing_hint(message)) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// ``missing field `start` `` is told at a key of the mapping that lacks it.
fn missing_hint(message: &str) -> Option<String> {
    let name = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(format!("add `{name}: …` here"))
}

/// The library names its own types.
fn number_expected(name: &str) -> Option<&'static str> {
    match name {
        "u8" | "u16" | "u32" | "u64" | "i64" => Some("expected a whole number"),
        "f64" => Some("expected a number"),
        _ => None,
    }
}

/// ``unknown field `agnts`, expected one of agents, …`` tells all names: find the one that was meant.
pub(crate) fn near_hint(message: &str) -> Option<String> {
    let rest =
        message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"))?;
    let (written, known) = rest.split_once("`, expected")?;
    let known = known.trim_start_matches(" one of").split(',').map(|name| name.trim().trim_matches('`'));
    nearest(written, known.filter(|name| !name.is_empty())).map(|near| format!("did you mean `{near}`?"))
}

/// The name nearest to what was written, if one is near enough to be meant.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = ((written.chars().count() + 1) / 3).max(1);
    known
        .into_iter()
        .map(|name| (edit_distance(written, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// How many letters have to be put in, left out, replaced, or swapped with their neighbours.
fn edit_distance(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|text| text.chars().collect());
    let mut above: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(above[j - 1] + 1);
            }
            row.push(least);
        }
        above = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_a_stranger_is_not() {
        let known = ["implementer", "gatekeeper"];
        assert_eq!(nearest("implementor", known), Some("implementer"));
        assert_eq!(nearest("gatekeepr", known), Some("gatekeeper"));
        assert_eq!(nearest("planner", known), None);
    }

    #[test]
    fn two_letters_that_changed_places_are_one_slip() {
        assert_eq!(nearest("doen", ["todo", "done", "failed"]), Some("done"));
        assert_eq!(nearest("odne", ["todo", "done", "failed"]), Some("done"));
        assert_eq!(nearest("enod", ["todo", "done", "failed"]), None);
    }
}
