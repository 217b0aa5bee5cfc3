//! What runs cost together.

use rehearsal_core::{RunEnd, Tokens};

/// Sums. Unknown is not zero: a run that does not tell its cost is counted apart.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) cost_usd: Option<f64>,
    pub(super) runs_without_cost: u32,
    pub(super) tokens: Option<Tokens>,
}

impl Tally {
    /// What was spent for certain.
    pub(super) fn spent(&self) -> f64 {
        self.cost_usd.unwrap_or(0.0)
    }

    pub(super) fn add(&mut self, end: &RunEnd) {
        match end.cost_usd {
            Some(cost) => *self.cost_usd.get_or_insert(0.0) += cost,
            None => self.runs_without_cost += 1,
        }
        if let Some(tokens) = end.tokens {
            *self.tokens.get_or_insert_default() += tokens;
        }
    }
}
