//! `mock-agent`.

use std::process::ExitCode;

use clap::Args;
use rehearsal_agent::clis::KNOWN;
use rehearsal_agent::mock::{MockArgs, MockEnv, mock_agent_main};
use rehearsal_core::Clock;
use rehearsal_engine::SystemClock;

use crate::exit::Exit;
use crate::ui::Ui;

/// Only for `--help`: what is played is read before any other argument of ours.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal mock-agent --script runs.yaml < prompt.md
  rehearsal mock-agent --as claude --script runs.yaml -p --output-format stream-json < prompt.md
  MOCK_OUTCOME=success MOCK_COMMITS=2 rehearsal mock-agent < prompt.md

Without a script it does what MOCK_OUTCOME, MOCK_DECISION, MOCK_COMMENT, MOCK_REASON, MOCK_COMMITS, MOCK_CRASH and \
MOCK_SLEEP say. `rehearsal schema mock-script` has all that a script can do.")]
pub(crate) struct MockAgentArgs {
    #[arg(long = "as", value_name = "AGENT", help = agent_help())]
    wire: Option<String>,
    /// The script: what it does, call by call
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
    /// Flags of the CLI that is played
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    foreign: Vec<String>,
}

fn agent_help() -> String {
    format!("Whose output format it speaks: {}; plain text without it", KNOWN.foreign_in_words())
}

/// Plays, unless it is asked for our own help.
pub(crate) fn play(args: impl Iterator<Item = String>) -> Option<ExitCode> {
    let args: Vec<String> = args.collect();
    if matches!(args.first().map(String::as_str), Some("--help" | "-h")) {
        return None;
    }
    let args = match MockArgs::parse(args) {
        Ok(args) => args,
        Err(error) => {
            Ui { json: false }.aside(format!("error: {error}"));
            return Some(Exit::Usage.into());
        }
    };
    let env = MockEnv { vars: crate::context::variables(), now: SystemClock.now() };
    let status = mock_agent_main(args, &env);
    Some(ExitCode::from(u8::try_from(status.rem_euclid(256)).unwrap_or(1)))
}
