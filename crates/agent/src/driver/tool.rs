//! What a tool call is for, in one line; and which call a result belongs to.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::bounds::{DETAIL, cut, one_line};
use super::json::text;

/// The arguments that say what a call is for, over all agents. Others (file contents) are skipped unread.
#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    file_path: Option<&'a RawValue>,
    #[serde(borrow, rename = "filePath")]
    file_path_camel: Option<&'a RawValue>,
    #[serde(borrow)]
    path: Option<&'a RawValue>,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    cmd: Option<&'a RawValue>,
    #[serde(borrow)]
    pattern: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    query: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
}

/// A path, a command, or the beginning of the arguments as they are.
pub(crate) fn detail(arguments: Option<&RawValue>) -> String {
    let Some(raw) = arguments else {
        return String::new();
    };
    let telling = serde_json::from_str::<Arguments<'_>>(raw.get()).ok().and_then(|of| {
        let by_worth = [
            of.file_path,
            of.file_path_camel,
            of.path,
            of.command,
            of.cmd,
            of.pattern,
            of.url,
            of.query,
            of.description,
            of.prompt,
        ];
        by_worth.into_iter().find_map(text)
    });
    one_line(&telling.unwrap_or(Cow::Borrowed(raw.get())), DETAIL)
}

/// The most bytes of a call's arguments that are told.
const MOST_ARGUMENTS: usize = 16 << 10;

/// The longest text in arguments that are too long as they are: a path, a command and the beginning of a file fit.
const LONGEST_TEXT: usize = 1 << 10;

/// Arguments of more than this are of no tool, and not worth reading.
const READ_ARGUMENTS: usize = 8 << 20;

/// The arguments of a call as JSON, within bounds; none of what is no JSON, or has too many parts.
pub(crate) fn arguments(arguments: Option<&RawValue>) -> Option<String> {
    let raw = arguments?.get();
    if raw.len() <= MOST_ARGUMENTS {
        return Some(raw.to_owned());
    }
    let mut value: Value =
        Some(raw).filter(|raw| raw.len() <= READ_ARGUMENTS).and_then(|raw| serde_json::from_str(raw).ok())?;
    shorten(&mut value);
    Some(value.to_string()).filter(|text| text.len() <= MOST_ARGUMENTS)
}

/// The same, of arguments that may be no JSON at all.
pub fn call_arguments(text: &str) -> Option<String> {
    arguments(serde_json::from_str(text).ok())
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => *text = cut(text, LONGEST_TEXT),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same, of arguments that may be no JSON at all.
pub fn call_detail(arguments: &str) -> String {
    match serde_json::from_str::<&RawValue>(arguments) {
        Ok(raw) => detail(Some(raw)),
        Err(_) => one_line(arguments, DETAIL),
    }
}

/// More calls than this are never under way at once; older ones got no result.
const REMEMBERED: usize = 64;

/// The calls under way: results name only the call's id.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(VecDeque<OpenCall>);

/// A call under way.
#[derive(Debug)]
pub(crate) struct OpenCall {
    id: String,
    pub(crate) tool: String,
    pub(crate) detail: String,
}

impl OpenCalls {
    pub(crate) fn opened(&mut self, id: &str, tool: &str, detail: &str) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(OpenCall {
            id: one_line(id, DETAIL),
            tool: tool.to_owned(),
            detail: detail.to_owned(),
        });
    }

    pub(crate) fn closed(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.0.iter().position(|call| call.id == id)?;
        self.0.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail_of(json: &str) -> String {
        detail(Some(serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn a_call_is_described_by_its_path_or_command() {
        assert_eq!(detail_of(r#"{"content":"x","file_path":"/a/b.rs"}"#), "/a/b.rs");
        assert_eq!(detail_of(r#"{"command":"cargo\n test","description":"run"}"#), "cargo test");
        assert_eq!(detail_of(r#"{"text":"hi"}"#), r#"{"text":"hi"}"#);
        assert_eq!(detail_of("[1]"), "[1]");
        assert_eq!(detail(None), "");
    }

    #[test]
    fn arguments_are_told_as_they_are_and_long_texts_in_them_are_cut() {
        let told = |json: &str| arguments(Some(serde_json::from_str(json).unwrap()));
        assert_eq!(told(r#"{"path":"a.rs"}"#).as_deref(), Some(r#"{"path":"a.rs"}"#));
        let long = format!(r#"{{"content":"{}","path":"a.rs"}}"#, "x".repeat(1 << 20));
        let short = told(&long).unwrap();
        let read: Value = serde_json::from_str(&short).unwrap();
        assert_eq!(read["path"], "a.rs");
        assert!(short.len() < 2 * LONGEST_TEXT, "{short}");
        assert_eq!(told(&format!("[{}1]", "1,".repeat(20_000))), None, "many small parts cannot be cut");
        assert_eq!(call_arguments("not JSON"), None);
    }

    #[test]
    fn a_result_finds_its_call_once() {
        let mut calls = OpenCalls::default();
        calls.opened("a", "Write", "x");
        assert_eq!(calls.closed("a").map(|call| call.tool), Some("Write".to_owned()));
        assert!(calls.closed("a").is_none());
    }
}
