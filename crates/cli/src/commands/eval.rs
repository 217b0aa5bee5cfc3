//! `eval`: measure agents on cases.

mod asked;
mod attempt;
mod flow;
mod import;
mod judge;
mod mutate;
mod oracle;
mod runs;
mod scene;
mod session;
mod steps;
mod tape;
mod taped_model;
mod tell;
mod tested;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, Subcommand};
use rehearsal_core::config::Overrides;
use rehearsal_core::flow::Flow;
use rehearsal_eval::case::{Eval, parse};
use rehearsal_eval::grade::grade;
use rehearsal_eval::run::{Ended, Journal, Limits, RunEvent, run as run_all};
use rehearsal_eval::summary::{Record, Summary};
use rehearsal_eval::trial::Variant;
use rehearsal_llm::cassette::Matching;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Done;
use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::{Project, read_text};
use asked::Vendors;
use attempt::RealAttempts;
#[cfg(all(test, feature = "schema"))]
pub(crate) use import::ImportDocument;
#[cfg(all(test, feature = "schema"))]
pub(crate) use mutate::MutateDocument;
#[cfg(all(test, feature = "schema"))]
pub(crate) use oracle::OracleDocument;
use runs::{EvalRun, Runs};
#[cfg(all(test, feature = "schema"))]
pub(crate) use session::SessionDocument;
use tape::{Mode, Tapes};
#[cfg(all(test, feature = "schema"))]
pub(crate) use tell::{CompareDocument, EvalDocument, EvalListDocument};

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
            (false, false, false) => Mode::StandIns,
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
    let runs = Runs::of(&project);
    match command {
        EvalCommand::List => list(&project, &runs, context),
        EvalCommand::Run(args) => run_evals(&args, &project, &runs, context).await,
        EvalCommand::Show(args) => show(&runs.find(args.run.run.as_deref())?, &args.files, context),
        EvalCommand::Grade(args) => grade_again(&runs.find(args.run.as_deref())?, context),
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
fn list(project: &Project, runs: &Runs, context: &Context) -> Done {
    let found = if own_files(project)?.is_empty() { Vec::new() } else { find(&[], project, context)? };
    tell::list(&found, runs, context)
}

/// An eval and the file that it is in.
struct Found {
    eval: Eval,
    text: String,
    path: Utf8PathBuf,
}

/// The evals that are asked for.
fn find(names: &[String], project: &Project, context: &Context) -> Result<Vec<Found>, CliError> {
    let settings = project.settings(Overrides::default())?;
    let mut all = Vec::new();
    for path in files(names, project, context)? {
        let shown = project.shown(&path);
        let Some(text) = read_text(&path)? else {
            return Err(CliError::usage(format!("there is no file `{shown}`")));
        };
        let eval = parse(&text, settings.agent.as_str()).map_err(|error| {
            CliError::in_file(error, &shown).hint("`rehearsal schema eval` has the form of the file")
        })?;
        asked::check_names(&eval, &settings)?;
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

async fn run_evals(args: &RunArgs, project: &Project, runs: &Runs, context: &Context) -> Done {
    let mut red = false;
    let stop = stop_on_signal()?;
    for mut found in find(&args.evals, project, context)? {
        choose(&mut found.eval, args);
        if found.eval.cases.is_empty() {
            continue;
        }
        let run = if args.resume { runs.last_of(&found.eval.name)? } else { None };
        let run = run.map_or_else(|| runs.create(&found.eval.name, &found.text, context.now()), Ok)?;
        let mut journal = open(&run)?;
        let ended = run_one(&found, &mut journal, args, project, &stop, context).await?;
        let summary = Summary::of(&found.eval, journal.records());
        run.write_results(&summary, journal.records())?;
        red |= !summary.holds();
        tell::summary(&summary, journal.records(), &run, &args.files, context)?;
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

/// Only what is asked for of it.
fn choose(eval: &mut Eval, args: &RunArgs) {
    let wanted = |name: &str| args.case.as_ref().is_none_or(|text| name.contains(text.as_str()));
    let tagged = |tags: &[String]| args.tag.as_ref().is_none_or(|tag| tags.contains(tag));
    eval.cases.retain(|case| wanted(&case.name) && tagged(&case.file.tags));
    if let Some(repeat) = args.repeat {
        eval.cases.iter_mut().for_each(|case| case.repeat = repeat.max(1));
    }
}

async fn run_one(
    found: &Found,
    journal: &mut Journal,
    args: &RunArgs,
    project: &Project,
    stop: &CancellationToken,
    context: &Context,
) -> Result<Ended, CliError> {
    let attempts = attempts(found, args.answers.mode(), project, context).await?;
    let attempts = Arc::new(RealAttempts { trust: args.trust, ..attempts });
    let limits = Limits { jobs: args.jobs, budget_usd: args.budget };
    let began = std::time::Instant::now();
    let ui = context.ui;
    let mut watch = |event: RunEvent<'_>| {
        if let RunEvent::Over(record, progress) = event {
            tell::progress(record, progress, began.elapsed(), ui);
        }
    };
    run_all(&found.eval, attempts, journal, limits, &mut watch, stop)
        .await
        .map_err(|error| CliError::of(Exit::Internal, &error))
}

/// Whoever can make trials of an eval.
async fn attempts(
    found: &Found,
    mode: Mode,
    project: &Project,
    context: &Context,
) -> Result<RealAttempts, CliError> {
    let variables = variables();
    let variable = |name: &str| variables.get(name).cloned();
    let beside = found.path.parent().unwrap_or(Utf8Path::new(".")).to_owned();
    Ok(RealAttempts {
        vendors: Vendors::of(&found.eval, mode, Arc::clone(&context.clock), variable),
        eval: found.eval.clone(),
        settings: project.settings(Overrides::default())?,
        clock: Arc::clone(&context.clock),
        tapes: Tapes {
            directory: project.directory().join("cassettes"),
            beside: beside.clone(),
            eval: found.eval.name.clone(),
        },
        beside,
        flows: flows(&found.eval, project)?,
        prompts: project.directory().join("prompts"),
        store: project.store().await?,
        mode,
        trust: false,
    })
}

/// The flows that an eval names.
fn flows(eval: &Eval, project: &Project) -> Result<BTreeMap<String, Arc<Flow>>, CliError> {
    let variants = eval.cases.iter().flat_map(|case| &case.variants);
    let names: BTreeSet<&String> = variants.filter_map(|variant| variant.flow.as_ref()).collect();
    names.into_iter().map(|name| Ok((name.clone(), Arc::new(project.flow(name)?)))).collect()
}

fn open(run: &EvalRun) -> Result<Journal, CliError> {
    Journal::open(run.trials().as_std_path()).map_err(|error| CliError::of(Exit::Usage, &error))
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
    tell::summary(&summary, &records, run, files, context)?;
    Ok(if summary.holds() { Exit::Ok } else { Exit::Red })
}

/// The eval of a run as it was then, and its trials.
fn read(run: &EvalRun, context: &Context) -> Result<(Eval, Vec<Record>), CliError> {
    let project = context.project()?;
    let agent = project.settings(Overrides::default())?.agent;
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
        let case = eval.cases.iter().find(|case| case.name == record.id.case);
        if let (Some(case), Some(trial)) = (case, &record.trial) {
            (record.graded, record.verdict) = grade(trial, &case.assertions, case.file.threshold);
        }
    }
    let summary = Summary::of(&eval, &records);
    let nowhere = ReportFiles { html: None, markdown: None, junit: None };
    tell::summary(&summary, &records, run, &nowhere, context)?;
    Ok(if summary.holds() { Exit::Ok } else { Exit::Red })
}

fn compare(args: &CompareArgs, runs: &Runs, context: &Context) -> Done {
    let side = |written: &str| -> Result<(Summary, Variant), CliError> {
        let (name, agent) = match written.rsplit_once(':') {
            Some((name, agent)) => (name, Some(agent)),
            None => (written, None),
        };
        let (eval, records) = read(&runs.find(Some(name))?, context)?;
        let summary = Summary::of(&eval, &records);
        let fits = |variant: &&Variant| {
            agent.is_none_or(|agent| variant.to_string() == agent || variant.agent == agent)
        };
        let mut variants = summary.variants.iter().map(|one| &one.variant).filter(fits);
        match (variants.next().cloned(), variants.next()) {
            (Some(variant), None) => Ok((summary, variant)),
            (Some(_), Some(_)) => {
                Err(CliError::usage(format!("`{written}` has several agents")).hint("name one: RUN:AGENT"))
            }
            (None, _) => Err(CliError::usage(format!("`{written}` has no such agent"))),
        }
    };
    let ((first, a), (second, b)) = (side(&args.first)?, side(&args.second)?);
    let comparison = first.compare(&a, &second, &b, 0).ok_or_else(|| {
        CliError::usage("there is no case that both have trials of")
            .hint("`rehearsal eval show RUN` lists them")
    })?;
    tell::comparison(&args.first, &args.second, comparison, context);
    Ok(Exit::Ok)
}
