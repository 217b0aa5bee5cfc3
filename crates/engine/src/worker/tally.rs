//! What the runs of a worker came to together.

use std::collections::BTreeMap;

use rehearsal_agent::ConfinedBy;
use rehearsal_core::{AgentName, Notice, RunEnd, RunId, TaskId, Tokens};

/// More would hide the end of a summary; each run has its own.
const MOST_NOTICES: usize = 20;

/// Sums. Unknown is not zero: a run that did not report its cost is counted apart.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) runs: Vec<RunId>,
    pub(super) cost_usd: Option<f64>,
    pub(super) runs_without_cost: u32,
    pub(super) tokens: Option<Tokens>,
    /// What kept each agent within bounds.
    pub(super) confined_by: BTreeMap<AgentName, ConfinedBy>,
    /// In the order in which they were first touched.
    pub(super) touched: Vec<TaskId>,
    /// What a person has to know who did not watch.
    pub(super) notices: Vec<Notice>,
    /// Failures that only a person can fix, in a row, by who had them: an agent's name, or the engine's steps.
    pub(super) hard_setbacks: BTreeMap<String, u32>,
}

impl Tally {
    /// What was spent for certain.
    pub(super) fn spent(&self) -> f64 {
        self.cost_usd.unwrap_or(0.0)
    }

    pub(super) fn add(&mut self, run: &RunId, end: &RunEnd) {
        self.runs.push(run.clone());
        match end.cost_usd {
            Some(cost) => *self.cost_usd.get_or_insert(0.0) += cost,
            None => self.runs_without_cost += 1,
        }
        if let Some(tokens) = end.tokens {
            *self.tokens.get_or_insert_default() += tokens;
        }
    }

    /// Keeps what a person has to know: the newest, each last word once.
    pub(super) fn note(&mut self, notice: Notice) {
        if let Notice::LastWords { lines, .. } = &notice {
            self.notices
                .retain(|kept| !matches!(kept, Notice::LastWords { lines: same, .. } if same == lines));
        }
        if self.notices.len() == MOST_NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    pub(super) fn touch(&mut self, task: &TaskId) {
        if !self.touched.contains(task) {
            self.touched.push(task.clone());
        }
    }
}
