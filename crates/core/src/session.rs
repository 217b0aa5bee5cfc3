//! A named group of tasks with a context and a journal.

use serde::{Deserialize, Serialize};

use crate::{RunId, SessionName, Timestamp};

/// A group of tasks that one loop works through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// Its name.
    pub name: SessionName,
    /// What it is about, in a line or two.
    pub description: String,
    /// What every run must know.
    pub context: String,
    /// Criteria that hold for each of its tasks.
    pub criteria: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What it takes to make a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewSession {
    /// Its name.
    pub name: SessionName,
    /// What it is about.
    pub description: String,
    /// What every run must know.
    pub context: String,
    /// Criteria that hold for each of its tasks.
    pub criteria: Vec<String>,
}

/// What may be changed about a session; none leaves it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SessionEdit {
    /// A new description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A new context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// New criteria, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Vec<String>>,
}

/// A line of a session's journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressEntry {
    /// When it was written.
    pub at: Timestamp,
    /// The run that wrote it; none: a person.
    pub run: Option<RunId>,
    /// What it says.
    pub text: String,
}
