//! Keeps secrets out of what is written down: logs, events, errors, warnings.
//!
//! Two kinds are known: the values of variables whose names speak of secrets, and texts that have the shape of
//! a well-known kind of key. What is neither cannot be recognised by anyone.

mod stream;

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use rehearsal_core::Activity;
use rehearsal_core::secret::{KEY_SHAPES, KeyShape, is_secret_variable, secret_texts};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use stream::RedactedStream;

/// Replaces secrets by their names.
#[derive(Debug, Clone)]
pub struct Redactor {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// None if the library refused the patterns: then only whole texts are withheld.
    search: Option<AhoCorasick>,
    replacements: Vec<Pattern>,
    longest: usize,
    /// What it was made of.
    secrets: Vec<Secret>,
}

/// A text that must not be shown, and the variable that it comes from.
#[derive(Debug, PartialEq, Eq)]
struct Secret {
    text: String,
    name: String,
}

#[derive(Debug)]
enum Pattern {
    /// A value that is known: what to write in its place.
    Value(String),
    /// The beginning of a key of some kind.
    Shape(&'static KeyShape),
}

/// A secret in a text.
#[derive(Debug, Clone, Copy)]
struct Found<'a> {
    start: usize,
    end: usize,
    replacement: &'a str,
    /// A key of a known shape that goes on until its alphabet ends: maybe beyond the text at hand.
    shape: Option<&'static KeyShape>,
}

impl Redactor {
    /// A redactor for the secret-like ones among these variables.
    pub fn new<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        Self::of(secrets_in(variables))
    }

    /// The same; it is the last one again if that knows just these secrets, for it takes longer to make one than to
    /// search most texts.
    pub(crate) fn renewed<'a>(
        last: Option<Self>,
        variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Self {
        let secrets = secrets_in(variables);
        last.filter(|last| last.inner.secrets == secrets).unwrap_or_else(|| Self::of(secrets))
    }

    fn of(secrets: Vec<Secret>) -> Self {
        let values = secrets
            .iter()
            .map(|secret| (secret.text.as_str(), Pattern::Value(format!("[redacted:{}]", secret.name))));
        let shapes = KEY_SHAPES.iter().map(|shape| (shape.prefix, Pattern::Shape(shape)));
        let (needles, replacements): (Vec<&str>, Vec<Pattern>) = values.chain(shapes).unzip();
        let reach = KEY_SHAPES.iter().map(|shape| shape.prefix.len() + shape.at_least);
        let longest = needles.iter().map(|needle| needle.len()).chain(reach).max().unwrap_or(1);
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&needles).ok();
        Self { inner: Arc::new(Inner { search, replacements, longest, secrets }) }
    }

    /// The text without its secrets.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = Vec::new();
        let mut from = 0;
        while let Some(found) = self.find(text.as_bytes(), from, None) {
            out.extend_from_slice(&text.as_bytes()[from..found.start]);
            out.extend_from_slice(found.replacement.as_bytes());
            from = found.end;
        }
        if from == 0 {
            return Cow::Borrowed(text);
        }
        out.extend_from_slice(&text.as_bytes()[from..]);
        // Values are whole texts and shapes are ASCII, so no character was cut.
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }

    /// A stream of bytes without its secrets, in any chunking.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream::new(self.clone())
    }

    /// The same value with every text in it redacted. None if it is no value that JSON can carry.
    pub fn redact_all<T: Serialize + DeserializeOwned>(&self, value: &T) -> Option<T> {
        let mut json = serde_json::to_value(value).ok()?;
        self.redact_json(&mut json);
        serde_json::from_value(json).ok()
    }

    fn redact_json(&self, json: &mut Value) {
        match json {
            Value::String(text) => self.redact_in_place(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact_json(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// An activity without secrets.
    pub(crate) fn redact_activity(&self, mut activity: Activity) -> Activity {
        match &mut activity {
            Activity::ToolCalled { tool, detail, arguments } => {
                self.redact_in_place(tool);
                self.redact_in_place(detail);
                *arguments = arguments.take().and_then(|arguments| self.redact_arguments(&arguments));
            }
            Activity::Text { text }
            | Activity::ToolReturned { tool: text, .. }
            | Activity::Retrying { message: text }
            | Activity::Unreadable { reason: text } => self.redact_in_place(text),
            Activity::Started { .. } | Activity::Turn { .. } | Activity::Usage { .. } => {}
        }
        activity
    }

    /// Text by text: in JSON a secret may be written in many ways. What cannot be read is not told.
    fn redact_arguments(&self, arguments: &str) -> Option<String> {
        let mut json: Value = serde_json::from_str(arguments).ok()?;
        self.redact_json(&mut json);
        Some(self.redact(&json.to_string()).into_owned())
    }

    pub(crate) fn redact_in_place(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// The first secret at or after `from`. `before` is the byte in front of the text.
    fn find(&self, text: &[u8], from: usize, before: Option<u8>) -> Option<Found<'_>> {
        let search = self.inner.search.as_ref()?;
        let mut at = from;
        loop {
            let found = search.find(aho_corasick::Input::new(text).range(at..))?;
            let (start, end) = (found.start(), found.end());
            match self.inner.replacements.get(found.pattern().as_usize())? {
                Pattern::Value(replacement) => {
                    return Some(Found { start, end, replacement, shape: None });
                }
                Pattern::Shape(shape) => {
                    let previous = start.checked_sub(1).map_or(before, |index| text.get(index).copied());
                    if let Some(end) = shape.end_of_key(text, end, previous) {
                        let shape = Some(*shape);
                        return Some(Found { start, end, replacement: "[redacted]", shape });
                    }
                    at = start + 1;
                }
            }
        }
    }
}

fn secrets_in<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<Secret> {
    let mut secrets: Vec<Secret> = Vec::new();
    for (name, value) in variables.into_iter().filter(|(name, value)| is_secret_variable(name, value)) {
        for text in secret_texts(value) {
            if secrets.iter().all(|secret| secret.text != text) {
                secrets.push(Secret { text, name: name.clone() });
            }
        }
    }
    secrets
}

#[cfg(test)]
mod tests;
