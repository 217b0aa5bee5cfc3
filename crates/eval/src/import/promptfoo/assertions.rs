//! What is asserted: the names that we share mean the same here, and everything else is told.

use serde_json::Value;

use super::Import;
use crate::import::NoteKind;
use crate::import::draft::AssertionDraft;
use crate::import::node::{At, Node};
use crate::import::template::{Vars, fill_value};

pub(super) struct Asserted<'a> {
    /// Of each case, filled in with its variables.
    pub(super) each: Option<&'a Node>,
    pub(super) own: Option<&'a Node>,
    /// Something is asserted of all cases anyway.
    pub(super) has_common: bool,
}

/// The names that have no counterpart here; in a table, any other word is what an answer is to equal.
pub(super) const OTHERS: [&str; 38] = [
    "answer-relevance",
    "bleu",
    "classifier",
    "contains-html",
    "contains-json",
    "contains-sql",
    "contains-xml",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "f-score",
    "factuality",
    "finish-reason",
    "g-eval",
    "gleu",
    "guardrails",
    "icontains-all",
    "icontains-any",
    "is-html",
    "is-refusal",
    "is-sql",
    "is-valid-function-call",
    "is-valid-openai-function-call",
    "is-valid-openai-tools-call",
    "is-xml",
    "javascript",
    "levenshtein",
    "meteor",
    "model-graded-closedqa",
    "model-graded-factuality",
    "moderation",
    "perplexity",
    "python",
    "rouge-n",
    "ruby",
    "similar",
    "webhook",
    "word-count",
];

/// The names that we share.
pub(super) const SHARED: [&str; 16] = [
    "contains",
    "icontains",
    "contains-all",
    "contains-any",
    "equals",
    "starts-with",
    "regex",
    "is-json",
    "cost",
    "latency",
    "llm-rubric",
    "trajectory:tool-used",
    "trajectory:tool-args-match",
    "trajectory:tool-sequence",
    "trajectory:step-count",
    "assert-set",
];

/// What is read of an assertion.
const KEYS: [&str; 7] = ["type", "value", "weight", "threshold", "metric", "assert", "provider"];

