//! `generate DIR` and `completions SHELL`.

use camino::Utf8PathBuf;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde::Serialize;

use super::Done;
use super::schema::{SCHEMAS, Schema};
use crate::cli::Cli;
use crate::exit::Exit;
use crate::ui::Ui;
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal generate target/share")]
pub(crate) struct GenerateArgs {
    /// Where to; `schemas`, `completions` and `man` are made in it
    directory: Utf8PathBuf,
}

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

pub(crate) fn completions(args: &CompletionsArgs, ui: Ui) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "rehearsal", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    ui.say(script.trim_end());
    ui.document(Completions { shell: args.shell.to_string(), script });
    Exit::Ok
}

/// `generate --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Generated {
    /// How many files were written.
    files: u64,
}

pub(crate) fn run(args: &GenerateArgs, ui: Ui) -> Done {
    let mut files = 0;
    let schemas = args.directory.join("schemas");
    fs_err::create_dir_all(&schemas)?;
    for Schema { name, text, .. } in SCHEMAS {
        fs_err::write(schemas.join(format!("{name}.schema.json")), text)?;
        files += 1;
    }
    let completions = args.directory.join("completions");
    fs_err::create_dir_all(&completions)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
        clap_complete::generate_to(shell, &mut Cli::command(), "rehearsal", &completions)?;
        files += 1;
    }
    let man = args.directory.join("man");
    fs_err::create_dir_all(&man)?;
    clap_mangen::generate_to(Cli::command(), &man)?;
    files += fs_err::read_dir(&man)?.count() as u64;
    ui.say(format!("{} written to {}", words::count(files, "file"), args.directory));
    ui.document(Generated { files });
    Ok(Exit::Ok)
}
