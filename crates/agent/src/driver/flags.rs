//! What a program can do, by its own account.
//!
//! Flags come and go between versions. So the program is asked (`--help`, `--version`), and a flag that it lacks
//! is reported and left out.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The flags and commands that a program's help names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capabilities {
    /// The version, as it says it.
    pub version: Option<String>,
    /// Long flags, with their dashes.
    pub flags: BTreeSet<String>,
    /// Commands.
    pub commands: BTreeSet<String>,
}

impl Capabilities {
    /// Reads the outputs of `--help` and `--version`.
    pub fn parse(help: &str, version: &str) -> Self {
        let mut capabilities = Self { version: version_in(version), ..Self::default() };
        let mut in_commands = false;
        for line in help.lines() {
            let entry = line.trim();
            if !line.starts_with(char::is_whitespace) && !entry.is_empty() {
                in_commands = entry.trim_end_matches(':').to_ascii_lowercase().ends_with("commands");
            } else if entry.starts_with('-') {
                capabilities.flags.extend(long_flags(entry));
            } else if in_commands && let Some(command) = command_in(entry) {
                capabilities.commands.insert(command);
            }
        }
        capabilities
    }

    /// Whether it has a flag (`--json`) or a command (`resume`).
    pub fn has(&self, name: &str) -> bool {
        if name.starts_with('-') { self.flags.contains(name) } else { self.commands.contains(name) }
    }
}

/// The first word that looks like a version: `2.1.325 (Claude Code)`, `codex-cli 0.166.0`.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let mut parts = word.trim_start_matches('v').split('.');
        let number =
            |part: Option<&str>| part.is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()));
        number(parts.next()) && number(parts.next())
    };
    text.split_whitespace().find(is_version).map(|word| word.trim_start_matches('v').to_owned())
}

/// The long flags of a help entry: `-m, --model <MODEL>  The model`. What follows two spaces is description.
fn long_flags(entry: &str) -> impl Iterator<Item = String> + '_ {
    let head = entry.split("  ").next().unwrap_or(entry);
    head.split([' ', ',', '=', '[', '<', '|'])
        .filter(|word| word.len() > 2 && word.starts_with("--"))
        .map(str::to_owned)
}

/// The command of a help entry: `resume  Resume a session`, `gemini mcp  Manage servers`.
fn command_in(entry: &str) -> Option<String> {
    let head = entry.split("  ").next()?;
    let mut words = head.split_whitespace().filter(|word| !word.starts_with(['[', '<']));
    let first = words.next()?;
    let word = words.next().unwrap_or(first).split('|').next()?;
    let plain = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    plain.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_from_the_help_of_any_parser() {
        let clap = "Run Codex\n\nUsage: codex exec [OPTIONS]\n\nCommands:\n  resume  Resume a session\n  help    Print\n\nOptions:\n  -m, --model <MODEL>\n          The model; see --models-of-the-day\n      --json  Print events\n";
        let codex = Capabilities::parse(clap, "codex-cli 0.166.0\n");
        assert!(codex.has("--model") && codex.has("--json") && codex.has("resume"));
        assert!(!codex.has("--models-of-the-day"), "a description is no flag");
        assert_eq!(codex.version.as_deref(), Some("0.166.0"));

        let commander = "Options:\n  --allowedTools, --allowed-tools <tools...>  Tools (e.g. \"Bash\")\n  -c, --continue                     Continue\n";
        let claude = Capabilities::parse(commander, "2.1.325 (Claude Code)");
        assert!(claude.has("--allowedTools") && claude.has("--allowed-tools") && claude.has("--continue"));
        assert_eq!(claude.version.as_deref(), Some("2.1.325"));

        let yargs = "Commands:\n  gemini mcp                   Manage MCP servers\n\nOptions:\n  -o, --output-format  The format.  [string] [choices: \"text\"]\n";
        let gemini = Capabilities::parse(yargs, "");
        assert!(gemini.has("--output-format") && gemini.has("mcp"));
        assert_eq!(gemini.version, None);
    }
}