impl Import<'_> {
    pub(super) fn assertions(&mut self, node: &Node, vars: &Vars) -> Vec<AssertionDraft> {
        let mut all = Vec::new();
        match node.list() {
            Some(nodes) => nodes.iter().for_each(|one| self.assertion(one, vars, 1.0, &mut all)),
            None => self.left_out(&node.at, "`assert`", "it is not a list"),
        }
        all
    }

    /// `share` is what a set leaves of the weight of each of its assertions.
    fn assertion(&mut self, node: &Node, vars: &Vars, share: f64, all: &mut Vec<AssertionDraft>) {
        let Some(node) = self.template_of(node) else { return };
        let node = &node;
        let Some(written) = node.get("type").and_then(Node::text) else {
            return self.left_out(&node.at, "an assertion", "it has no `type`");
        };
        let name = written.strip_prefix("not-").unwrap_or(written);
        if !SHARED.contains(&name) {
            return self.left_out(&node.at, written, "it has no counterpart");
        }
        if let Some((key, value)) =
            node.pairs().iter().find(|(key, value)| !KEYS.contains(&key.as_str()) && !value.is_null())
        {
            return self.left_out(&value.at, written, &format!("its `{key}` has no counterpart"));
        }
        let weight = match node.get("weight").map(Node::number) {
            None => 1.0,
            Some(Some(weight)) if weight >= 0.0 => weight,
            Some(_) => return self.left_out(&node.at, written, "its `weight` is not a number, 0 or more"),
        };
        if name == "assert-set" {
            return self.set(node, vars, weight * share, all);
        }
        let mut missing = Vec::new();
        let value = node.get("value").map_or(Value::Null, Node::value);
        let value = self.file(value).and_then(|value| fill_value(&value, vars, &mut missing));
        let value = match value.and_then(|value| shaped(name, value)) {
            Ok(value) => value,
            Err(why) => return self.left_out(&node.at, written, &why),
        };
        for name in missing {
            let told = format!("`{{{{ {name} }}}}` has no value in a test, and is empty");
            self.notes.add(NoteKind::Changed, &node.at, told);
        }
        let draft = AssertionDraft {
            kind: written.to_owned(),
            value,
            weight: weight * share,
            threshold: node.get("threshold").and_then(Node::number),
            metric: node.get("metric").and_then(Node::text).map(str::to_owned),
        };
        self.take(draft, name, node, all);
    }

    /// Takes an assertion, if it is one of ours too.
    fn take(&mut self, mut draft: AssertionDraft, name: &str, node: &Node, all: &mut Vec<AssertionDraft>) {
        let written = draft.kind.clone();
        if name == "llm-rubric" {
            if let (Some(provider), None) = (node.get("provider"), &self.judge) {
                self.judge = self.judge_of(provider);
            }
            if self.judge.is_none() {
                let why = "no model is named that judges: give it with --judge vendor:model";
                return self.left_out(&node.at, &written, why);
            }
            if draft.threshold.take().is_some() {
                let told = "`llm-rubric`: its `threshold` is left out, the judge says yes or no";
                self.notes.add(NoteKind::Changed, &node.at, told);
            }
        } else if !matches!(name, "cost" | "latency") && draft.threshold.is_some() {
            return self.left_out(&node.at, &written, "its `threshold` has no counterpart");
        }
        // Several tools in one assertion are several assertions here.
        let values = match (&draft.value, name) {
            (Value::Array(tools), "trajectory:tool-used") if !tools.is_empty() => tools.clone(),
            (value, _) => vec![value.clone()],
        };
        #[expect(clippy::cast_precision_loss, reason = "a handful of tools")]
        let weight = draft.weight / values.len() as f64;
        for value in values {
            let one = AssertionDraft { value, weight, ..draft.clone() };
            match one.check() {
                Ok(()) => all.push(one),
                Err(why) => {
                    let why = why.strip_prefix(&format!("`{written}`: ")).unwrap_or(&why);
                    self.left_out(&node.at, &written, why);
                }
            }
        }
    }

    /// Without a threshold of its own, a set says no more than its assertions do: they share its weight.
    fn set(&mut self, node: &Node, vars: &Vars, weight: f64, all: &mut Vec<AssertionDraft>) {
        if node.get("threshold").is_some_and(|threshold| threshold.number() != Some(1.0)) {
            return self.left_out(&node.at, "assert-set", "its `threshold` has no counterpart");
        }
        let Some(nodes) = node.get("assert").and_then(Node::list) else {
            return self.left_out(&node.at, "assert-set", "it has no `assert`");
        };
        let weight_of = |one: &Node| one.get("weight").and_then(Node::number).unwrap_or(1.0).max(0.0);
        let sum: f64 = nodes.iter().map(weight_of).sum();
        let share = if sum > 0.0 { weight / sum } else { 0.0 };
        for one in nodes {
            if one.get("type").and_then(Node::text) == Some("assert-set") {
                self.left_out(&one.at, "assert-set", "it is in another one");
            } else {
                self.assertion(one, vars, share, all);
            }
        }
    }

    /// `$ref: '#/assertionTemplates/NAME'` stands for what is there.
    fn template_of(&mut self, node: &Node) -> Option<Node> {
        let Some(reference) = node.get("$ref") else { return Some(node.clone()) };
        let name = reference.text().and_then(|text| text.strip_prefix("#/assertionTemplates/"));
        let found = name.and_then(|name| self.templates.as_ref()?.get(name).cloned());
        if found.is_none() {
            self.left_out(&node.at, "an assertion", "what its `$ref` names is not there");
        }
        found.filter(|found| found.get("$ref").is_none())
    }

    /// A value, or the JSON that is in the file it names.
    fn file(&mut self, value: Value) -> Result<Value, String> {
        let Value::String(text) = &value else { return Ok(value) };
        let Some(path) = text.strip_prefix("file://") else { return Ok(value) };
        if path.ends_with(".json") {
            let read = (self.wanted.read)(path).map_err(|why| format!("`{path}` is not read: {why}"))?;
            return serde_json::from_str(&read).map_err(|error| format!("`{path}` is not JSON: {error}"));
        }
        if path.ends_with(".txt") || path.ends_with(".md") {
            let read = (self.wanted.read)(path).map_err(|why| format!("`{path}` is not read: {why}"))?;
            return Ok(Value::String(read));
        }
        Err(format!("`{path}` is not read: only .json, .txt and .md are"))
    }

    fn left_out(&mut self, at: &At, what: &str, why: &str) {
        let what =
            if what.contains(' ') || what.starts_with('`') { what.to_owned() } else { format!("`{what}`") };
        self.notes.add(NoteKind::Assertion, at, format!("{what} is left out: {why}"));
    }
}

/// The value as ours wants it.
fn shaped(name: &str, value: Value) -> Result<Value, String> {
    match (name, value) {
        // Texts in one text are set apart by commas.
        ("contains-all" | "contains-any", Value::String(text)) => {
            Ok(text.split(',').map(|one| Value::String(one.trim().to_owned())).collect())
        }
        ("equals", Value::Object(_) | Value::Array(_)) => Err("it compares JSON, not a text".to_owned()),
        ("is-json", Value::String(text)) => {
            rehearsal_core::yaml::from_str(&text).map_err(|_| "its `value` is not a JSON Schema".to_owned())
        }
        ("trajectory:tool-args-match", Value::Object(mut map)) => {
            match map.remove("mode") {
                None => {}
                Some(Value::String(mode)) if mode == "partial" => {}
                Some(mode) => return Err(format!("its `mode` {mode} has no counterpart")),
            }
            Ok(Value::Object(map))
        }
        ("trajectory:tool-used", Value::Object(mut map)) => {
            if let Some(pattern) = map.remove("pattern") {
                map.insert("name".to_owned(), pattern);
            }
            Ok(Value::Object(map))
        }
        (_, value) => Ok(value),
    }
}
