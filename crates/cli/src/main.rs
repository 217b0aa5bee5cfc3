//! `rehearsal`: arguments in, words and exit codes out; no rules of its own.

mod cli;
mod commands;
mod context;
mod error;
mod exit;
mod inside;
mod project;
mod scratch;
mod ui;
mod words;

use std::process::ExitCode;

use clap::Parser;
use rehearsal_agent::process::{SHIM_ARGUMENT, shim_main};

use crate::cli::Cli;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Document, emit};

/// Help and the version are answers; all else is an error, for programs too.
fn wrong_arguments(error: &clap::Error) -> ExitCode {
    // Nobody reads it any more: nothing can be said about that.
    let _ = error.print();
    let json = std::env::args_os().any(|arg| arg == "--json");
    if error.use_stderr() && json {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let told = CliError::usage(first.trim_start_matches("error: "));
        emit(&Document::new(told.hint("`rehearsal --help` lists what there is").document()));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8))
}

fn main() -> ExitCode {
    // The supervisor of an agent is this program again; it must start in a millisecond and parse nothing.
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == SHIM_ARGUMENT => {
            return ExitCode::from(u8::try_from(shim_main(args)).unwrap_or(1));
        }
        // A stand-in takes the flags of the CLI that it plays, which are none of ours.
        Some(first) if first == "mock-agent" => {
            if let Some(code) = commands::mock_agent::play(std::env::args().skip(2)) {
                return code;
            }
        }
        _ => {}
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return wrong_arguments(&error),
    };
    let json = cli.json;
    match commands::dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let exit = error.exit;
            let ui = ui::Ui { json };
            ui.aside(error.render().trim_end());
            if json {
                emit(&Document::new(error.document()));
            }
            exit.into()
        }
    }
}
