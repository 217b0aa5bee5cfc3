//! `agent explain`: also how anyone reports an output that was misread.

use std::io::Read;
use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_agent::driver::{ExplainFacts, Explanation, Here, explain, parse_exit};
use rehearsal_core::VirtualClock;
use rehearsal_core::config::DriverKind;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, one_line, styled};
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal agent explain claude --stdout out.jsonl --exit 1
  rehearsal agent explain gemini --stdout out.json --stderr err.txt --exit 145 --json

An exit below zero is a signal: --exit -9 is a process that SIGKILL ended.")]
pub(crate) struct ExplainArgs {
    #[arg(help = driver_help())]
    driver: DriverKind,
    /// The file with its standard output; `-` is standard input
    #[arg(long, value_name = "FILE")]
    stdout: Utf8PathBuf,
    /// The file with its standard error
    #[arg(long, value_name = "FILE")]
    stderr: Option<Utf8PathBuf>,
    /// Its exit status; negative for a signal
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    exit: i32,
    /// The repository had changed afterwards
    #[arg(long, conflicts_with = "unchanged")]
    changed: bool,
    /// The repository had not changed afterwards
    #[arg(long)]
    unchanged: bool,
    /// The run was only to look
    #[arg(long)]
    read_only: bool,
}

fn driver_help() -> String {
    let names: Vec<&str> = DriverKind::all().map(DriverKind::as_str).collect();
    format!("Whose output it is: {}", names.join(", "))
}

/// More of standard error decides nothing.
const STDERR_READ: u64 = 1 << 20;

pub(super) fn run(args: &ExplainArgs, context: &Context) -> Done {
    let open = |path: &Utf8PathBuf| -> Result<Box<dyn Read>, CliError> {
        if path == "-" {
            return Ok(Box::new(std::io::stdin()));
        }
        let file = fs_err::File::open(context.directory.join(path))
            .map_err(|error| CliError::usage(error.to_string()))?;
        Ok(Box::new(file))
    };
    let mut stderr = Vec::new();
    if let Some(path) = &args.stderr {
        open(path)?.take(STDERR_READ).read_to_end(&mut stderr)?;
    }
    let changed = match (args.changed, args.unchanged) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let facts = ExplainFacts { changed, read_only: args.read_only };
    let here = Here::of(Arc::new(VirtualClock::starting_at(context.now())), &context.environment);
    let explanation =
        explain(args.driver, open(&args.stdout)?, &stderr, parse_exit(args.exit), facts, &here)?;
    show(&explanation, context);
    if context.ui.json {
        // It carries its own version.
        crate::ui::emit(&explanation);
    }
    Ok(Exit::Ok)
}

fn show(explanation: &Explanation, context: &Context) {
    let ui = context.ui;
    let wire = &explanation.wire;
    ui.say(styled(BOLD, harmless(&explanation.verdict.outcome.to_string())));
    for reason in &explanation.verdict.because {
        ui.say(format!("- {}", harmless(reason)));
    }
    let costs = if explanation.costs_attempt { "costs an attempt" } else { "costs no attempt" };
    ui.say(format!("blame: {:?}, {costs}", explanation.blame).to_lowercase());
    ui.say(format!(
        "cost {}, tokens {}, turns {}",
        words::cost(wire.cost_usd),
        words::tokens(wire.tokens),
        wire.turns.map_or_else(|| "unknown".into(), |turns| turns.to_string())
    ));
    if !wire.final_text.is_empty() {
        ui.say(format!("final text: {}", one_line(&wire.final_text, 100)));
    }
}
