//! Lanes, and what holds them: a person's pause, a vendor's quota, a stop of the line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{AgentName, IdError, OutcomeName, SessionName, Timestamp};

/// A group of tasks that can be held back together. Written `all`, `agent:NAME`, `session:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "String", try_from = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub enum Lane {
    /// Every task.
    All,
    /// The tasks that this agent works on next.
    Agent(AgentName),
    /// The tasks of this session.
    Session(SessionName),
}

/// Why a lane stands still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hold {
    /// What made it so.
    pub cause: HoldCause,
    /// In words.
    pub reason: String,
    /// When it is over by itself; none: someone has to resume it.
    pub until: Option<Timestamp>,
}

/// What can hold a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HoldCause {
    /// A person paused it.
    Person,
    /// The system failed in this way.
    System(OutcomeName),
}

impl Hold {
    /// Whether it still holds.
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.pad("all"),
            Self::Agent(name) => f.pad(&format!("agent:{name}")),
            Self::Session(name) => f.pad(&format!("session:{name}")),
        }
    }
}

impl FromStr for Lane {
    type Err = LaneError;

    fn from_str(text: &str) -> Result<Self, LaneError> {
        match text.split_once(':') {
            None if text == "all" => Ok(Self::All),
            Some(("agent", name)) => Ok(Self::Agent(AgentName::new(name)?)),
            Some(("session", name)) => Ok(Self::Session(SessionName::new(name)?)),
            _ => Err(LaneError::Unknown(text.to_owned())),
        }
    }
}

/// Why a text is no lane.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// It has another form.
    #[error("`{0}` is no lane: write `all`, `agent:NAME` or `session:NAME`")]
    Unknown(String),
    /// Its name is none.
    #[error(transparent)]
    Name(#[from] IdError),
}

impl From<Lane> for String {
    fn from(lane: Lane) -> Self {
        lane.to_string()
    }
}

impl TryFrom<String> for Lane {
    type Error = LaneError;

    fn try_from(text: String) -> Result<Self, LaneError> {
        text.parse()
    }
}
