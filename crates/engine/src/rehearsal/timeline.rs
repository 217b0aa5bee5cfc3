//! What happened in a rehearsal, and when, in its own time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Activity, Timestamp};
use serde::Serialize;

use super::clock::StageClock;
use crate::WorkEvent;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Happening {
    /// Milliseconds since the beginning, in the rehearsal's own time.
    pub at_ms: u64,
    /// Who did it: `worker 1`, or `world`.
    pub who: String,
    /// What.
    pub what: String,
}

/// Collects them.
#[derive(Debug)]
pub(super) struct Timeline {
    clock: StageClock,
    start: Timestamp,
    root: Utf8PathBuf,
    told: Mutex<Vec<Happening>>,
    warnings: Mutex<Vec<String>>,
}

impl Timeline {
    pub(super) fn new(clock: StageClock, root: &Utf8Path) -> Self {
        let start = clock.now();
        let (told, warnings) = Default::default();
        Self { clock, start, root: root.to_owned(), told, warnings }
    }

    /// A text without the place where this rehearsal happens to be.
    pub(super) fn anywhere(&self, text: &str) -> String {
        text.replace(self.root.as_str(), "STAGE")
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.clock.now().since(self.start)
    }

    pub(super) fn world(&self, what: impl Into<String>) {
        self.tell("world".to_owned(), &what.into());
    }

    pub(super) fn worker(&self, worker: usize, event: &WorkEvent) {
        if let WorkEvent::Warning { message } = event {
            let message = self.anywhere(message);
            self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        }
        if let Some(what) = in_words(event) {
            self.tell(format!("worker {worker}"), &what);
        }
    }

    fn tell(&self, who: String, what: &str) {
        let at_ms = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        let what = self.anywhere(what);
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(Happening { at_ms, who, what });
    }

    pub(super) fn told(&self) -> Vec<Happening> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a worker tells, in a line; none for what is of no interest here.
fn in_words(event: &WorkEvent) -> Option<String> {
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
        WorkEvent::Warning { message } => format!("warning: {}", first_line(message)),
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
