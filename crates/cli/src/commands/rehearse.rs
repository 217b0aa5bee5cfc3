//! `rehearse`: plays scenarios, several at once, and says what is not as expected.

mod play;
mod progress;
mod report;
mod starter;

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_app::file::read_text;
use rehearsal_app::project::Project;
use rehearsal_app::scenarios;
use rehearsal_scenario::{Rehearsed, Scenario, parse};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
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
    #[arg(long, value_name = "STORE", default_value = "sqlite")]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StoreKind {
    /// A file
    Sqlite,
    /// A PostgreSQL of their own, which has to be installed
    Postgres,
}

impl From<StoreKind> for rehearsal_scenario::StoreKind {
    fn from(kind: StoreKind) -> Self {
        match kind {
            StoreKind::Sqlite => Self::Sqlite,
            StoreKind::Postgres => Self::Postgres,
        }
    }
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

/// A scenario and where it is written.
struct Written {
    /// As messages show it.
    file: String,
    path: Utf8PathBuf,
    scenario: Scenario,
}

pub(crate) fn run(args: &RehearseArgs, context: &Context) -> Done {
    let project = context.project().ok();
    if args.init {
        return starter::run(&context.project()?, context);
    }
    let found = find(args, project.as_ref(), context)?;
    let played = play::all(found, args, project.as_ref(), context)?;
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

/// The scenarios that are asked for, in the order of their files.
fn find(args: &RehearseArgs, project: Option<&Project>, context: &Context) -> Result<Vec<Written>, CliError> {
    let mut found: Vec<Written> = Vec::new();
    for path in paths(args, project, context)? {
        let shown = project.map_or_else(|| path.to_string(), |project| project.shown(&path));
        let Some(text) = read_text(&path)? else {
            return Err(CliError::usage(format!("there is no file `{shown}`")));
        };
        let scenarios = parse(&text).map_err(|error| CliError::in_file(error, &shown))?;
        for scenario in scenarios {
            if let Some(other) = found.iter().find(|other| other.scenario.name.value == scenario.name.value) {
                let name = &scenario.name.value;
                return Err(CliError::usage(format!(
                    "scenario `{name}` is in `{shown}` and in `{}`",
                    other.file
                )));
            }
            found.push(Written { file: shown.clone(), path: path.clone(), scenario });
        }
    }
    let is_named = |filter: &str| found.iter().any(|written| written.scenario.name.value == filter);
    let exact = args.filter.as_deref().is_some_and(is_named);
    let wanted = |written: &Written| {
        let name = &written.scenario.name.value;
        args.filter.as_ref().is_none_or(|filter| name == filter || (!exact && name.contains(filter.as_str())))
    };
    let all: Vec<String> = found.iter().map(|written| written.scenario.name.value.clone()).collect();
    found.retain(wanted);
    if found.is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(CliError::usage(format!("no scenario has `{filter}` in its name"))
            .hint(format!("there are {}", all.join(", "))));
    }
    Ok(found)
}

fn paths(
    args: &RehearseArgs,
    project: Option<&Project>,
    context: &Context,
) -> Result<Vec<Utf8PathBuf>, CliError> {
    if !args.files.is_empty() {
        return Ok(args.files.iter().map(|file| context.directory.join(file)).collect());
    }
    let project = project.cloned().map_or_else(|| context.project(), Ok)?;
    let directory = scenarios::directory(&project);
    let mut paths = Vec::new();
    if directory.is_dir() {
        for entry in directory.read_dir_utf8()? {
            let path = entry?.into_path();
            if matches!(path.extension(), Some("yaml" | "yml")) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(CliError::usage(format!("there are no scenarios in `{}`", project.shown(&directory)))
            .hint("`rehearsal rehearse --init` writes a few to begin with"));
    }
    Ok(paths)
}
