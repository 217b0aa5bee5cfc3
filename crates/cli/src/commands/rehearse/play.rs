//! Plays scenarios, and reports each in the order in which they are written.

use rehearsal_app::scenarios;
use rehearsal_scenario::{ScenarioError, Suite, SuiteError, SuiteEvent};

use super::progress::Progress;
use super::{Played, RehearseArgs, report};
use crate::context::{Context, own_program};
use crate::error::CliError;
use crate::exit::Exit;

/// Plays all that are asked for.
pub(super) fn all(args: &RehearseArgs, context: &Context) -> Result<Vec<Played>, CliError> {
    let scenarios = scenarios::find(context, &args.files, args.filter.as_deref())?;
    let suite = scenarios::suite(context, own_program()?)?;
    let suite = Suite {
        store: args.store,
        jobs: args.jobs.map_or(suite.jobs, |jobs| jobs as usize),
        keep: args.keep.as_ref().map(|keep| context.directory.join(keep)),
        seed: args.seed,
        workers: args.workers,
        ..suite
    };
    let progress = Progress::new(context.ui, scenarios.len());
    let watch = |event: SuiteEvent<'_>| match event {
        SuiteEvent::Started(name) => progress.began(name),
        SuiteEvent::Ended(name) => progress.ended(name),
    };
    let mut all: Vec<Played> = Vec::new();
    let played = suite.play(&scenarios, &watch, |prepared, rehearsed, duration| {
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut played = Played { file: prepared.file.clone(), duration_ms, rehearsed };
        progress.say(report::told(&played, args.trace));
        if !args.trace {
            played.rehearsed.timeline.clear();
            played.rehearsed.log.clear();
        }
        all.push(played);
    });
    played.map_err(suite_error)?;
    Ok(all)
}

fn suite_error(error: SuiteError) -> CliError {
    match error {
        SuiteError::Server(error) => CliError::of(Exit::Usage, &error)
            .hint("install PostgreSQL (Debian: `apt install postgresql`), or leave `--store` out"),
        SuiteError::Exists(_) => CliError::of(Exit::Usage, &error).hint("name a new directory"),
        SuiteError::NotUtf8(_) => CliError::of(Exit::Usage, &error),
        SuiteError::Io(error) => error.into(),
        SuiteError::Scenario { file, error } => match error {
            ScenarioError::Source(error) => CliError::in_file(error, &file),
            ScenarioError::Io(error) => error.into(),
            ScenarioError::Open(error) => error.into(),
            ScenarioError::Store(error) => error.into(),
            ScenarioError::Commit(error) => error.into(),
            ScenarioError::Name(error) => error.into(),
            error @ (ScenarioError::Git(_) | ScenarioError::Worktree(_)) => CliError::of(Exit::Git, &error),
        },
    }
}
