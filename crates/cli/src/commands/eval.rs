//! `eval`: measure agents on cases.

mod import;
mod mutate;
mod oracle;
mod report;
mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, Subcommand};
use rehearsal_app::file::read_text;
use rehearsal_app::project::Project;
use rehearsal_core::AgentName;
use rehearsal_core::config::Settings;
use rehearsal_core::flow::Flow;
use rehearsal_eval::attempt::{AgentTrials, Mode, TrialContext};
use rehearsal_eval::case::{Eval, parse};
use rehearsal_eval::direct::ECHO;
use rehearsal_eval::run::{Archive, Ended, EvalRun, FindRunError, Journal, Limits, RunEvent, run as run_all};
use rehearsal_eval::summary::{Record, Summary, VariantError};
use rehearsal_eval::trial::Variant;
use rehearsal_llm::cassette::Matching;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Done;
use crate::context::{Context, own_program, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Document;
#[cfg(all(test, feature = "schema"))]
pub(crate) use import::ImportDocument;
#[cfg(all(test, feature = "schema"))]
pub(crate) use report::{CompareDocument, EvalDocument, EvalListDocument};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  rehearsal eval run                       # all of .rehearsal/evals, with agents that are stand-ins
  rehearsal eval run smoke --live --budget 5 --repeat 10
  rehearsal eval run smoke --record        # the same once, and then for nothing:
  rehearsal eval run smoke --replay
  rehearsal eval show                      # the last run again
  rehearsal eval compare 20261116-101500-smoke 20261117-101500-smoke")]
pub(crate) enum EvalCommand {
    /// The evals that there are, and their runs
    #[command(after_help = "Example: rehearsal eval list --json")]
    List,
    /// Run evals
    Run(RunArgs),
    /// What came of a run
    Show(ShowArgs),
    /// Grade a run again, with the assertions as they are now
    #[command(after_help = "Example: rehearsal eval grade 20261116-101500-smoke")]
    Grade(OneRun),
    /// Compare two runs, or two agents of one, case by case
    Compare(CompareArgs),
    /// Try the cases themselves: the known patch must pass, and doing nothing must fail
    Oracle(OracleArgs),
    /// Record one run of an agent under a name
    Record(session::RecordArgs),
    /// Play what `eval record` recorded, and tell what differs
    Replay(session::ReplayArgs),
    /// Try the assertions: is there a way to make each of them fail?
    Mutate(MutateArgs),
    /// Make an eval of what another tool has, or of the project's own history
    Import(import::ImportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal eval mutate smoke

Each trial that passed in the last run (without one: the known patch) is made worse in many ways, and graded again. An assertion that \
nothing breaks says nothing; what survives all assertions of a case is a fault that nobody would notice.")]
pub(crate) struct MutateArgs {
    /// Which evals: names, or files; without it all of .rehearsal/evals
    evals: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal eval oracle smoke")]
pub(crate) struct OracleArgs {
    /// Which evals: names, or files; without it all of .rehearsal/evals
    evals: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal eval run smoke
  rehearsal eval run --live --repeat 10 --budget 5
  rehearsal eval run smoke --record && rehearsal eval run smoke --replay
  rehearsal eval run --resume --html report.html

Recordings are in .rehearsal/cassettes/evals/EVAL/CASE/, a file for each who was measured and each trial, and one for its judge beside it. \
They hold no key and no directory of this machine, and are made to be committed. A trial without a recording of its own plays the first; \
trials on one recording are one sample, however many they are.")]
pub(crate) struct RunArgs {
    /// Which evals: names, or files; without it all of .rehearsal/evals
    evals: Vec<String>,
    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Only cases with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    #[command(flatten)]
    answers: Answers,
    /// Let agents whose profile says `permission: trust` do everything without being asked
    #[arg(long)]
    trust: bool,
    /// So many trials at a time
    #[arg(long, short, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// How often each case is tried
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// Begin no trial when so many dollars are spent
    #[arg(long, value_name = "USD")]
    budget: Option<f64>,
    /// Go on with the last run of each eval: only what is missing is tried
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    files: ReportFiles,
}

/// Where the answers of models come from.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
struct Answers {
    /// Let agents and judges ask their vendors, for money
    #[arg(long)]
    live: bool,
    /// The same, and keep what they are answered in .rehearsal/cassettes/evals
    #[arg(long)]
    record: bool,
    /// Play what was recorded: no key, no network, no token
    #[arg(long)]
    replay: bool,
}

impl Answers {
    fn mode(self) -> Mode {
        match (self.live, self.record, self.replay) {
            (true, _, _) => Mode::Live,
            (_, true, _) => Mode::Record,
            (_, _, true) => Mode::Replay(Matching::Strict),
            (false, false, false) => Mode::Scripted,
        }
    }
}

/// Where else it is told.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReportFiles {
    /// Also write it as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<Utf8PathBuf>,
    /// Also write it as Markdown, for the summary of a CI run
    #[arg(long, value_name = "FILE")]
    markdown: Option<Utf8PathBuf>,
    /// Also write it as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<Utf8PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal eval show --markdown summary.md")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    run: OneRun,
    #[command(flatten)]
    files: ReportFiles,
}

#[derive(Debug, Args)]
pub(crate) struct OneRun {
    /// Which run: its name, or a unique part of it; without it the last one
    run: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal eval compare smoke:claude smoke:codex")]
pub(crate) struct CompareArgs {
    /// A run, or `RUN:AGENT`
    first: String,
    /// Another, or the same with another agent
    second: String,
}

pub(crate) async fn run(command: EvalCommand, context: &Context) -> Done {
    let project = context.project()?;
    let runs = Archive::at(project.state_dir()?.join("evals"));
    match command {
        EvalCommand::List => list(&project, &runs, context),
        EvalCommand::Run(args) => run_evals(&args, &project, &runs, context).await,
        EvalCommand::Show(args) => show(&find_run(&runs, args.run.run.as_deref())?, &args.files, context),
        EvalCommand::Grade(args) => grade_again(&find_run(&runs, args.run.as_deref())?, context),
        EvalCommand::Compare(args) => compare(&args, &runs, context),
        EvalCommand::Oracle(args) => {
            oracle::run(&find(&args.evals, &project, context)?, &project, context).await
        }
        EvalCommand::Record(args) => session::record(&args, &project, context).await,
        EvalCommand::Replay(args) => session::replay(&args, &project, context).await,
        EvalCommand::Mutate(args) => {
            mutate::run(&find(&args.evals, &project, context)?, &runs, &project, context).await
        }
        EvalCommand::Import(args) => import::run(&args, &project, context).await,
    }
}

/// Runs stay when evals go.
fn list(project: &Project, runs: &Archive, context: &Context) -> Done {
    let found = if own_files(project)?.is_empty() { Vec::new() } else { find(&[], project, context)? };
    report::list(&found, runs, context)
}

/// An eval and the file that it is in.
struct Found {
    eval: Eval,
    text: String,
    path: Utf8PathBuf,
}

/// The evals that are asked for.
fn find(names: &[String], project: &Project, context: &Context) -> Result<Vec<Found>, CliError> {
    let settings = project.settings()?;
    let mut all = Vec::new();
    for path in files(names, project, context)? {
        let shown = project.shown(&path);
        let Some(text) = read_text(&path)? else {
            return Err(CliError::usage(format!("there is no file `{shown}`")));
        };
        let eval = parse(&text, settings.agent.as_str()).map_err(|error| {
            CliError::in_file(error, &shown).hint("`rehearsal schema eval` has the form of the file")
        })?;
        check_names(&eval, settings)?;
        all.push(Found { eval, text, path });
    }
    let is_file = |name: &&String| name.ends_with(".yaml") || name.ends_with(".yml");
    for name in names.iter().filter(|name| !is_file(name)) {
        if !all.iter().any(|found| found.eval.name == *name) {
            let known: Vec<&str> = all.iter().map(|found| found.eval.name.as_str()).collect();
            let error = CliError::usage(format!("there is no eval `{name}`"));
            return Err(error.hint(format!("there are: {}", known.join(", "))));
        }
    }
    all.retain(|found| {
        names.is_empty()
            || names.contains(&found.eval.name)
            || names.iter().any(|name| is_file(&name) && context.directory.join(name) == found.path)
    });
    Ok(all)
}

/// A name must not mean two things.
fn check_names(eval: &Eval, settings: &Settings) -> Result<(), CliError> {
    let named = eval.cases.iter().flat_map(|case| &case.variants).any(|variant| variant.agent == ECHO);
    let configured = AgentName::new(ECHO).is_ok_and(|name| settings.profile_of(&name).is_some());
    if named && configured {
        return Err(CliError::usage(format!(
            "`{ECHO}` is the stand-in that answers with its prompt, and an agent of the configuration"
        ))
        .hint(format!("give the agent `{ECHO}` another name")));
    }
    Ok(())
}

/// What to do where there is no eval.
const HOW_TO_BEGIN: &str = "write one: `rehearsal schema eval` tells its form, the README has an example";

fn files(names: &[String], project: &Project, context: &Context) -> Result<Vec<Utf8PathBuf>, CliError> {
    let mut paths: Vec<Utf8PathBuf> = names
        .iter()
        .filter(|name| name.ends_with(".yaml") || name.ends_with(".yml"))
        .map(|name| context.directory.join(name))
        .collect();
    paths.extend(own_files(project)?);
    paths.sort();
    paths.dedup();
    if paths.is_empty() {
        return Err(CliError::usage("there is no eval in .rehearsal/evals").hint(HOW_TO_BEGIN));
    }
    Ok(paths)
}

/// Those of the project.
fn own_files(project: &Project) -> Result<Vec<Utf8PathBuf>, CliError> {
    let directory = project.directory().join("evals");
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in directory.read_dir_utf8()? {
        let path = entry?.into_path();
        if matches!(path.extension(), Some("yaml" | "yml")) {
            paths.push(path);
        }
    }
    Ok(paths)
}

async fn run_evals(args: &RunArgs, project: &Project, runs: &Archive, context: &Context) -> Done {
    let mut red = false;
    let stop = stop_on_signal()?;
    for mut found in find(&args.evals, project, context)? {
        found.eval.select(args.case.as_deref(), args.tag.as_deref(), args.repeat);
        if found.eval.cases.is_empty() {
            continue;
        }
        let run = if args.resume { runs.last_of(&found.eval.name)? } else { None };
        let run = run.map_or_else(|| runs.create(&found.eval.name, &found.text, context.now()), Ok)?;
        let mut journal = open(&run)?;
        let ended = run_one(&found, &mut journal, args, project, &stop, context).await?;
        let summary = Summary::of(&found.eval, journal.records());
        let document = serde_json::to_string_pretty(&Document::new(&summary)).unwrap_or_default();
        run.write_results(&document, &summary, journal.records())?;
        red |= !summary.holds();
        report::summary(&summary, journal.records(), &run, &args.files, context)?;
        match ended {
            Ended::Complete => {}
            Ended::OverBudget => {
                context.ui.aside("the budget is spent; `rehearsal eval run --resume` makes the rest");
                return Ok(Exit::Budget);
            }
            Ended::Cancelled => {
                context.ui.aside("stopped; `rehearsal eval run --resume` makes the rest");
                return Ok(Exit::Interrupted);
            }
        }
    }
    Ok(if red { Exit::Red } else { Exit::Ok })
}

async fn run_one(
    found: &Found,
    journal: &mut Journal,
    args: &RunArgs,
    project: &Project,
    stop: &CancellationToken,
    context: &Context,
) -> Result<Ended, CliError> {
    let trials = Arc::new(trials(found, args.answers.mode(), args.trust, project, context).await?);
    let limits = Limits { jobs: args.jobs, budget_usd: args.budget };
    let began = std::time::Instant::now();
    let ui = context.ui;
    let mut watch = |event: RunEvent<'_>| {
        if let RunEvent::Over(record, progress) = event {
            report::progress(record, progress, began.elapsed(), ui);
        }
    };
    run_all(&found.eval, trials, journal, limits, &mut watch, stop)
        .await
        .map_err(|error| CliError::of(Exit::Internal, &error))
}

/// Makes the trials of an eval.
async fn trials(
    found: &Found,
    mode: Mode,
    trust: bool,
    project: &Project,
    context: &Context,
) -> Result<AgentTrials, CliError> {
    let flows = flows(&found.eval, project)?;
    let surroundings = Arc::new(trial_context(flows, trust, project, context).await?);
    let directory = found.path.parent().unwrap_or(Utf8Path::new("."));
    Ok(AgentTrials::new(&found.eval, directory, mode, surroundings))
}

/// What trials need of the project and of this process.
async fn trial_context(
    flows: BTreeMap<String, Arc<Flow>>,
    trust: bool,
    project: &Project,
    context: &Context,
) -> Result<TrialContext, CliError> {
    let settings = project.settings()?.clone();
    let mut templates = BTreeMap::new();
    if !flows.is_empty() {
        for name in settings.agent_names() {
            let path = project.directory().join("prompts").join(format!("{name}.md"));
            templates.extend(read_text(&path)?.map(|text| (name, text)));
        }
    }
    Ok(TrialContext {
        settings,
        flows,
        templates,
        cassettes: project.directory().join("cassettes"),
        store: project.store().await?,
        clock: Arc::clone(&context.clock),
        variables: variables(),
        program: own_program()?,
        trust,
    })
}

/// The flows that an eval names.
fn flows(eval: &Eval, project: &Project) -> Result<BTreeMap<String, Arc<Flow>>, CliError> {
    let variants = eval.cases.iter().flat_map(|case| &case.variants);
    let names: BTreeSet<&String> = variants.filter_map(|variant| variant.flow.as_ref()).collect();
    names.into_iter().map(|name| Ok((name.clone(), Arc::new(project.flow(name)?)))).collect()
}

fn open(run: &EvalRun) -> Result<Journal, CliError> {
    run.journal().map_err(|error| CliError::of(Exit::Usage, &error))
}

/// The run with this name or a unique part of it; without a name, the last one.
fn find_run(runs: &Archive, name: Option<&str>) -> Result<EvalRun, CliError> {
    runs.find(name).map_err(|error| match error {
        FindRunError::NoRuns => CliError::of(Exit::Usage, &error).hint("`rehearsal eval run` runs them"),
        FindRunError::Unknown(_) | FindRunError::Ambiguous(_) => {
            CliError::of(Exit::Usage, &error).hint("`rehearsal eval list` shows them")
        }
        FindRunError::Io(error) => error.into(),
    })
}

/// Cancelled by Ctrl-C or a polite kill.
fn stop_on_signal() -> Result<CancellationToken, CliError> {
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        told.cancel();
    });
    Ok(stop)
}

fn show(run: &EvalRun, files: &ReportFiles, context: &Context) -> Done {
    let (eval, records) = read(run, context)?;
    let summary = Summary::of(&eval, &records);
    report::summary(&summary, &records, run, files, context)?;
    Ok(if summary.holds() { Exit::Ok } else { Exit::Red })
}

/// The eval of a run as it was then, and its trials.
fn read(run: &EvalRun, context: &Context) -> Result<(Eval, Vec<Record>), CliError> {
    let project = context.project()?;
    let agent = project.settings()?.agent.clone();
    let path = run.eval_file();
    let text = read_text(&path)?.unwrap_or_default();
    let eval = parse(&text, agent.as_str())
        .map_err(|error| CliError::in_file(error, project.shown(&path).as_str()))?;
    Ok((eval, open(run)?.records().to_vec()))
}

fn grade_again(run: &EvalRun, context: &Context) -> Done {
    let (eval, mut records) = read(run, context)?;
    let now = find(&[], &context.project()?, context)?.into_iter().find(|found| found.eval.name == eval.name);
    let eval = now.map_or(eval, |found| found.eval);
    for record in &mut records {
        record.grade_again(&eval);
    }
    let summary = Summary::of(&eval, &records);
    let nowhere = ReportFiles { html: None, markdown: None, junit: None };
    report::summary(&summary, &records, run, &nowhere, context)?;
    Ok(if summary.holds() { Exit::Ok } else { Exit::Red })
}

fn compare(args: &CompareArgs, runs: &Archive, context: &Context) -> Done {
    let side = |written: &str| -> Result<(Summary, Variant), CliError> {
        let (name, agent) = match written.rsplit_once(':') {
            Some((name, agent)) => (name, Some(agent)),
            None => (written, None),
        };
        let (eval, records) = read(&find_run(runs, Some(name))?, context)?;
        let summary = Summary::of(&eval, &records);
        match summary.variant(agent).cloned() {
            Ok(variant) => Ok((summary, variant)),
            Err(VariantError::Several) => {
                Err(CliError::usage(format!("`{written}` has several agents")).hint("name one: RUN:AGENT"))
            }
            Err(VariantError::Unknown) => Err(CliError::usage(format!("`{written}` has no such agent"))),
        }
    };
    let ((first, a), (second, b)) = (side(&args.first)?, side(&args.second)?);
    let comparison = first.compare(&a, &second, &b, 0).ok_or_else(|| {
        CliError::usage("there is no case that both have trials of")
            .hint("`rehearsal eval show RUN` lists them")
    })?;
    report::comparison(&args.first, &args.second, comparison, context);
    Ok(Exit::Ok)
}
