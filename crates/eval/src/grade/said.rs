//! Assertions on what the agent said.

use regex::Regex;
use rehearsal_core::Blame;
use rehearsal_llm::json_schema::{JsonSchema, Violation};
use serde_json::Value;

use super::Grade;
use crate::trial::{Step, Trial, Vote};

/// So much of a text is quoted.
const QUOTED: usize = 120;

pub(super) fn contains(trial: &Trial, texts: &[String], any: bool, ignore_case: bool) -> Grade {
    let fold = |text: &str| if ignore_case { text.to_lowercase() } else { text.to_owned() };
    let said = fold(&trial.output);
    let (found, missing): (Vec<&String>, Vec<&String>) =
        texts.iter().partition(|text| said.contains(&fold(text)));
    let holds = if any { !found.is_empty() } else { missing.is_empty() };
    let because = match (holds, found.first(), missing.first()) {
        (true, Some(text), _) => format!("the final text contains `{text}`"),
        (_, _, Some(text)) if any && texts.len() > 1 => {
            format!(
                "the final text contains none of {} texts, not even `{text}`: {}",
                texts.len(),
                quote(&trial.output)
            )
        }
        (_, _, Some(text)) => format!("the final text does not contain `{text}`: {}", quote(&trial.output)),
        _ => String::new(),
    };
    Grade::of(holds, because)
}

pub(super) fn equals(trial: &Trial, text: &str) -> Grade {
    Grade::of(trial.output.trim() == text.trim(), format!("the final text is {}", quote(&trial.output)))
}

pub(super) fn starts_with(trial: &Trial, text: &str) -> Grade {
    let holds = trial.output.trim_start().starts_with(text);
    Grade::of(holds, format!("the final text begins with {}", quote(&trial.output)))
}

pub(super) fn matches(trial: &Trial, regex: &Regex) -> Grade {
    match regex.find(&trial.output) {
        Some(found) => Grade::of(true, format!("`{regex}` matches {}", quote(found.as_str()))),
        None => Grade::of(false, format!("`{regex}` does not match {}", quote(&trial.output))),
    }
}

pub(super) fn is_json(trial: &Trial, schema: Option<&Value>) -> Grade {
    let value: Value = match serde_json::from_str(without_fence(trial.output.trim())) {
        Ok(value) => value,
        Err(error) => return Grade::of(false, format!("the final text is not JSON: {error}")),
    };
    let Some(schema) = schema else { return Grade::of(true, "the final text is JSON") };
    let schema = match JsonSchema::compile(schema) {
        Ok(schema) => schema,
        Err(error) => return Grade::of(false, format!("the schema is not valid: {error}")),
    };
    match schema.violations(&value).first() {
        None => Grade::of(true, "the final text is JSON and conforms to the schema"),
        Some(Violation { place, message }) => {
            let place = if place.is_empty() { "/" } else { place };
            Grade::of(false, format!("the JSON does not conform at {place}: {message}"))
        }
    }
}

/// Models like to put JSON into a fence.
fn without_fence(text: &str) -> &str {
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).map_or(text, str::trim)
}

/// What errors begin with, as agents and tools write them.
const ERRORS: [&str; 5] =
    ["error:", "fatal:", "exception:", "panicked at", "traceback (most recent call last)"];

pub(super) fn no_errors(trial: &Trial) -> Grade {
    if trial.outcome.blame() == Blame::Agent {
        return Grade::of(false, format!("the run ended with {}", trial.outcome.name()));
    }
    let said = trial.output.to_lowercase();
    match ERRORS.iter().find_map(|error| said.find(error)) {
        None => Grade::of(true, "the final text tells of no error"),
        // Found in the lowercase text: its places are not those of the text itself for every letter.
        Some(place) => {
            Grade::of(false, format!("the final text tells of an error: {}", quote(&said[place..])))
        }
    }
}

pub(super) fn rubric(trial: &Trial, rubric: &str, wanted: u32) -> Grade {
    let votes = trial.judged.get(rubric).map(Vec::as_slice).unwrap_or_default();
    let (mut passes, mut fails, mut reason) = (0, 0, None);
    for vote in votes {
        match vote {
            Vote::Pass { reason: said } => {
                passes += 1;
                reason.get_or_insert(said);
            }
            Vote::Fail { reason: said } => {
                fails += 1;
                reason = Some(said);
            }
            Vote::Unreadable { reason } => {
                return Grade::unknown(format!("the judge could not be read: {reason}"));
            }
        }
    }
    if votes.is_empty() {
        return Grade::unknown("needs a judge: ask it with --live, or --record it for --replay");
    }
    if passes + fails < wanted {
        return Grade::unknown(format!("{} of {wanted} judges answered", passes + fails));
    }
    let reason = reason.map(|reason| format!(": {}", quote(reason))).unwrap_or_default();
    Grade::of(passes > fails, format!("{passes} of {} judges agree{reason}", passes + fails))
}

/// The beginning of a text, in quotes.
pub(super) fn quote(text: &str) -> String {
    let text = text.trim();
    let short: String = text.chars().take(QUOTED).collect();
    let mark = if short.len() < text.len() { "…" } else { "" };
    format!("\"{}{mark}\"", short.replace('\n', "⏎"))
}

impl Step {
    /// The tool that was called, and with what.
    pub(super) fn call(&self) -> Option<(&str, &str)> {
        match self {
            Self::Tool { tool, arguments, .. } => Some((tool, arguments)),
            _ => None,
        }
    }
}
