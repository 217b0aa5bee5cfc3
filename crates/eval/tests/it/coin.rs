//! An agent that succeeds with a known chance, drawn from a seed: the same trial always comes to the same.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use rehearsal_core::seed::{fraction, of_text};
use rehearsal_core::{Outcome, Timestamp};
use rehearsal_eval::case::{Case, Eval, parse};
use rehearsal_eval::run::{Attempts, TrialError};
use rehearsal_eval::trial::{Source, Trial, TrialId};
use tokio_util::sync::CancellationToken;

pub(crate) struct Coin {
    /// How often an agent succeeds, by its name.
    pub(crate) chances: BTreeMap<String, f64>,
    pub(crate) seed: u64,
    pub(crate) cost: Option<f64>,
    /// Everything it was asked for.
    pub(crate) asked: Mutex<Vec<TrialId>>,
}

impl Coin {
    pub(crate) fn new(chances: &[(&str, f64)], seed: u64) -> Self {
        let chances = chances.iter().map(|(name, chance)| ((*name).to_owned(), *chance)).collect();
        Self { chances, seed, cost: None, asked: Mutex::new(Vec::new()) }
    }
}

#[async_trait]
impl Attempts for Coin {
    async fn attempt(
        &self,
        case: &Case,
        id: &TrialId,
        cancel: &CancellationToken,
    ) -> Result<Trial, TrialError> {
        if cancel.is_cancelled() {
            return Err(TrialError::Cancelled);
        }
        self.asked.lock().unwrap().push(id.clone());
        let chance = self.chances[&id.variant.agent];
        let drawn = fraction(self.seed ^ of_text(&format!("{} {} {}", case.name, id.variant, id.trial)));
        let output = if drawn < chance { "it works" } else { "it does not" };
        Ok(trial(id, output, self.cost))
    }
}

pub(crate) fn trial(id: &TrialId, output: &str, cost_usd: Option<f64>) -> Trial {
    let source = if cost_usd.is_some() { Source::Live } else { Source::Scripted };
    let blank = Trial::blank(id.clone(), source, Timestamp(0));
    Trial { outcome: Outcome::Done, output: output.to_owned(), cost_usd, ..blank }
}

/// So many cases with so many trials each, of which it is asserted that it works.
pub(crate) fn cases(count: usize, repeat: u32, agents: &[&str]) -> Eval {
    let agents = agents.join(", ");
    let mut yaml = format!(
        "name: coin\nagents: [{agents}]\nrepeat: {repeat}\nassert: [{{ type: contains, value: it works }}]\ncases:\n"
    );
    for number in 0..count {
        yaml.push_str(&format!("  - {{ name: c{number}, prompt: Do it }}\n"));
    }
    parse(&yaml, "nobody").unwrap()
}
