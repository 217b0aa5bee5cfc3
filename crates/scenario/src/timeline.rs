//! The timeline of a rehearsal, in virtual time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Activity, Timestamp};
use serde::Serialize;

use crate::clock::ScenarioClock;
use rehearsal_engine::WorkEvent;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimelineEntry {
    /// Milliseconds since the beginning, in the rehearsal's own time.
    pub at_ms: u64,
    /// Who did it: `worker 1`, or `world`.
    pub who: String,
    /// What.
    pub what: String,
}

/// Collects the entries.
#[derive(Debug)]
pub(crate) struct Timeline {
    clock: ScenarioClock,
    start: Timestamp,
    root: Utf8PathBuf,
    entries: Mutex<Vec<TimelineEntry>>,
    warnings: Mutex<Vec<String>>,
}

impl Timeline {
    pub(crate) fn new(clock: ScenarioClock, root: &Utf8Path) -> Self {
        let start = clock.now();
        let (entries, warnings) = Default::default();
        Self { clock, start, root: root.to_owned(), entries, warnings }
    }

    /// A text without the path of the scenario's directory.
    pub(crate) fn without_paths(&self, text: &str) -> String {
        text.replace(self.root.as_str(), "STAGE")
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.now().since(self.start)
    }

    pub(crate) fn world(&self, what: impl Into<String>) {
        self.add("world".to_owned(), &what.into());
    }

    pub(crate) fn worker(&self, worker: usize, event: &WorkEvent) {
        if let WorkEvent::Warning { notice } = event {
            let message = self.without_paths(&notice.to_string());
            self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        }
        if let Some(what) = describe(event) {
            self.add(format!("worker {worker}"), &what);
        }
    }

    fn add(&self, who: String, what: &str) {
        let at_ms = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        let what = self.without_paths(what);
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(TimelineEntry { at_ms, who, what });
    }

    pub(crate) fn entries(&self) -> Vec<TimelineEntry> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A worker's event in a line; none if it is not interesting here.
fn describe(event: &WorkEvent) -> Option<String> {
    Some(match event {
        WorkEvent::WorkStarted { .. } => "begins".to_owned(),
        WorkEvent::Recovered { task, outcome, .. } => format!("{task}: recovered, its run was {outcome}"),
        WorkEvent::Adopted { task, state, .. } => format!("{task}: adopted in {state}, its agent goes on"),
        WorkEvent::Claimed { task, state, agent, taken_from, .. } => {
            let whom = agent.as_ref().map_or_else(|| "its steps".to_owned(), ToString::to_string);
            let from = if taken_from.is_some() { ", whose worker let the lease run out" } else { "" };
            format!("{task}: claimed in {state} for {whom}{from}")
        }
        WorkEvent::Prepared { task, origin, .. } => format!("{task}: worktree is {origin}"),
        WorkEvent::AgentActed { task, activity: Activity::Retrying { message }, .. } => {
            format!("{task}: {message}")
        }
        WorkEvent::RunEnded { task, outcome, commits, .. } => {
            format!("{task}: agent ended: {}, {commits} commits", first_line(&outcome.to_string()))
        }
        WorkEvent::StepDone { task, step } => format!("{task}: {step} done"),
        WorkEvent::StepFailed { task, step, failure } => {
            format!("{task}: {step} failed: {}", first_line(failure.reason()))
        }
        WorkEvent::Moved { task, from, to, status, .. } => format!("{task}: {from} → {to} ({status})"),
        WorkEvent::Lost { task, .. } => format!("{task}: lost"),
        WorkEvent::Held { lane, hold } => format!("holds {lane}: {}", first_line(&hold.reason)),
        WorkEvent::Warning { notice } => format!("warning: {}", first_line(&notice.to_string())),
        WorkEvent::AgentActed { .. }
        | WorkEvent::StepStarted { .. }
        | WorkEvent::TaskReported { .. }
        | WorkEvent::CompleteRefused { .. }
        | WorkEvent::Waiting { .. } => {
            return None;
        }
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
