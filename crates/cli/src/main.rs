//! `rehearsal`: arguments in, words and exit codes out; no rules of its own.

mod cli;
mod commands;
mod context;
mod error;
mod exit;
mod interruption;
mod ui;
mod words;

use std::process::ExitCode;

use clap::Parser;
use rehearsal_process::{SHIM_ARGUMENT, shim_main};

use crate::cli::Cli;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Document, emit, output_was_lost};

/// Reading what agents and models say is much asking for memory: the system's own allocator takes a sixth of that time more. It
/// is not to take huge pages, of which most would be empty.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

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

/// What is played before our own command line is read: a stand-in takes the flags of the program that it plays, and
/// the supervisor of an agent, which is this program again, must start in a millisecond.
fn stand_in() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    let program = args.next()?;
    if program.to_str().is_some_and(commands::mock_gh::is_gh) {
        return commands::mock_gh::play(std::env::args().skip(1));
    }
    let first = args.next()?;
    if first == SHIM_ARGUMENT {
        return Some(ExitCode::from(u8::try_from(shim_main(args)).unwrap_or(1)));
    }
    match first.to_str() {
        Some("mock-agent") => commands::mock_agent::play(std::env::args().skip(2)),
        Some("mock-gh") => commands::mock_gh::play(std::env::args().skip(2)),
        _ => None,
    }
}

fn main() -> ExitCode {
    if let Some(code) = stand_in() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return wrong_arguments(&error),
    };
    let json = cli.json;
    match commands::dispatch(cli) {
        Ok(Exit::Ok) if output_was_lost() => Exit::Internal.into(),
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
