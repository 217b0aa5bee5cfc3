//! What differs between two runs of the same work becomes a placeholder, on recording and on replay.
//!
//! All patterns are one automaton, so a text is read once. Ids are renamed by the order in which they are first seen in a
//! conversation: the same id has the same number in every turn, and two ids never share one.

mod edge;
mod patterns;
mod place;
mod rule;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input, PatternID};
use serde_json::Value;

use super::policy::MAX_DEPTH;
use super::scan::Secrets;
pub(crate) use edge::Edges;
use patterns::{Becomes, Pattern};
pub(crate) use patterns::{literal, verbatim};
pub use place::Place;
pub(crate) use place::Restorer;
pub use rule::{Rule, RuleError, RuleName};

/// The rules of a cassette, ready for use at one place.
#[derive(Debug, Clone)]
pub struct Normaliser {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    rules: Vec<Rule>,
    requests: Automaton,
    answers: Automaton,
}

#[derive(Debug)]
struct Automaton {
    search: Regex,
    patterns: Vec<Pattern>,
}

/// The directories or secrets of this place are too many, or too long, to look for.
#[derive(Debug, thiserror::Error)]
#[error("the texts to be replaced cannot be looked for")]
pub struct PatternError(#[from] Box<regex_automata::meta::BuildError>);

impl From<regex_automata::meta::BuildError> for PatternError {
    fn from(error: regex_automata::meta::BuildError) -> Self {
        Self(Box::new(error))
    }
}

/// The numbers that ids were given in one conversation.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<(Named, String), u32>,
    last: HashMap<Named, u32>,
}

/// A part of a text, and what it becomes.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) range: std::ops::Range<usize>,
    pub(crate) becomes: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Named {
    Uuid,
    Id,
    Commit,
    File,
    Secret,
}

impl Named {
    fn word(self) -> &'static str {
        match self {
            Self::Uuid => "uuid",
            Self::Id => "id",
            Self::Commit => "commit",
            Self::File => "file",
            Self::Secret => "secret",
        }
    }
}

impl Names {
    /// The number of a text, new if it was not seen before.
    pub(crate) fn number(&mut self, kind: Named, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(&(kind, text.to_owned())) {
            return *number;
        }
        let last = self.last.entry(kind).or_default();
        *last = last.saturating_add(1);
        self.numbers.insert((kind, text.to_owned()), *last);
        *last
    }

    /// How many different texts of a kind were seen.
    pub(crate) fn count(&self, kind: Named) -> u32 {
        self.last.get(&kind).copied().unwrap_or(0)
    }
}

impl Normaliser {
    /// For these rules, at this place. Secrets are always kept out.
    pub fn new(rules: &[Rule], place: &Place, secrets: &Secrets) -> Result<Self, PatternError> {
        let mut rules = rules.to_vec();
        rules.sort_unstable();
        rules.dedup();
        let requests = Automaton::new(patterns::for_requests(&rules, place, secrets))?;
        let answers = Automaton::new(patterns::for_answers(&rules, place, secrets))?;
        Ok(Self { inner: Arc::new(Inner { rules, requests, answers }) })
    }

    /// Its rules.
    pub fn rules(&self) -> &[Rule] {
        &self.inner.rules
    }

    /// The placeholder for the whole of a request's field, if a rule says that it is never the same.
    pub(crate) fn whole_field(&self, field: &str) -> Option<&'static str> {
        self.inner.rules.iter().find_map(|rule| rule.whole_field(field))
    }

    pub(crate) fn text<'a>(&self, names: &mut Names, text: &'a str) -> Cow<'a, str> {
        self.inner.requests.replace(names, text)
    }

    /// The raw text of an answer, or of a frame of it. Only places and secrets are replaced: a player puts the places of
    /// its own run in.
    pub(crate) fn answer<'a>(&self, names: &mut Names, text: &'a str) -> Cow<'a, str> {
        self.inner.answers.replace(names, text)
    }

    /// What of an answer's text is replaced, and by what.
    pub(crate) fn answer_spans(&self, names: &mut Names, text: &str) -> Vec<Span> {
        self.inner.answers.spans(names, text)
    }

    /// Every text of a value of a request.
    pub(crate) fn value(&self, names: &mut Names, value: &mut Value) {
        self.walk(names, value, 0);
    }

    fn walk(&self, names: &mut Names, value: &mut Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(changed) = self.text(names, text) {
                    *text = changed;
                }
            }
            Value::Array(items) => {
                sort_results(names, items);
                for item in items {
                    self.walk(names, item, depth + 1);
                }
            }
            Value::Object(fields) => self.walk_object(names, fields, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn walk_object(&self, names: &mut Names, fields: &mut serde_json::Map<String, Value>, depth: usize) {
        let renames_ids = self.inner.rules.contains(&Rule::Ids);
        // An item of a conversation, or a call or a result in the form of Gemini.
        let is_item = fields.get("type").or_else(|| fields.get("role")).is_some_and(Value::is_string)
            || (fields.contains_key("id")
                && (fields.contains_key("args") || fields.contains_key("response")));
        let mut renamed = Vec::new();
        for (name, field) in fields.iter_mut() {
            if VERBATIM_FIELDS.contains(&name.as_str()) && field.is_string() {
                continue;
            }
            let is_id = RESULT_ID_FIELDS.contains(&name.as_str()) || (name == "id" && is_item);
            match field {
                Value::String(text) if is_id && renames_ids => {
                    *text = placeholder(Named::Id, names.number(Named::Id, text));
                }
                field => self.walk(names, field, depth + 1),
            }
            if let Cow::Owned(changed) = self.text(names, name) {
                renamed.push((name.clone(), changed));
            }
        }
        for (name, changed) in renamed {
            if let Some(field) = fields.remove(&name) {
                fields.insert(changed, field);
            }
        }
    }
}

