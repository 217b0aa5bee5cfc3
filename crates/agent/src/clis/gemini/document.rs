//! The `json` document of Gemini CLI, and its counts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rehearsal_core::{Tokens, WireReport};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::driver::bounds::{DETAIL, one_line};
use crate::driver::json;

#[derive(Deserialize)]
pub(super) struct Document<'a> {
    #[serde(borrow)]
    pub(super) session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) warnings: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stats: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Stats<'a> {
    #[serde(borrow, default)]
    models: BTreeMap<Cow<'a, str>, Model>,
}

#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    api: Api,
    #[serde(default)]
    tokens: ModelTokens,
}

#[derive(Deserialize, Default)]
struct Api {
    #[serde(default, rename = "totalRequests")]
    requests: u64,
}

#[derive(Deserialize, Default)]
struct ModelTokens {
    #[serde(default)]
    prompt: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    total: u64,
}

impl Document<'_> {
    /// Fills in model, turns and tokens.
    pub(super) fn fill(&self, report: &mut WireReport) {
        let Some(stats) = json::read::<Stats<'_>>(self.stats).filter(|stats| !stats.models.is_empty()) else {
            return;
        };
        let mut tokens = Tokens::default();
        for model in stats.models.values() {
            tokens.input = tokens.input.saturating_add(model.tokens.prompt);
            tokens.cached = tokens.cached.saturating_add(model.tokens.cached);
            let made = model.tokens.total.saturating_sub(model.tokens.prompt);
            tokens.output = tokens.output.saturating_add(made);
        }
        let requests = stats.models.values().fold(0u64, |sum, model| sum.saturating_add(model.api.requests));
        let busiest = stats.models.iter().max_by_key(|(_, model)| model.tokens.total);
        report.model = busiest.map(|(name, _)| one_line(name, DETAIL));
        report.turns = Some(requests);
        report.tokens = Some(tokens);
    }
}

/// The counts of a `result` line.
#[derive(Deserialize)]
pub(super) struct LineStats {
    #[serde(default)]
    total_tokens: u64,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cached: u64,
    pub(super) duration_ms: Option<u64>,
}

impl LineStats {
    /// Thoughts are made by the model too; they are only in the total.
    pub(super) fn tokens(&self) -> Tokens {
        let output = self.total_tokens.saturating_sub(self.input_tokens);
        Tokens { input: self.input_tokens, cached: self.cached, output }
    }
}
