//! Prepares scenarios, plays them, and reports each in the order in which they are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use rehearsal_app::file::read_text;
use rehearsal_app::project::Project;
use rehearsal_core::flow::Flow;
use rehearsal_scenario::{
    Prepared, Rehearsal, RepositoryCache, ScenarioError, Suite, SuiteError, SuiteEvent,
};
use rehearsal_stage::Script;

use super::progress::Progress;
use super::{Played, RehearseArgs, Written, report};
use crate::context::{Context, own_program, variables};
use crate::error::CliError;
use crate::exit::Exit;

/// Plays all of them.
pub(super) fn all(
    found: Vec<Written>,
    args: &RehearseArgs,
    project: Option<&Project>,
    context: &Context,
) -> Result<Vec<Played>, CliError> {
    let (mut files, mut scenarios) = (Vec::new(), Vec::new());
    for written in found {
        let (flow, other_flows) = flows_of(&written, project)?;
        let script = script_of(&written)?;
        files.push(written.file);
        scenarios.push(Prepared { scenario: written.scenario, flow, other_flows, script });
    }
    let suite = Suite {
        rehearsal: Rehearsal {
            program: own_program()?,
            variables: variables(),
            project: project.map(|project| project.root.clone()),
            layers: project.map_or_else(|| Ok(Vec::new()), Project::layers)?,
            repositories: RepositoryCache::default(),
        },
        store: args.store.into(),
        jobs: args.jobs.map_or_else(cores, |jobs| jobs as usize),
        keep: args.keep.as_ref().map(|keep| context.directory.join(keep)),
        seed: args.seed,
        workers: args.workers,
    };
    let progress = Progress::new(context.ui, scenarios.len());
    let watch = |event: SuiteEvent<'_>| match event {
        SuiteEvent::Started(name) => progress.began(name),
        SuiteEvent::Ended(name) => progress.ended(name),
    };
    let mut all: Vec<Played> = Vec::new();
    let played = suite.play(&scenarios, &watch, |rehearsed, duration| {
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut played = Played { file: files[all.len()].clone(), duration_ms, rehearsed };
        progress.say(report::told(&played, args.trace));
        if !args.trace {
            played.rehearsed.timeline.clear();
            played.rehearsed.log.clear();
        }
        all.push(played);
    });
    played.map_err(|error| suite_error(error, &files))?;
    Ok(all)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

fn suite_error(error: SuiteError, files: &[String]) -> CliError {
    match error {
        SuiteError::Server(error) => CliError::of(Exit::Usage, &error)
            .hint("install PostgreSQL (Debian: `apt install postgresql`), or leave `--store` out"),
        SuiteError::Exists(_) => CliError::of(Exit::Usage, &error).hint("name a new directory"),
        SuiteError::NotUtf8(_) => CliError::of(Exit::Usage, &error),
        SuiteError::Io(error) => error.into(),
        SuiteError::Scenario { at, error } => match error {
            ScenarioError::Source(error) => CliError::in_file(error, &files[at]),
            ScenarioError::Io(error) => error.into(),
            ScenarioError::Open(error) => error.into(),
            ScenarioError::Store(error) => error.into(),
            ScenarioError::Commit(error) => error.into(),
            ScenarioError::Name(error) => error.into(),
            error @ (ScenarioError::Git(_) | ScenarioError::Worktree(_)) => CliError::of(Exit::Git, &error),
        },
    }
}

/// What a scenario's model answers.
fn script_of(written: &Written) -> Result<Option<Arc<Script>>, CliError> {
    let Some(stage) = &written.scenario.stage else { return Ok(None) };
    let (text, file) = if stage.value.contains('\n') {
        (stage.value.clone(), format!("the stage of scenario `{}`", written.scenario.name.value))
    } else {
        let path = written.path.parent().unwrap_or(&written.path).join(&stage.value);
        let text = read_text(&path)?
            .ok_or_else(|| CliError::usage(format!("there is no file `{path}`")).at(&written.file))?;
        (text, path.to_string())
    };
    let script = Script::parse(&text).map_err(|error| CliError::in_file(error, &file))?;
    Ok(Some(Arc::new(script)))
}

/// The flow of a scenario (its own, the project's, or a shipped one), and those that its tasks name.
fn flows_of(written: &Written, project: Option<&Project>) -> Result<(Arc<Flow>, Flows), CliError> {
    let scenario = &written.scenario;
    let named = |name: &str, place: Option<rehearsal_core::Place>| {
        let found = match project {
            Some(project) => project.flow(name).map_err(CliError::from),
            None => Flow::shipped(name).ok_or_else(|| CliError::usage(format!("there is no flow `{name}`"))),
        };
        let place = place.map_or_else(|| written.file.clone(), |place| format!("{}:{place}", written.file));
        found.map(Arc::new).map_err(|error| error.or_at(&place))
    };
    let usual = match scenario.inline_flow() {
        Some(flow) => flow.map(Arc::new).map_err(|error| CliError::in_file(error, &written.file))?,
        None => named(&scenario.flow.value, scenario.flow.place)?,
    };
    let mut others = BTreeMap::new();
    for task in &scenario.tasks {
        if let Some(name) = &task.value.flow {
            others.insert(name.clone(), named(name, task.place)?);
        }
    }
    Ok((usual, others))
}

/// Flows by name.
type Flows = BTreeMap<String, Arc<Flow>>;
