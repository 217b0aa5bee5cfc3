//! Assertions on what the agent did, step by step.

use globset::GlobSet;
use serde_json::Value;

use super::Grade;
use super::said::quote;
use crate::assertion::Range;
use crate::trial::{Doing, Step, Trial};

pub(super) fn agents_worked(trial: &Trial, agents: &[String]) -> Grade {
    let worked: Vec<&str> = trial
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Agent { name } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let path = if worked.is_empty() { "nobody worked".to_owned() } else { worked.join(" → ") };
    match agents.iter().find(|agent| !worked.contains(&agent.as_str())) {
        Some(missing) => Grade::of(false, format!("`{missing}` did not work: {path}")),
        None => Grade::of(true, path),
    }
}

pub(super) fn tool_used(trial: &Trial, tools: &GlobSet, written: &str, times: Range) -> Grade {
    let used = calls(trial).filter(|(tool, _)| tools.is_match(tool)).count() as u64;
    Grade::of(times.contains(used), format!("`{written}` was used {used} times, {times} wanted"))
}

pub(super) fn tool_arguments(trial: &Trial, tool: &str, contain: &Value) -> Grade {
    let mut nearest = None;
    for (_, arguments) in calls(trial).filter(|(name, _)| *name == tool) {
        if serde_json::from_str(arguments).is_ok_and(|given: Value| is_part_of(contain, &given)) {
            return Grade::of(true, format!("`{tool}` was called with {}", quote(arguments)));
        }
        nearest = Some(arguments);
    }
    match nearest {
        None => Grade::of(false, format!("`{tool}` was never called")),
        Some(arguments) => Grade::of(
            false,
            format!("`{tool}` was never called with {contain}, but with {}", quote(arguments)),
        ),
    }
}

/// Whether all of the one is in the other. Lists must be equal in length and order; of maps a part is enough.
fn is_part_of(wanted: &Value, given: &Value) -> bool {
    match (wanted, given) {
        (Value::Object(wanted), Value::Object(given)) => {
            wanted.iter().all(|(key, value)| given.get(key).is_some_and(|given| is_part_of(value, given)))
        }
        (Value::Array(wanted), Value::Array(given)) => {
            wanted.len() == given.len()
                && wanted.iter().zip(given).all(|(wanted, given)| is_part_of(wanted, given))
        }
        (wanted, given) => wanted == given,
    }
}

pub(super) fn tool_sequence(trial: &Trial, tools: &[String], exact: bool) -> Grade {
    let called: Vec<&str> = calls(trial).map(|(tool, _)| tool).collect();
    let path = if called.is_empty() { "no tool was called".to_owned() } else { called.join(" → ") };
    if exact {
        return Grade::of(called == tools.iter().map(String::as_str).collect::<Vec<_>>(), path);
    }
    let mut rest = called.iter();
    match tools.iter().find(|tool| !rest.any(|called| called == tool)) {
        Some(missing) => Grade::of(false, format!("`{missing}` does not come in its turn: {path}")),
        None => Grade::of(true, path),
    }
}

pub(super) fn steps(trial: &Trial, range: Range) -> Grade {
    let count = calls(trial).count() as u64;
    Grade::of(range.contains(count), format!("{count} steps, {range} wanted"))
}

pub(super) fn step_order(trial: &Trial, after: Doing, comes: Doing) -> Grade {
    let kinds: Vec<Doing> = trial
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Tool { does, .. } => Some(*does),
            _ => None,
        })
        .collect();
    let Some(last) = kinds.iter().rposition(|kind| *kind == after) else {
        return Grade::of(true, format!("there is no step that does {after:?}").to_lowercase());
    };
    let follows = kinds[last + 1..].contains(&comes);
    let word = if follows { "comes" } else { "does not come" };
    Grade::of(follows, format!("{comes:?} {word} after the last {after:?}").to_lowercase())
}

pub(super) fn no_loops(trial: &Trial, most: u64) -> Grade {
    let mut longest: (u64, &str) = (0, "");
    let (mut run, mut before) = (0, None);
    for call in calls(trial) {
        run = if before == Some(call) { run + 1 } else { 1 };
        before = Some(call);
        if run > longest.0 {
            longest = (run, call.0);
        }
    }
    let (times, tool) = longest;
    Grade::of(
        times <= most,
        format!("`{tool}` was called {times} times in a row with the same, at most {most} wanted"),
    )
}

fn calls(trial: &Trial) -> impl Iterator<Item = (&str, &str)> {
    trial.steps.iter().filter_map(Step::call)
}
