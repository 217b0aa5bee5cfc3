//! What all tries of a run used together.

use rehearsal_core::{Budget, Tokens, WireReport};
use serde::{Deserialize, Serialize};

use crate::clis::Sessions;

/// Sums of what is known. Unknown is not zero.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Spent {
    /// Sessions that are over.
    settled: Figures,
    /// The session of the last try.
    current: Figures,
    turns: Option<u64>,
    duration_ms: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Figures {
    cost_usd: Option<f64>,
    tokens: Option<Tokens>,
}

impl Spent {
    /// Adds a try. `same_session`: it went on with the session of the try before.
    pub(super) fn add(&mut self, wire: &WireReport, same_session: bool, sessions: Sessions) {
        let told = Figures { cost_usd: wire.cost_usd, tokens: wire.tokens };
        if same_session && sessions.reports_whole_session {
            self.current = self.current.larger(told);
        } else {
            self.settled = self.settled.plus(self.current);
            self.current = told;
        }
        self.turns = sum(self.turns, wire.turns, |a, b| a + b);
        self.duration_ms = sum(self.duration_ms, wire.duration_ms, |a, b| a + b);
    }

    pub(super) fn write_to(&self, wire: &mut WireReport) {
        let total = self.total();
        wire.cost_usd = total.cost_usd;
        wire.tokens = total.tokens;
        wire.turns = self.turns;
        wire.duration_ms = self.duration_ms;
    }

    /// What is left of a budget for the next try.
    pub(super) fn left_of(&self, budget: Budget) -> Budget {
        let total = self.total();
        let tokens = total.tokens.map_or(0, Tokens::total);
        Budget {
            usd: budget.usd.map(|usd| (usd - total.cost_usd.unwrap_or(0.0)).max(0.0)),
            tokens: budget.tokens.map(|limit| limit.saturating_sub(tokens)),
            turns: budget.turns.map(|limit| limit.saturating_sub(self.turns.unwrap_or(0))),
        }
    }

    pub(super) fn exhausts(&self, budget: Budget) -> bool {
        let left = self.left_of(budget);
        left.usd.is_some_and(|usd| usd <= 0.0) || left.tokens == Some(0) || left.turns == Some(0)
    }

    fn total(&self) -> Figures {
        self.settled.plus(self.current)
    }
}

impl Figures {
    fn plus(self, other: Self) -> Self {
        Self {
            cost_usd: sum(self.cost_usd, other.cost_usd, |a, b| a + b),
            tokens: sum(self.tokens, other.tokens, |mut a, b| {
                a += b;
                a
            }),
        }
    }

    /// Figures of one session only grow; a try that ended in an error may tell zero.
    fn larger(self, other: Self) -> Self {
        Self {
            cost_usd: sum(self.cost_usd, other.cost_usd, f64::max),
            tokens: sum(self.tokens, other.tokens, |a, b| if a.total() > b.total() { a } else { b }),
        }
    }
}

fn sum<T>(a: Option<T>, b: Option<T>, join: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (a, b) => a.or(b),
    }
}
