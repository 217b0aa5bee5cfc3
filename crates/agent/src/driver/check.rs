//! What each driver relies on, and whether a program has it.

use serde::{Deserialize, Serialize};

use super::{Capabilities, DriverKind};

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

const fn needed(flag: &'static str, feature: &'static str) -> Requirement {
    Requirement { flag, feature, need: Need::Needed, hidden: false }
}

const fn optional(flag: &'static str, feature: &'static str) -> Requirement {
    Requirement { flag, feature, need: Need::Optional, hidden: false }
}

const CLAUDE: &[Requirement] = &[
    needed("--print", "running without a terminal"),
    needed("--output-format", "structured output"),
    needed("--verbose", "structured output as it comes"),
    needed("--permission-mode", "permissions"),
    optional("--dangerously-skip-permissions", "running with `--trust`"),
    optional("--model", "choosing the model"),
    optional("--append-system-prompt", "a system prompt of its own"),
    optional("--setting-sources", "independence of the machine's settings"),
    optional("--disable-slash-commands", "prompts that are taken literally"),
    optional("--max-budget-usd", "the cost limit"),
    // Not in the help since 2.1, and still obeyed.
    Requirement { flag: "--max-turns", feature: "the turn limit", need: Need::Optional, hidden: true },
    optional("--resume", "going on with a session"),
];

const CODEX: &[Requirement] = &[
    needed("--json", "structured output"),
    needed("--sandbox", "permissions"),
    needed("--config", "permissions of resumed sessions, no telemetry, no updates"),
    optional("--dangerously-bypass-approvals-and-sandbox", "running with `--trust`"),
    optional("--model", "choosing the model"),
    optional("--disable", "turning plugins off"),
    optional("resume", "going on with a session"),
];

const GEMINI: &[Requirement] = &[
    needed("--output-format", "structured output"),
    needed("--approval-mode", "permissions"),
    optional("--model", "choosing the model"),
    optional("--resume", "going on with a session"),
];

const OPENCODE: &[Requirement] = &[
    needed("--format", "structured output"),
    optional("--agent", "looking without changing"),
    optional("--auto", "running with `--trust`"),
    optional("--model", "choosing the model"),
    optional("--session", "going on with a session"),
    optional("--title", "no extra request for a title"),
];

/// What the driver of a kind relies on. Ask `codex exec --help` and `opencode run --help` for theirs.
pub fn requirements(kind: DriverKind) -> &'static [Requirement] {
    match kind {
        DriverKind::Claude => CLAUDE,
        DriverKind::Codex => CODEX,
        DriverKind::Gemini => GEMINI,
        DriverKind::Opencode => OPENCODE,
        DriverKind::Crew | DriverKind::Command => &[],
    }
}

/// The arguments that make a program of a kind tell its flags.
pub fn help_args(kind: DriverKind) -> &'static [&'static str] {
    match kind {
        DriverKind::Claude | DriverKind::Gemini | DriverKind::Crew | DriverKind::Command => &["--help"],
        DriverKind::Codex => &["exec", "--help"],
        DriverKind::Opencode => &["run", "--help"],
    }
}

/// What a program of a kind can do of all that its driver may ask for.
pub fn capability_table(kind: DriverKind, capabilities: &Capabilities) -> Vec<CapabilityRow> {
    let row = |requirement: &Requirement| CapabilityRow {
        feature: requirement.feature.to_owned(),
        flag: requirement.flag.to_owned(),
        need: requirement.need,
        supported: requirement.hidden || capabilities.has(requirement.flag),
    };
    requirements(kind).iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_flag_is_a_row_that_says_no_and_a_hidden_one_counts_as_there() {
        let help = "Options:\n  -p, --print  Print\n  --output-format <format>  Format\n";
        let table = capability_table(DriverKind::Claude, &Capabilities::parse(help, ""));
        let supported = |flag: &str| table.iter().find(|row| row.flag == flag).map(|row| row.supported);
        assert_eq!(supported("--output-format"), Some(true));
        assert_eq!(supported("--max-budget-usd"), Some(false));
        assert_eq!(supported("--max-turns"), Some(true));
    }
}
