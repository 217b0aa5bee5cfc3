//! The plan in a model's words: bare, in a fence, or with words around it.

use crate::plan::{PlanError, PlanFile};

/// A plan's only key.
const KEY: &str = "\"tasks\"";
/// So many places are looked at. A model that quotes the key more often is not planning.
const MOST_PLACES: usize = 8;

/// The plan in an answer; none if there is no sign of one.
pub(super) fn plan_in(text: &str) -> Option<Result<PlanFile, PlanError>> {
    let mut last = None;
    for (at, _) in text.match_indices(KEY).take(MOST_PLACES) {
        // A plan is an object that begins with its key: words about `"tasks"` are none.
        let before = text[..at].trim_end();
        let Some(begin) = before.strip_suffix('{').map(str::len) else { continue };
        match PlanFile::read(&text[begin..]) {
            Ok(plan) => return Some(Ok(plan)),
            error => last = Some(error),
        }
    }
    // What is nothing but JSON was meant as a plan.
    last.or_else(|| unfenced(text).starts_with(['{', '[']).then(|| PlanFile::read(unfenced(text))))
}

/// The text inside of a fence around all of it.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.split_once('\n')).map(|(_, rest)| rest);
    inside.unwrap_or(text).trim_start()
}
