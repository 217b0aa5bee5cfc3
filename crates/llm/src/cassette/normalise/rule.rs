//! The names and versions of the rules.

use std::fmt;
use std::str::FromStr;

use rehearsal_core::ModelClient;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A normaliser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The work directory, the home and temporary files: plain, escaped as in JSON, and as a slug.
    Paths,
    /// Ids of calls, messages and items.
    Ids,
    /// UUIDs.
    Uuids,
    /// Hashes of commits.
    Commits,
    /// Dates and times.
    Dates,
    /// Measured durations.
    Durations,
    /// Ports on loopback.
    Ports,
    /// Colours and other escape sequences of a terminal.
    Colours,
    /// What one agent CLI varies besides.
    Client(&'static ModelClient),
}

/// The rules for every program.
const GENERAL: [Rule; 8] = [
    Rule::Paths,
    Rule::Ids,
    Rule::Uuids,
    Rule::Commits,
    Rule::Dates,
    Rule::Durations,
    Rule::Ports,
    Rule::Colours,
];

impl Rule {
    /// All rules for this agent CLI; without one, for any program.
    pub fn for_client(client: Option<&'static ModelClient>) -> Vec<Self> {
        GENERAL.into_iter().chain(client.map(Self::Client)).collect()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paths => "paths",
            Self::Ids => "ids",
            Self::Uuids => "uuids",
            Self::Commits => "commits",
            Self::Dates => "dates",
            Self::Durations => "durations",
            Self::Ports => "ports",
            Self::Colours => "colours",
            Self::Client(client) => client.name,
        }
    }

    /// Its version: it grows with every change of what the rule makes of a text, for a cassette of the old one would not match.
    pub fn version(self) -> u32 {
        match self {
            Self::Client(client) => client.version,
            _ => 1,
        }
    }

    /// The field of a request that is never the same, and what stands in its place.
    pub(crate) fn whole_field(self, field: &str) -> Option<&'static str> {
        let Self::Client(client) = self else { return None };
        client.varying_fields.iter().find(|(name, _)| *name == field).map(|(_, placeholder)| *placeholder)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.name(), self.version())
    }
}

/// A rule that this program does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// By name.
    #[error("there is no normaliser `{0}`")]
    Unknown(String),
    /// In this version.
    #[error("the normaliser `{name}` is of version {ours} here, and not of version {theirs}")]
    Version {
        /// Which.
        name: &'static str,
        /// What this program has.
        ours: u32,
        /// What was asked for.
        theirs: String,
    },
    /// In no version.
    #[error("the normaliser `{0}` has no version")]
    NoVersion(String),
}

/// A rule as a cassette names it: `paths@1`. One for every program is checked when it is read; that of an agent CLI when it
/// is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleName {
    name: String,
    version: String,
}

impl RuleName {
    /// The rule of this name, with those of these agent CLIs.
    pub fn rule(&self, clients: &[&'static ModelClient]) -> Result<Rule, RuleError> {
        let rule = GENERAL
            .into_iter()
            .chain(clients.iter().copied().map(Rule::Client))
            .find(|rule| rule.name() == self.name);
        let rule = rule.ok_or_else(|| RuleError::Unknown(self.name.escape_debug().to_string()))?;
        if self.version == rule.version().to_string() {
            return Ok(rule);
        }
        let theirs = self.version.escape_debug().to_string();
        Err(RuleError::Version { name: rule.name(), ours: rule.version(), theirs })
    }
}

impl From<Rule> for RuleName {
    fn from(rule: Rule) -> Self {
        Self { name: rule.name().to_owned(), version: rule.version().to_string() }
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.name, self.version)
    }
}

impl FromStr for RuleName {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let Some((name, version)) = text.split_once('@') else {
            return Err(RuleError::NoVersion(text.escape_debug().to_string()));
        };
        let named = Self { name: name.to_owned(), version: version.to_owned() };
        match named.rule(&[]) {
            Err(error @ RuleError::Version { .. }) => Err(error),
            _ => Ok(named),
        }
    }
}

impl Serialize for RuleName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RuleName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
