//! Reports and events in JSON: what they share, whoever wrote them.

use std::borrow::Cow;
use std::fmt;

use memchr::memmem;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Map, Value};

use super::whole::{Document, Whole};
use crate::{Event, Sink};

/// What a test printed may stand in one line with its end.
pub(super) const LONGEST_LINE: usize = 64 << 20;

/// What looks like a document and is none is looked through again; a text of nothing else is given up.
const MOST_READ_AGAIN: usize = 16;

/// The event in a line; what was printed without a line end may stand before it.
pub(super) fn event<T: for<'a> Deserialize<'a>>(line: &str) -> Option<T> {
    let line = with_whole_characters(line);
    let mut starts = memmem::find_iter(line.as_bytes(), b"{\"");
    starts.find_map(|at| Deserializer::from_str(&line[at..]).into_iter::<T>().next()?.ok())
}

/// Reads the elements of one kind of report. They are named by paths: `""` is the whole document, `a.b` a field, `a[]`
/// each element of an array. An element that holds others which are asked for comes after them and without them.
pub(super) trait JsonReader: Default + Send {
    const PATHS: &'static [&'static str];

    fn element(&mut self, path: &str, element: Value, sink: &mut dyn Sink);

    /// There is no more. Returns whether the end of a document that has begun is missing.
    fn end_of_input(&mut self, is_inside: bool, _: &mut dyn Sink) -> bool {
        is_inside
    }
}

/// A parser made of a reader of elements.
pub(super) type JsonReport<R> = Whole<Elements<R>>;

#[derive(Debug, Default)]
pub(super) struct Elements<R>(R);

impl<R: JsonReader> Document for Elements<R> {
    fn read(&mut self, text: &str, sink: &mut dyn Sink) {
        let reader = &mut self.0;
        let is_whole = elements(text, R::PATHS, &mut |path, element| reader.element(path, element, sink));
        if reader.end_of_input(!is_whole, sink) {
            sink.event(Event::Complaint("the report breaks off"));
        }
    }
}

/// Hands on the elements of all documents in a text, whatever was printed around them; of one that breaks off, those
/// that stand before. Returns whether all documents that began have ended.
pub(crate) fn elements(
    text: &str,
    paths: &[&'static str],
    take: &mut dyn FnMut(&'static str, Value),
) -> bool {
    let text = with_whole_characters(text);
    let mut walk = |document: &str| {
        let walk = Walk { path: "", paths, take: &mut *take };
        walk.deserialize(&mut Deserializer::from_str(document))
    };
    let (mut at, mut wasted) = (0, 0);
    while let Some(start) = text[at..].find(['{', '[']).map(|start| at + start) {
        let rest = &text[start..];
        let mut documents = Deserializer::from_str(rest).into_iter::<&RawValue>();
        at = start + 1;
        match may_begin(rest).then(|| documents.next()).flatten() {
            Some(Ok(document)) => {
                at = start + documents.byte_offset();
                if walk(document.get()).is_err() {
                    return false;
                }
            }
            // What stands before the error is handed on; the error is known already.
            Some(Err(error)) => {
                drop(walk(rest));
                wasted += rest.split_inclusive('\n').take(error.line()).map(str::len).sum::<usize>();
                if error.is_eof() || wasted > MOST_READ_AGAIN * text.len() {
                    return false;
                }
            }
            None => {}
        }
    }
    true
}

/// A bracket begins a document if what follows can stand there in JSON, and is not a number in brackets.
fn may_begin(text: &str) -> bool {
    let array = text.starts_with('[');
    let next = text[1..].trim_start().chars().next();
    next.is_some_and(|next| next == '"' || if array { "{[]".contains(next) } else { next == '}' })
}

/// One value of a document, on the way to the elements that are asked for.
struct Walk<'a> {
    path: &'static str,
    paths: &'a [&'static str],
    take: &'a mut dyn FnMut(&'static str, Value),
}

