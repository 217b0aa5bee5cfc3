//! Collects what an agent does, step by step.

use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_agent::Watch;
use rehearsal_core::Activity;

use crate::trial::{Doing, Step, shortened};

/// How many steps keep their arguments as JSON of at most 16 KB each; later ones keep one line.
const STEPS_IN_FULL: usize = 1000;
/// More steps than any assertion asks for.
const MOST_STEPS: usize = 10_000;

/// Collects the steps as they happen.
pub(crate) fn watch(steps: &Arc<Mutex<Vec<Step>>>) -> Watch {
    let steps = Arc::clone(steps);
    Arc::new(move |activity| note(activity, &mut steps.lock().unwrap_or_else(PoisonError::into_inner)))
}

pub(crate) fn note(activity: Activity, steps: &mut Vec<Step>) {
    match activity {
        Activity::ToolCalled { tool, detail, arguments } if steps.len() < MOST_STEPS => {
            let does = doing(&tool, &detail);
            let arguments = arguments.filter(|_| steps.len() < STEPS_IN_FULL);
            let arguments = arguments.unwrap_or_else(|| shortened(detail));
            steps.push(Step::Tool { tool, arguments, does, is_error: None });
        }
        Activity::ToolReturned { is_error: failed, .. } => {
            let open = steps.iter_mut().find_map(|step| match step {
                Step::Tool { is_error: is_error @ None, .. } => Some(is_error),
                _ => None,
            });
            if let Some(is_error) = open {
                *is_error = Some(failed);
            }
        }
        Activity::Text { text } if steps.len() < MOST_STEPS => {
            steps.push(Step::Text { text: shortened(text) })
        }
        _ => {}
    }
}

/// What kind of thing a tool does, whatever the agent calls it.
fn doing(tool: &str, detail: &str) -> Doing {
    const TESTS: [&str; 9] = [
        "cargo test",
        "nextest",
        "pytest",
        "go test",
        "npm test",
        "jest",
        "vitest",
        "make test",
        "rehearsal test",
    ];
    match tool.to_ascii_lowercase().as_str() {
        "run_tests" => Doing::Test,
        "write" | "edit" | "multiedit" | "write_file" | "edit_file" | "replace" | "apply_patch"
        | "file_change" | "patch" => Doing::Edit,
        "read" | "read_file" | "grep" | "glob" | "ls" | "list" | "search" | "git_diff" => Doing::Read,
        "bash" | "shell" | "command_execution" | "run_shell_command" | "exec_command" => {
            if TESTS.iter().any(|test| detail.contains(test)) { Doing::Test } else { Doing::Run }
        }
        name if name.ends_with("run_tests") => Doing::Test,
        _ => Doing::Other,
    }
}
