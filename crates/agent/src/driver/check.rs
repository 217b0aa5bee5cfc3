//! What each driver relies on, and whether a program has it.

use serde::{Deserialize, Serialize};

use super::Capabilities;
use crate::clis::AgentCli;

/// A flag or a command that a driver uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement {
    /// The flag, or the command.
    pub flag: &'static str,
    /// What it gives.
    pub feature: &'static str,
    /// Whether nothing works without it.
    pub need: Need,
    /// It works, but the help does not name it.
    pub hidden: bool,
}

/// How much a driver needs something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Without it no run can be judged.
    Needed,
    /// Without it one feature is missing.
    Optional,
}

/// A row of the table that `agent check` shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapabilityRow {
    /// What it gives.
    pub feature: String,
    /// The flag, or the command.
    pub flag: String,
    /// How much it is needed.
    pub need: Need,
    /// Whether this program has it.
    pub supported: bool,
}

/// A flag without which nothing works.
pub const fn needed(flag: &'static str, feature: &'static str) -> Requirement {
    Requirement { flag, feature, need: Need::Needed, hidden: false }
}

/// A flag that gives one feature.
pub const fn optional(flag: &'static str, feature: &'static str) -> Requirement {
    Requirement { flag, feature, need: Need::Optional, hidden: false }
}

/// What a program has of all that its driver may ask for.
pub fn capability_table(cli: &AgentCli, capabilities: &Capabilities) -> Vec<CapabilityRow> {
    let row = |requirement: &Requirement| CapabilityRow {
        feature: requirement.feature.to_owned(),
        flag: requirement.flag.to_owned(),
        need: requirement.need,
        supported: requirement.hidden || capabilities.has(requirement.flag),
    };
    cli.flags.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clis::KNOWN;

    #[test]
    fn a_missing_flag_is_a_row_that_says_no_and_a_hidden_one_counts_as_there() {
        let help = "Options:\n  -p, --print  Print\n  --output-format <format>  Format\n";
        let table = capability_table(KNOWN.of_program("claude"), &Capabilities::parse(help, ""));
        let supported = |flag: &str| table.iter().find(|row| row.flag == flag).map(|row| row.supported);
        assert_eq!(supported("--output-format"), Some(true));
        assert_eq!(supported("--max-budget-usd"), Some(false));
        assert_eq!(supported("--max-turns"), Some(true));
    }
}