impl Walk<'_> {
    fn is_asked(&self) -> bool {
        self.paths.contains(&self.path)
    }

    /// What of each path lies below this value, and the path.
    fn below(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let rests = self.paths.iter().filter_map(|path| Some((path.strip_prefix(self.path)?, *path)));
        rests.filter(|(rest, _)| self.path.is_empty() || rest.starts_with(['.', '[']))
    }

    /// The path of a field, or of each element, if something there is asked for.
    fn child(&self, step: &str) -> Option<&'static str> {
        self.below().find_map(|(rest, path)| {
            let after = rest.strip_prefix('.').unwrap_or(rest).strip_prefix(step)?;
            (after.is_empty() || after.starts_with(['.', '['])).then(|| &path[..path.len() - after.len()])
        })
    }

    fn at(&mut self, path: &'static str) -> Walk<'_> {
        Walk { path, paths: self.paths, take: &mut *self.take }
    }

    fn end(self, value: Value) {
        if self.is_asked() {
            (self.take)(self.path, value);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        if self.below().any(|(rest, _)| !rest.is_empty()) {
            return input.deserialize_any(self);
        }
        Value::deserialize(input).map(|value| self.end(value))
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut fields: M) -> Result<(), M::Error> {
        let mut others = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if let Some(path) = self.child(&name) {
                fields.next_value_seed(self.at(path))?;
            } else if self.is_asked() {
                others.insert(name, fields.next_value()?);
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        self.end(Value::Object(others));
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut values: S) -> Result<(), S::Error> {
        let Some(path) = self.child("[]") else {
            while values.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        while values.next_element_seed(self.at(path))?.is_some() {}
        self.end(Value::Array(Vec::new()));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// Half surrogates (Python writes them for bytes that are no UTF-8) are replaced, so that they do not cost the whole
/// document.
fn with_whole_characters(json: &str) -> Cow<'_, str> {
    let half = |at: usize, kinds: &[u8]| {
        let escape = json.as_bytes().get(at..at + 4);
        matches!(escape, Some([b'\\', b'u', b'd' | b'D', kind]) if kinds.contains(kind))
    };
    let mut plain = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(next) = memchr::memchr(b'\\', &json.as_bytes()[at..]).map(|next| at + next) {
        at = next + 2;
        if half(next, b"89abAB") && half(next + 6, b"cdefCDEF") {
            at = next + 12;
        } else if half(next, b"89abcdefABCDEF") && json.is_char_boundary(next + 6) {
            plain.push_str(&json[kept..next]);
            plain.push_str("\\ufffd");
            (kept, at) = (next + 6, next + 6);
        }
        if at >= json.len() {
            break;
        }
    }
    if kept == 0 { Cow::Borrowed(json) } else { Cow::Owned(plain + &json[kept..]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const JEST: [&str; 3] = ["", "suites[]", "suites[].tests[]"];

    fn cut(paths: &[&'static str], text: &str) -> (Vec<(&'static str, Value)>, bool) {
        let mut seen = Vec::new();
        let is_whole = elements(text, paths, &mut |path, value| seen.push((path, value)));
        (seen, is_whole)
    }

    #[test]
    fn an_element_comes_after_those_in_it_and_without_them() {
        let report = r#"{"total": 2, "suites": [{"tests": [{"name": "a", "tests": [1]}, {"name": "b"}], "file": "x"}], "ok": true}"#;
        let seen = [
            ("suites[].tests[]", json!({"name": "a", "tests": [1]})),
            ("suites[].tests[]", json!({"name": "b"})),
            ("suites[]", json!({"file": "x"})),
            ("", json!({"total": 2, "ok": true})),
        ];
        assert_eq!(cut(&JEST, report), (seen.to_vec(), true));
        assert_eq!(cut(&JEST, &report[..70]), (seen[..1].to_vec(), false));
    }

    #[test]
    fn fields_and_scalars_can_be_asked_for() {
        let report = r#"{"summary": {"failed": 1}, "exit": 3, "suites": null, "other": [{"summary": 1}]}"#;
        assert_eq!(
            cut(&["summary", "exit", "suites[]"], report).0,
            [("summary", json!({"failed": 1})), ("exit", json!(3))]
        );
    }

    #[test]
    fn what_was_printed_around_a_document_is_passed_over() {
        let printed = "{ a: 1 }\n[x] ready {\"torn\nno newline{\"suites\": [\n{}\n]}\ndone } ]\n";
        assert_eq!(cut(&["suites[]"], printed), (vec![("suites[]", json!({}))], true));
        assert_eq!(event::<Value>("before {\"a\": 1} after"), Some(json!({"a": 1})));
    }

    #[test]
    fn half_a_character_does_not_cost_the_event() {
        let line = r#"{"a": "x\udcff \ud83d\ude00 \ud83d! \\ud83d\n \ud83d\ud83d\ude00 \ud83d"}"#;
        let expected = json!({"a": "x\u{fffd} 😀 \u{fffd}! \\ud83d\n \u{fffd}😀 \u{fffd}"});
        assert_eq!(event::<Value>(line), Some(expected));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in r#"([{}\[\],:"a\\u d8c\né]|"suites":|"tests":){0,60}"#) {
            cut(&JEST, &text);
        }
    }
}
