//! Where two requests differ, for people: a place, what was expected, what came.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::blob::Piece;
use super::key::Key;
use super::policy::{SHOWN_DIFFERENCES, SHOWN_VALUE};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// A JSON pointer into the body, or the part of the request: `method`, `target`, `header NAME`.
    pub place: String,
    /// What was recorded; none if nothing was.
    pub expected: Option<String>,
    /// What came; none if nothing did.
    pub got: Option<String>,
}

/// The first differences of two requests.
pub(crate) fn differences(recorded: &Key, asked: &Key) -> Vec<Difference> {
    let mut found = Found { differences: Vec::new() };
    found.text("method", &recorded.method, &asked.method);
    found.text("target", &recorded.target, &asked.target);
    for name in recorded.headers.keys().chain(asked.headers.keys()).collect::<BTreeSet<_>>() {
        let (expected, got) = (recorded.headers.get(name), asked.headers.get(name));
        if expected != got {
            found.push(format!("header {name}"), expected.cloned(), got.cloned());
        }
    }
    if recorded.text != asked.text {
        found.strings(
            "",
            recorded.text.as_deref().unwrap_or_default(),
            asked.text.as_deref().unwrap_or_default(),
        );
    }
    let names: BTreeSet<&String> = [recorded, asked]
        .into_iter()
        .flat_map(|key| key.fields.keys().chain(key.blobs.keys()).chain(key.lists.keys()))
        .collect();
    // What was said last differs first: the conversation is looked at after everything that is around it.
    for name in names {
        found.field(name, recorded, asked);
    }
    found.differences
}

/// How much of two requests is the same, for choosing the nearest.
pub(crate) fn likeness(recorded: &Key, asked: &Key) -> usize {
    let lists: usize = recorded
        .lists
        .iter()
        .filter_map(|(name, list)| Some((list, asked.lists.get(name)?)))
        .map(|(old, new)| {
            let same = old.iter().zip(new).take_while(|(old, new)| old.digest == new.digest).count();
            let apart = old.len().abs_diff(new.len());
            (4 * same).saturating_sub(apart)
        })
        .sum();
    let fields = recorded.fields.iter().filter(|(name, json)| asked.fields.get(*name) == Some(*json)).count();
    let target = if recorded.target == asked.target { 1000 } else { 0 };
    target + lists + fields
}

struct Found {
    differences: Vec<Difference>,
}

impl Found {
    fn is_full(&self) -> bool {
        self.differences.len() >= SHOWN_DIFFERENCES
    }

    fn push(&mut self, place: String, expected: Option<String>, got: Option<String>) {
        if !self.is_full() {
            let cut = |text: String| cut_around(&text, 0);
            self.differences.push(Difference { place, expected: expected.map(cut), got: got.map(cut) });
        }
    }

    fn text(&mut self, place: &str, expected: &str, got: &str) {
        if expected != got {
            self.push(place.to_owned(), Some(expected.to_owned()), Some(got.to_owned()));
        }
    }

    /// Two texts, shown around the first letter that differs.
    fn strings(&mut self, place: &str, expected: &str, got: &str) {
        if expected == got || self.is_full() {
            return;
        }
        let same = expected.bytes().zip(got.bytes()).take_while(|(old, new)| old == new).count();
        self.differences.push(Difference {
            place: place.to_owned(),
            expected: Some(cut_around(expected, same)),
            got: Some(cut_around(got, same)),
        });
    }

    fn field(&mut self, name: &str, recorded: &Key, asked: &Key) {
        let place = format!("/{}", escape(name));
        let list = |key: &Key| key.lists.get(name).cloned();
        if let (Some(old), Some(new)) = (list(recorded), list(asked)) {
            return self.lists(&place, &old, &new);
        }
        let value = |key: &Key| -> Option<Value> {
            let short = key.fields.get(name).or_else(|| key.blobs.get(name).map(|piece| &piece.json));
            let whole = short.and_then(|json| serde_json::from_str(json).ok());
            whole.or_else(|| Some(Value::from(format!("{} elements", key.lists.get(name)?.len()))))
        };
        self.optional(&place, value(recorded).as_ref(), value(asked).as_ref());
    }

    fn lists(&mut self, place: &str, old: &[Piece], new: &[Piece]) {
        for index in 0..old.len().max(new.len()) {
            let (old, new) = (old.get(index), new.get(index));
            if self.is_full() || old.map(|piece| piece.digest) == new.map(|piece| piece.digest) {
                continue;
            }
            let value = |piece: Option<&Piece>| {
                piece.and_then(|piece| serde_json::from_str::<Value>(&piece.json).ok())
            };
            self.optional(&format!("{place}/{index}"), value(old).as_ref(), value(new).as_ref());
        }
    }

    fn optional(&mut self, place: &str, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) => self.values(place, old, new),
            (None, None) => {}
            (old, new) => self.push(place.to_owned(), old.map(Value::to_string), new.map(Value::to_string)),
        }
    }

    fn values(&mut self, place: &str, old: &Value, new: &Value) {
        if old == new || self.is_full() {
            return;
        }
        match (old, new) {
            (Value::Object(before), Value::Object(after)) => {
                for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
                    self.optional(&format!("{place}/{}", escape(name)), before.get(name), after.get(name));
                }
            }
            (Value::Array(before), Value::Array(after)) => {
                for index in 0..before.len().max(after.len()) {
                    self.optional(&format!("{place}/{index}"), before.get(index), after.get(index));
                }
            }
            (Value::String(before), Value::String(after)) => self.strings(place, before, after),
            _ => self.push(place.to_owned(), Some(old.to_string()), Some(new.to_string())),
        }
    }
}

/// As JSON pointers write a name.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The part of a text around a byte, on whole letters.
fn cut_around(text: &str, at: usize) -> String {
    let boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let from = boundary(at.saturating_sub(SHOWN_VALUE / 4));
    let until = boundary(from + SHOWN_VALUE);
    let before = if from > 0 { "…" } else { "" };
    let after = if until < text.len() { "…" } else { "" };
    format!("{before}{}{after}", &text[from..until])
}
