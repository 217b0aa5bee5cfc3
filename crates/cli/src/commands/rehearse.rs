//! `rehearse`: plays scenarios, several at once, and says what is not as expected.

mod play;
mod progress;
mod report;

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use rehearsal_scenario::{Rehearsed, StoreKind};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal rehearse                          # all of .rehearsal/scenarios
  rehearsal rehearse --filter conflict --trace
  rehearsal rehearse a.yaml --seed 7 --keep /tmp/stage
  rehearsal rehearse --init                   # write a few scenarios to begin with")]
pub(crate) struct RehearseArgs {
    /// Files with scenarios; all in `.rehearsal/scenarios` otherwise
    #[arg(value_name = "FILE")]
    files: Vec<Utf8PathBuf>,
    /// Only the scenario of this name, or those whose names contain it
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// So many at once; as many as there are cores otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,
    /// Show what happened, and when
    #[arg(long)]
    trace: bool,
    /// Where the tasks of each scenario live
    #[arg(long, value_name = "STORE", default_value = "sqlite", value_parser = store_kind())]
    store: StoreKind,
    /// Write a JUnit report here
    #[arg(long, value_name = "FILE")]
    junit: Option<Utf8PathBuf>,
    /// Another seed than the scenarios': another order wherever nothing else decides
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Another number of workers than the scenarios'
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: Option<u32>,
    /// Keep what each was played with in here, and its log
    #[arg(long, value_name = "DIR")]
    keep: Option<Utf8PathBuf>,
    /// Write a few scenarios to begin with
    #[arg(long, conflicts_with_all = ["files", "filter", "junit", "keep", "seed"])]
    init: bool,
}

fn store_kind() -> impl TypedValueParser<Value = StoreKind> {
    let sqlite = PossibleValue::new("sqlite").help("A file");
    let help = "A PostgreSQL of their own, which has to be installed";
    PossibleValuesParser::new([sqlite, PossibleValue::new("postgres").help(help)])
        .map(|name| if name == "postgres" { StoreKind::Postgres } else { StoreKind::Sqlite })
}

/// `rehearse --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RehearseDocument {
    /// How many are as expected.
    passed: usize,
    /// How many are not.
    failed: usize,
    /// Each of them.
    scenarios: Vec<Played>,
}

/// One scenario that was played.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Played {
    /// The file it is in.
    file: String,
    /// How long it took in real time, in milliseconds.
    duration_ms: u64,
    /// What came of it.
    #[serde(flatten)]
    rehearsed: Rehearsed,
}

/// `rehearse --init --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StarterDocument {
    /// The files that were written.
    written: Vec<String>,
}

pub(crate) fn run(args: &RehearseArgs, context: &Context) -> Done {
    if args.init {
        return write_starter(context);
    }
    let played = play::all(args, context)?;
    if let Some(path) = &args.junit {
        report::junit(&played, &context.directory.join(path))?;
    }
    let failed = played.iter().filter(|played| !played.rehearsed.passed).count();
    let passed = played.len() - failed;
    let time: u64 = played.iter().map(|played| played.rehearsed.elapsed_ms).sum();
    context.ui.say(report::summary(passed, failed, Duration::from_millis(time)));
    context.ui.document(RehearseDocument { passed, failed, scenarios: played });
    Ok(if failed == 0 { Exit::Ok } else { Exit::Red })
}

fn write_starter(context: &Context) -> Done {
    let written = rehearsal_app::scenarios::write_starter(&context.project()?)?;
    for path in &written {
        context.ui.say(format!("{path} is written"));
    }
    if written.is_empty() {
        context.ui.say("all of them are there already");
    }
    context.ui.say("next: rehearsal rehearse --trace");
    context.ui.document(StarterDocument { written });
    Ok(Exit::Ok)
}
