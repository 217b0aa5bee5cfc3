//! The names and versions of the rules.

use std::fmt;
use std::str::FromStr;

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
    /// What Claude Code varies besides.
    Claude,
    /// What Codex varies besides.
    Codex,
    /// What Gemini CLI varies besides.
    Gemini,
    /// What opencode varies besides.
    Opencode,
}

const ALL: &[Rule] = &[
    Rule::Paths,
    Rule::Ids,
    Rule::Uuids,
    Rule::Commits,
    Rule::Dates,
    Rule::Durations,
    Rule::Ports,
    Rule::Colours,
    Rule::Claude,
    Rule::Codex,
    Rule::Gemini,
    Rule::Opencode,
];

/// The rules for one agent CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentPack {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// Any other program.
    Plain,
}

impl AgentPack {
    /// By the name of a program or a driver.
    pub fn named(name: &str) -> Self {
        match name {
            "claude" => Self::Claude,
            "codex" => Self::Codex,
            "gemini" => Self::Gemini,
            "opencode" => Self::Opencode,
            _ => Self::Plain,
        }
    }

    /// All of its rules.
    pub fn rules(self) -> Vec<Rule> {
        let own = match self {
            Self::Claude => Some(Rule::Claude),
            Self::Codex => Some(Rule::Codex),
            Self::Gemini => Some(Rule::Gemini),
            Self::Opencode => Some(Rule::Opencode),
            Self::Plain => None,
        };
        ALL.iter().copied().filter(|rule| *rule < Rule::Claude || Some(*rule) == own).collect()
    }
}

impl Rule {
    /// All that there are.
    pub fn all() -> &'static [Self] {
        ALL
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
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// Its version: it grows with every change of what the rule makes of a text, for a cassette of the old one would not match.
    pub fn version(self) -> u32 {
        1
    }

    /// The field of a request that is never the same, and what stands in its place.
    pub(crate) fn whole_field(self, field: &str) -> Option<&'static str> {
        match (self, field) {
            // `{"user_id": …}`: a device, an account and a session.
            (Self::Claude, "metadata") => Some("⟦metadata⟧"),
            // Ids of everything, the time, and facts of the git repository that appear or not.
            (Self::Codex, "client_metadata") => Some("⟦client⟧"),
            _ => None,
        }
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
}

impl FromStr for Rule {
    type Err = RuleError;

    /// `paths` or `paths@1`.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (name, version) =
            text.split_once('@').map_or((text, None), |(name, version)| (name, Some(version)));
        let rule = ALL
            .iter()
            .copied()
            .find(|rule| rule.name() == name)
            .ok_or_else(|| RuleError::Unknown(name.escape_debug().to_string()))?;
        match version {
            Some(theirs) if theirs != rule.version().to_string() => Err(RuleError::Version {
                name: rule.name(),
                ours: rule.version(),
                theirs: theirs.escape_debug().to_string(),
            }),
            _ => Ok(rule),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if !text.contains('@') {
            return Err(serde::de::Error::custom(format!(
                "the normaliser `{}` has no version",
                text.escape_debug()
            )));
        }
        text.parse().map_err(serde::de::Error::custom)
    }
}
