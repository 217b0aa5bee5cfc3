//! `eval`: measure agents on cases.

mod import;
mod mutate;
mod oracle;
mod report;
mod session;

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};
use rehearsal_app::evals::{Evals, RunRequest};
use rehearsal_eval::attempt::Mode;
use rehearsal_eval::case::Eval;
use rehearsal_eval::run::{Ended, EvalRun, Limits, RunEvent};
use rehearsal_eval::summary::{Record, Summary};
use rehearsal_llm::cassette::Matching;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Done;
use crate::context::{Context, own_program};
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Document;
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
    #[command(after_help = "Example: rehearsal eval oracle smoke")]
    Oracle(Which),
    /// Record one run of an agent under a name
    Record(session::RecordArgs),
    /// Play what `eval record` recorded, and tell what differs
    Replay(session::ReplayArgs),
    /// Try the assertions: is there a way to make each of them fail?
    #[command(after_help = "Example: rehearsal eval mutate smoke

Each trial that passed in the last run (without one: the known patch) is made worse in many ways, and graded again. An assertion that \
nothing breaks says nothing; what survives all assertions of a case is a fault that nobody would notice.")]
    Mutate(Which),
    /// Make an eval of what another tool has, or of the project's own history
    Import(import::ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct Which {
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
#[derive(Debug, Default, Args)]
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
    let evals = Evals::new(context.project()?, own_program()?)?;
    match command {
        EvalCommand::List => report::list(&evals.all()?, &evals.runs, context),
        EvalCommand::Run(args) => run_evals(&args, &evals, context).await,
        EvalCommand::Show(args) => {
            let run = evals.runs.find(args.run.run.as_deref())?;
            show(&run, evals.read(&run)?, &args.files, context)
        }
        EvalCommand::Grade(args) => {
            let run = evals.runs.find(args.run.as_deref())?;
            show(&run, evals.grade_again(&run)?, &ReportFiles::default(), context)
        }
        EvalCommand::Compare(CompareArgs { first, second }) => {
            let comparison = evals.compare(&first, &second)?;
            report::comparison(first, second, comparison, context);
            Ok(Exit::Ok)
        }
        EvalCommand::Oracle(args) => oracle::run(&args.evals, &evals, context).await,
        EvalCommand::Record(args) => session::record(args, &evals, context).await,
        EvalCommand::Replay(args) => session::replay(&args, &evals, context).await,
        EvalCommand::Mutate(args) => mutate::run(&args.evals, &evals, context).await,
        EvalCommand::Import(args) => import::run(&args, &evals, context).await,
    }
}

/// What to do where there is no eval.
pub(crate) const HOW_TO_BEGIN: &str =
    "write one: `rehearsal schema eval` tells its form, the README has an example";

async fn run_evals(args: &RunArgs, evals: &Evals, context: &Context) -> Done {
    let mut red = false;
    let stop = stop_on_signal()?;
    let request = RunRequest {
        mode: args.answers.mode(),
        trust: args.trust,
        resume: args.resume,
        limits: Limits { jobs: args.jobs, budget_usd: args.budget },
    };
    for mut found in evals.find(&args.evals)? {
        found.eval.select(args.case.as_deref(), args.tag.as_deref(), args.repeat);
        if found.eval.cases.is_empty() {
            continue;
        }
        let began = std::time::Instant::now();
        let mut watch = |event: RunEvent<'_>| {
            if let RunEvent::Over(record, progress) = event {
                report::progress(record, progress, began.elapsed(), context.ui);
            }
        };
        let (run, journal, ended) = evals.run(&found, &request, &mut watch, &stop).await?;
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

fn show(run: &EvalRun, (eval, records): (Eval, Vec<Record>), files: &ReportFiles, context: &Context) -> Done {
    let summary = Summary::of(&eval, &records);
    report::summary(&summary, &records, run, files, context)?;
    Ok(if summary.holds() { Exit::Ok } else { Exit::Red })
}
