//! More time, tokens, turns and money.

use rehearsal_core::Tokens;

use super::Mutant;
use crate::trial::Trial;

/// A run that nobody would let go on: a limit that even this one keeps is none.
const RUNAWAY_MS: u64 = 24 * 60 * 60 * 1000;
const RUNAWAY_TOKENS: u64 = 1_000_000_000;
const RUNAWAY_TURNS: u64 = 100_000;
const RUNAWAY_USD: f64 = 10_000.0;

pub(super) fn mutants(trial: &Trial) -> Vec<Mutant> {
    vec![
        Mutant::of(trial, "ten times the time", |mutant| {
            mutant.duration_ms = mutant.duration_ms.saturating_mul(10);
        }),
        Mutant::of(trial, "ten times the tokens", |mutant| {
            mutant.tokens = mutant.tokens.map(|tokens| Tokens {
                input: times_ten(tokens.input),
                cached: times_ten(tokens.cached),
                output: times_ten(tokens.output),
            });
        }),
        Mutant::of(trial, "ten times the turns", |mutant| {
            mutant.turns = mutant.turns.map(|turns| turns.saturating_mul(10));
        }),
        Mutant::of(trial, "ten times the cost", |mutant| {
            mutant.cost_usd = mutant.cost_usd.map(|usd| usd * 10.0);
        }),
        Mutant::of(trial, "a run that does not end", |mutant| {
            mutant.duration_ms = mutant.duration_ms.max(RUNAWAY_MS);
            mutant.turns = mutant.turns.map(|turns| turns.max(RUNAWAY_TURNS));
            mutant.cost_usd = mutant.cost_usd.map(|usd| usd.max(RUNAWAY_USD));
            let most = |tokens: Tokens| Tokens { input: tokens.input.max(RUNAWAY_TOKENS), ..tokens };
            mutant.tokens = mutant.tokens.map(most);
        }),
    ]
}

/// Sums of it stay in bounds too.
fn times_ten(count: u64) -> u64 {
    count.saturating_mul(10).min(u64::MAX / 4)
}
