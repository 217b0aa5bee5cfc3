//! Texts that a stream cuts in pieces: a path of which each frame holds a few letters is a path nevertheless.

use std::collections::BTreeMap;

use serde_json::Value;

use super::normalise::{Names, Normaliser, Span};
use super::response::Frame;

/// A piece of a longer text, in one frame.
#[derive(Debug, PartialEq, Eq)]
struct Delta {
    /// Which text it continues.
    channel: String,
    field: &'static str,
    text: String,
}

/// Replaces what a normaliser finds in the joined texts. The placeholder goes into the frame where the text began.
pub(crate) fn join(normaliser: &Normaliser, names: &mut Names, frames: &mut [Frame]) {
    let mut channels: BTreeMap<String, Vec<(usize, Delta)>> = BTreeMap::new();
    for (index, frame) in frames.iter().enumerate() {
        let value = frame.parts().and_then(|(_, data)| serde_json::from_str(data).ok());
        for delta in value.as_ref().map(deltas).unwrap_or_default() {
            channels.entry(delta.channel.clone()).or_default().push((index, delta));
        }
    }
    for pieces in channels.into_values().filter(|pieces| pieces.len() > 1) {
        let whole: String = pieces.iter().map(|(_, delta)| delta.text.as_str()).collect();
        let spans = normaliser.answer_spans(names, &whole);
        if spans.is_empty() {
            continue;
        }
        let mut from = 0;
        for (index, delta) in pieces {
            let until = from + delta.text.len();
            let text = rewritten(&whole, from..until, &spans);
            if text != delta.text {
                put(&mut frames[index], &delta, &text);
            }
            from = until;
        }
    }
}

/// The part of the whole, with the spans that begin in it replaced and those that end in it cut off.
fn rewritten(whole: &str, part: std::ops::Range<usize>, spans: &[Span]) -> String {
    let mut out = String::new();
    let mut at = part.start;
    for span in spans.iter().filter(|span| span.range.end > part.start && span.range.start < part.end) {
        if span.range.start >= part.start {
            out.push_str(&whole[at..span.range.start]);
            out.push_str(&span.becomes);
        }
        at = span.range.end.min(part.end);
    }
    out.push_str(&whole[at..part.end]);
    out
}

/// Puts the new text into the frame, and changes no other byte if the text stands there as we would write it.
fn put(frame: &mut Frame, delta: &Delta, text: &str) {
    let Some((event, data)) = frame.parts() else { return };
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let changed = [":", ": "].iter().find_map(|colon| {
        let old = format!("\"{}\"{colon}{}", delta.field, quoted(&delta.text));
        let new = format!("\"{}\"{colon}{}", delta.field, quoted(text));
        (data.matches(&old).count() == 1).then(|| data.replacen(&old, &new, 1))
    });
    let changed = changed.or_else(|| {
        let mut value: Value = serde_json::from_str(data).ok()?;
        replace_field(&mut value, delta, text);
        serde_json::to_string(&value).ok()
    });
    if let Some(changed) = changed {
        *frame = Frame::of_parts(frame.at_ms, event, &changed);
    }
}

fn replace_field(value: &mut Value, delta: &Delta, text: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(old) if name == delta.field && *old == delta.text => text.clone_into(old),
                    field => replace_field(field, delta, text),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_field(item, delta, text)),
        _ => {}
    }
}

/// The pieces of texts in a frame, in the form of each vendor.
fn deltas(value: &Value) -> Vec<Delta> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind == "content_block_delta" {
        let fields = ["text", "partial_json", "thinking"];
        return fields
            .into_iter()
            .filter_map(|field| piece(value.get("delta")?, field, &number(value, "index")))
            .collect();
    }
    if kind.ends_with(".delta") {
        let item = value.get("item_id").and_then(Value::as_str).unwrap_or_default();
        let channel =
            format!("{kind} {item} {} {}", number(value, "output_index"), number(value, "content_index"));
        return piece(value, "delta", &channel).into_iter().collect();
    }
    of_choices(value).into_iter().chain(of_candidates(value)).collect()
}

fn of_choices(value: &Value) -> Vec<Delta> {
    let mut found = Vec::new();
    for choice in items(value, "choices") {
        let Some(delta) = choice.get("delta") else { continue };
        let index = number(choice, "index");
        found.extend(
            ["content", "reasoning_content"].into_iter().filter_map(|field| piece(delta, field, &index)),
        );
        for call in items(delta, "tool_calls") {
            let channel = format!("{index} {}", number(call, "index"));
            found.extend(call.get("function").and_then(|function| piece(function, "arguments", &channel)));
        }
    }
    found
}

fn of_candidates(value: &Value) -> Vec<Delta> {
    let mut found = Vec::new();
    for candidate in items(value, "candidates") {
        let Some(content) = candidate.get("content") else { continue };
        let parts = items(content, "parts");
        found.extend(parts.iter().filter_map(|part| piece(part, "text", &number(candidate, "index"))));
    }
    found
}

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn number(value: &Value, field: &str) -> String {
    value.get(field).map(Value::to_string).unwrap_or_default()
}

fn piece(value: &Value, field: &'static str, channel: &str) -> Option<Delta> {
    let text = value.get(field)?.as_str()?.to_owned();
    Some(Delta { channel: format!("{field} {channel}"), field, text })
}
