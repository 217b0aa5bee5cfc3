//! `mock-agent`.

use clap::Args;

use crate::exit::Exit;

/// Everything after the name belongs to the stand-in: it also takes the flags of the CLI that it plays.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "Example: rehearsal mock-agent --as claude --script runs.yaml < prompt.md"
)]
pub(crate) struct MockAgentArgs {
    /// `--as claude|codex|gemini|opencode`, `--script FILE`, and any flags of the CLI that is played
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

pub(crate) fn run(args: &MockAgentArgs) -> Exit {
    let _ = args;
    Exit::Ok
}
