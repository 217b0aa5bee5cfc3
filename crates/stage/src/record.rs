//! What was asked and what was answered.

use serde::Serialize;

/// So many requests are told one by one; of more, only the numbers.
const MOST_EXCHANGES: usize = 10_000;

/// A request and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exchange {
    /// The path, without what stands after the question mark.
    pub path: String,
    /// Whose request it was.
    pub lane: String,
    /// Which model was asked.
    pub model: String,
    /// How many messages the conversation had.
    pub messages: usize,
    /// The tools that were offered, the first 200 of them.
    pub tools: Vec<String>,
    /// What the user said last, at most its last 200 bytes.
    pub said: String,
    /// What the tools returned that were called last, at most the last 200 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub returned: String,
    /// What was answered.
    pub answered: Answered,
    /// What a vendor would have refused.
    pub findings: Vec<String>,
}

/// What a request got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answered {
    /// A turn of the script.
    Turn {
        /// Counted from 1.
        turn: usize,
    },
    /// What is always answered to requests on the side.
    Side,
    /// What is always answered there: models, tokens, greetings.
    Fixed,
    /// An error, because nothing was told for it.
    Miss {
        /// What was asked and expected.
        message: String,
    },
    /// Nothing is known of that path.
    UnknownPath,
}

/// A turn of the script, and how often it was played.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnReport {
    /// Counted from 1.
    pub turn: usize,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Where it stands in its file.
    pub line: Option<u64>,
    /// How often it was to be played; none for any number.
    pub times: Option<u64>,
    /// How often it was.
    pub played: u64,
}

impl TurnReport {
    /// Whether a request for it never came.
    pub fn is_unplayed(&self) -> bool {
        self.times.is_some_and(|times| self.played < times)
    }
}

/// What happened on the stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// How many requests came.
    pub requests: u64,
    /// How many of them nothing was told for.
    pub misses: u64,
    /// How many a vendor would have refused.
    pub refusable: u64,
    /// The turns.
    pub turns: Vec<TurnReport>,
    /// The requests, the first ten thousand of them.
    pub exchanges: Vec<Exchange>,
}

impl Report {
    /// Whether all that was told was played, and nothing else was asked.
    pub fn is_clean(&self) -> bool {
        self.misses == 0 && !self.turns.iter().any(TurnReport::is_unplayed)
    }

    pub(crate) fn add(&mut self, exchange: Exchange) {
        self.requests += 1;
        self.misses += u64::from(matches!(exchange.answered, Answered::Miss { .. }));
        self.refusable += u64::from(!exchange.findings.is_empty());
        if self.exchanges.len() < MOST_EXCHANGES {
            self.exchanges.push(exchange);
        }
    }
}
