//! The kinds of agents that can be driven.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Driver;
use super::claude::ClaudeDriver;
use super::codex::CodexDriver;
use super::command::CommandDriver;
use super::flags::Capabilities;
use super::gemini::GeminiDriver;
use super::opencode::OpencodeDriver;

/// A kind of agent.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// Claude Code.
    Claude,
    /// `OpenAI` Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// Any program.
    Command,
}

/// A name that is no kind of agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no kind of agent: use claude, codex, gemini, opencode or command")]
pub struct UnknownDriver(String);

impl DriverKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Command,
    ];

    /// The name as users write it; also the name of its program.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Command => "command",
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for DriverKind {
    type Err = UnknownDriver;

    fn from_str(name: &str) -> Result<Self, UnknownDriver> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| UnknownDriver(name.to_owned()))
    }
}

/// The driver of a kind, for a program (or the usual one) with arguments of its own.
pub fn driver_for(kind: DriverKind, program: Option<String>, args: Vec<String>) -> Box<dyn Driver> {
    driver_with(kind, program, args, None)
}

/// As [`driver_for`], for a program that was asked what it can do.
pub fn driver_with(
    kind: DriverKind,
    program: Option<String>,
    args: Vec<String>,
    capabilities: Option<Capabilities>,
) -> Box<dyn Driver> {
    let program = program.unwrap_or_else(|| kind.as_str().to_owned());
    match kind {
        DriverKind::Claude => Box::new(
            ClaudeDriver::new(program)
                .with_args(args)
                .with_capabilities(capabilities),
        ),
        DriverKind::Codex => Box::new(
            CodexDriver::new(program)
                .with_args(args)
                .with_capabilities(capabilities),
        ),
        DriverKind::Gemini => Box::new(
            GeminiDriver::new(program)
                .with_args(args)
                .with_capabilities(capabilities),
        ),
        DriverKind::Opencode => Box::new(
            OpencodeDriver::new(program)
                .with_args(args)
                .with_capabilities(capabilities),
        ),
        DriverKind::Command => Box::new(CommandDriver::new(program, args)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name_and_driven_under_it() {
        for kind in DriverKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(driver_for(kind, None, vec![]).name(), kind.as_str());
        }
        let error = "cursor".parse::<DriverKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`cursor` is no kind of agent: use claude, codex, gemini, opencode or command"
        );
    }
}
