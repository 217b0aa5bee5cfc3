//! An eval that is being made, and how it is written down.

use rehearsal_core::SourceError;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::FlowMap;

use super::{LONGEST_EVAL, MOST_CASES, nowhere};
use crate::assertion::{AssertionFile, check_of};
use crate::case::parse;

/// An assertion with a shorter value stands in one line.
const SHORT: usize = 80;

/// An eval that is being made.
#[derive(Debug, Default, Serialize)]
pub(super) struct EvalDraft {
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) about: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repeat: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) judge: Option<String>,
    #[serde(rename = "assert", skip_serializing_if = "Vec::is_empty")]
    pub(super) assertions: Vec<AssertionDraft>,
    pub(super) cases: Vec<CaseDraft>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct CaseDraft {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<String>,
    pub(super) prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repository: Option<RepositoryDraft>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<String>,
    #[serde(rename = "assert", skip_serializing_if = "Vec::is_empty")]
    pub(super) assertions: Vec<AssertionDraft>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) known_patch: Option<String>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct RepositoryDraft {
    pub(super) path: String,
    pub(super) at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct AssertionDraft {
    pub(super) kind: String,
    pub(super) value: Value,
    pub(super) weight: f64,
    pub(super) threshold: Option<f64>,
    pub(super) metric: Option<String>,
}

impl AssertionDraft {
    /// Whether it is one of ours; if not, why.
    pub(super) fn check(&self) -> Result<(), String> {
        let (kind, value) = (self.kind.clone(), self.value.clone());
        let (weight, threshold, metric) = (self.weight, self.threshold, self.metric.clone());
        check_of(&AssertionFile { kind, value, weight, threshold, metric }).map(|_| ())
    }
}

impl Serialize for AssertionDraft {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_short = match &self.value {
            Value::String(text) => text.len() <= SHORT && !text.chars().any(char::is_control),
            value => value.to_string().len() <= SHORT,
        };
        if is_short {
            FlowMap(Fields(self)).serialize(serializer)
        } else {
            Fields(self).serialize(serializer)
        }
    }
}

struct Fields<'a>(&'a AssertionDraft);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let one = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &one.kind)?;
        if !one.value.is_null() {
            map.serialize_entry("value", &one.value)?;
        }
        #[expect(clippy::float_cmp, reason = "1 is what stands there when nothing is said")]
        if one.weight != 1.0 {
            map.serialize_entry("weight", &plain(one.weight))?;
        }
        if let Some(threshold) = one.threshold {
            map.serialize_entry("threshold", &plain(threshold))?;
        }
        if let Some(metric) = &one.metric {
            map.serialize_entry("metric", metric)?;
        }
        map.end()
    }
}

/// `2`, not `2.0`.
fn plain(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "compared with what it was")]
    let whole = number as u64;
    #[expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "this is the comparison")]
    if whole as f64 == number { Value::from(whole) } else { Value::from(number) }
}

impl EvalDraft {
    /// Writes it down, and reads it again: what our own reader does not take, or takes for something else, is not given out.
    pub(super) fn write(&self, head: &str) -> Result<String, SourceError> {
        if self.cases.len() > MOST_CASES {
            let error = nowhere(format!("{} cases are more than {MOST_CASES}", self.cases.len()));
            return Err(error.hint("take fewer: --most N"));
        }
        let body = serde_saphyr::to_string(self).map_err(|error| nowhere(error.to_string()))?;
        let text = format!("{head}\n{body}");
        if text.len() > LONGEST_EVAL {
            let (size, most) = (text.len().div_ceil(1 << 20), LONGEST_EVAL >> 20);
            let error = nowhere(format!("the eval would have {size} MiB, and {most} MiB are read"));
            return Err(error.hint("take fewer cases: --most N"));
        }
        let read = parse(&text, "agent").map_err(|error| {
            let message = format!("the eval that came of it cannot be read: {}", error.message);
            nowhere(message).hint("take fewer cases: --most N")
        })?;
        let same = |(case, draft): (&crate::case::Case, &CaseDraft)| {
            case.file.prompt == draft.prompt
                && case.file.known_patch == draft.known_patch
                && case.file.repository.patch
                    == draft.repository.as_ref().and_then(|repository| repository.patch.clone())
        };
        if read.cases.len() != self.cases.len() || !read.cases.iter().zip(&self.cases).all(same) {
            return Err(nowhere("the eval that came of it is read as another"));
        }
        Ok(text)
    }
}
