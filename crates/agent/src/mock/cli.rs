//! What a real agent answers to `--version` and `--help`, as far as a driver asks.

use std::fmt::Write as _;

use super::wire::WireFormat;

/// The answer, if the foreign arguments ask for one.
pub(super) fn answer(wire: Option<WireFormat>, foreign: &[String]) -> Option<String> {
    let asks = |names: &[&str]| foreign.iter().any(|arg| names.contains(&arg.as_str()));
    if asks(&["--version"]) {
        return Some(format!("{}\n", version(wire)));
    }
    asks(&["--help", "-h"]).then(|| help(wire))
}

fn version(wire: Option<WireFormat>) -> &'static str {
    match wire {
        Some(WireFormat::Claude) => "2.1.325 (Claude Code)",
        Some(WireFormat::Codex) => "codex-cli 0.166.0",
        Some(WireFormat::Gemini) => "0.61.0",
        Some(WireFormat::Opencode) => "1.18.33",
        Some(WireFormat::Crew) => concat!("rehearsal ", env!("CARGO_PKG_VERSION")),
        None => concat!("mock-agent ", env!("CARGO_PKG_VERSION")),
    }
}

fn help(wire: Option<WireFormat>) -> String {
    let (usage, options): (&str, &[&str]) = match wire {
        Some(WireFormat::Claude) => ("claude [options] [command] [prompt]", CLAUDE),
        Some(WireFormat::Codex) => ("codex exec [OPTIONS] [PROMPT] [COMMAND]", CODEX),
        Some(WireFormat::Gemini) => ("gemini [options] [command]", GEMINI),
        Some(WireFormat::Opencode) => ("opencode run [message..]", OPENCODE),
        Some(WireFormat::Crew) => ("rehearsal crew run [OPTIONS] --role <ROLE>", CREW),
        None => ("mock-agent [--script FILE] [--as AGENT] [-- …]", &[]),
    };
    let mut text = format!("Usage: {usage}\n\nOptions:\n");
    for option in options {
        let _ = writeln!(text, "  {option}");
    }
    text
}

const CLAUDE: &[&str] = &[
    "--add-dir <directories...>",
    "--allowedTools, --allowed-tools <tools...>",
    "--append-system-prompt <prompt>",
    "-c, --continue",
    "--dangerously-skip-permissions",
    "--disable-slash-commands",
    "--disallowedTools, --disallowed-tools <tools...>",
    "--fallback-model <model>",
    "--fork-session",
    "-h, --help",
    "--include-partial-messages",
    "--input-format <format>",
    "--json-schema <schema>",
    "--max-budget-usd <amount>",
    "--mcp-config <configs...>",
    "--model <model>",
    "--no-session-persistence",
    "--output-format <format>",
    "--permission-mode <mode>",
    "-p, --print",
    "-r, --resume [value]",
    "--session-id <uuid>",
    "--setting-sources <sources>",
    "--settings <file-or-json>",
    "--strict-mcp-config",
    "--system-prompt <prompt>",
    "--tools <tools...>",
    "--verbose",
    "-v, --version",
];

const CODEX: &[&str] = &[
    "-c, --config <key=value>",
    "--enable <FEATURE>",
    "--disable <FEATURE>",
    "-m, --model <MODEL>",
    "-s, --sandbox <SANDBOX_MODE>",
    "--dangerously-bypass-approvals-and-sandbox",
    "-C, --cd <DIR>",
    "--add-dir <DIR>",
    "--skip-git-repo-check",
    "--ephemeral",
    "--output-schema <FILE>",
    "--json",
    "-o, --output-last-message <FILE>",
    "-h, --help",
    "-V, --version",
];

const GEMINI: &[&str] = &[
    "-m, --model",
    "-p, --prompt",
    "-s, --sandbox",
    "-y, --yolo",
    "--approval-mode",
    "--allowed-tools",
    "--skip-trust",
    "-r, --resume",
    "--include-directories",
    "-o, --output-format",
    "-v, --version",
    "-h, --help",
];

const OPENCODE: &[&str] = &[
    "-h, --help",
    "-v, --version",
    "--pure",
    "-c, --continue",
    "-s, --session",
    "--fork",
    "-m, --model",
    "--agent",
    "--format",
    "-f, --file",
    "--title",
    "--dir",
    "--variant",
];

const CREW: &[&str] = &[
    "--role <ROLE>",
    "--model <MODEL>",
    "--timeout <DURATION>",
    "--agents-dir <DIR>",
    "--max-turns <N>",
    "--max-tokens <N>",
    "--append-system-prompt <TEXT>",
    "--read-only",
];