/// What must reach the vendor again byte for byte, and means nothing to anyone else.
const VERBATIM_FIELDS: &[&str] = &["signature", "thoughtSignature", "thought_signature", "encrypted_content"];

/// Where a result names its call.
const RESULT_ID_FIELDS: &[&str] = &["tool_use_id", "tool_call_id", "call_id"];

/// The call that an element is the result of.
pub(crate) fn result_of(element: &Value) -> Option<&str> {
    let fields = element.as_object()?;
    let kind = fields.get("type").and_then(Value::as_str);
    let is_result = match kind {
        Some(kind) => kind == "tool_result" || kind.ends_with("_call_output"),
        None => fields.get("role").and_then(Value::as_str) == Some("tool"),
    };
    if let Some(response) = fields.get("functionResponse") {
        return response.get("id").or_else(|| response.get("name")).and_then(Value::as_str);
    }
    let id = || RESULT_ID_FIELDS.iter().find_map(|name| fields.get(*name)).and_then(Value::as_str);
    is_result.then(id).flatten()
}

/// Tools that ran side by side end in any order: their results are put into the order of the calls.
fn sort_results(names: &mut Names, items: &mut [Value]) {
    if items.iter().filter(|item| result_of(item).is_some()).nth(1).is_none() {
        return;
    }
    let ranks: Vec<Option<u32>> =
        items.iter().map(|item| result_of(item).map(|id| names.number(Named::Id, id))).collect();
    let mut start = 0;
    while start < items.len() {
        let length = ranks[start..].iter().take_while(|rank| rank.is_some()).count();
        let mut order: Vec<usize> = (start..start + length).collect();
        order.sort_by_key(|&at| ranks[at]);
        let sorted: Vec<Value> = order.into_iter().map(|at| items[at].take()).collect();
        for (slot, item) in items[start..].iter_mut().zip(sorted) {
            *slot = item;
        }
        start += length.max(1);
    }
}

fn placeholder(kind: Named, number: u32) -> String {
    format!("⟦{}:{number}⟧", kind.word())
}

impl Automaton {
    fn new(patterns: Vec<Pattern>) -> Result<Self, PatternError> {
        let sources: Vec<&str> = patterns.iter().map(|pattern| pattern.regex.as_ref()).collect();
        Ok(Self { search: Regex::new_many(&sources)?, patterns })
    }

    fn replace<'a>(&self, names: &mut Names, text: &'a str) -> Cow<'a, str> {
        let spans = self.spans(names, text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for span in &spans {
            out.push_str(&text[copied..span.range.start]);
            out.push_str(&span.becomes);
            copied = span.range.end;
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    fn spans(&self, names: &mut Names, text: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut at = 0;
        while let Some((pattern, start, end)) = self.find(text, at) {
            at = end;
            if !matches!(pattern.becomes, Becomes::Itself) {
                let mut becomes = String::new();
                pattern.becomes.write(&mut becomes, names, &text[start..end]);
                spans.push(Span { range: start..end, becomes });
            }
        }
        spans
    }

    /// The first place at or after `at` that a pattern matches and whose edges are right.
    fn find(&self, text: &str, mut at: usize) -> Option<(&Pattern, usize, usize)> {
        while at <= text.len() {
            let found = self.search.search(&Input::new(text).range(at..))?;
            let (start, first) = (found.start(), found.pattern());
            let mut candidate = Some((first, found.end()));
            let mut next = first.as_usize() + 1;
            // A pattern whose edges are wrong hides the others that match here.
            while let Some((id, end)) = candidate {
                let pattern = self.patterns.get(id.as_usize())?;
                if pattern.edges.hold(text.as_bytes(), start, end) && pattern.accepts(&text[start..end]) {
                    return Some((pattern, start, end));
                }
                candidate = None;
                while candidate.is_none() && next < self.patterns.len() {
                    // Within a word hardly any may: to try them all at each of its letters would take forever.
                    if self.patterns[next].edges.may_begin(text.as_bytes(), start) {
                        candidate = self.anchored(text, start, next);
                    }
                    next += 1;
                }
            }
            at = start + 1;
            while at < text.len() && !text.is_char_boundary(at) {
                at += 1;
            }
        }
        None
    }

    fn anchored(&self, text: &str, start: usize, pattern: usize) -> Option<(PatternID, usize)> {
        let id = PatternID::new(pattern).ok()?;
        let input = Input::new(text).range(start..).anchored(Anchored::Pattern(id));
        self.search.search(&input).map(|found| (id, found.end()))
    }
}

impl Becomes {
    fn write(&self, out: &mut String, names: &mut Names, text: &str) {
        match self {
            Self::Number(kind) => {
                // Writing to a string does not fail.
                let _ = write!(out, "⟦{}:{}⟧", kind.word(), names.number(*kind, text));
            }
            Self::Word(word) => out.push_str(word),
            Self::Nothing => {}
            Self::Itself => out.push_str(text),
            Self::AfterFirst(mark, then) | Self::AfterLast(mark, then) => {
                let found =
                    if matches!(self, Self::AfterFirst(..)) { text.find(mark) } else { text.rfind(mark) };
                out.push_str(&text[..found.map_or(0, |at| at + mark.len())]);
                then.write(out, names, &text[found.map_or(0, |at| at + mark.len())..]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
