//! `rehearsal`: arguments in, words and exit codes out; no rules of its own.

mod cli;
mod commands;
mod context;
mod error;
mod exit;
mod inside;
mod project;
mod ui;
mod words;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::ui::{Document, emit};

fn main() -> ExitCode {
    // The supervisor of an agent is this program again; it must start in a millisecond and parse nothing.
    if let Some(code) = rehearsal_agent::process::shim_from_args(std::env::args_os()) {
        return ExitCode::from(code);
    }
    let cli = Cli::parse();
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
