//! `completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde::Serialize;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: rehearsal completions bash > ~/.local/share/bash-completion/completions/rehearsal"
)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    shell: Shell,
}

/// `completions --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Completions {
    /// For which shell.
    shell: String,
    /// The script.
    script: String,
}

pub(crate) fn run(args: &CompletionsArgs, ui: Ui) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "rehearsal", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    ui.say(script.trim_end());
    ui.document(Completions { shell: args.shell.to_string(), script });
    Exit::Ok
}
