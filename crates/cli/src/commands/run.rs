//! `run SESSION`.

mod summary;
pub(crate) mod view;

use std::sync::Arc;

use clap::Args;
use rehearsal_agent::Bounds;
use rehearsal_app::command_line::quote;
use rehearsal_app::project::Project;
use rehearsal_app::session_loop::{LoopRequest, Preview, prepare};
use rehearsal_app::work::Control;
use rehearsal_core::config::{HumanDuration, Overrides, PermissionMode};
use rehearsal_core::flow::End;
use rehearsal_core::{AgentName, Outcome, OutcomeName, SessionName, Standing, Task};
use rehearsal_engine::{StopSwitch, Undisturbed, WorkEnd, WorkSummary};
use serde::Serialize;

use super::Done;
use super::work::{Watch, watch};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interruption::{self, Manners};
use crate::ui::harmless;
use crate::words;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(after_help = "Examples:
  rehearsal run hello
  rehearsal run hello --agent reviewer --iterations 3 --max-cost 2.50
  rehearsal run hello --dry-run          # print the prompt and the command, run nothing

Ctrl-C once finishes the iteration and ends the loop; twice stops the agent now. Nothing is lost either way.")]
pub(crate) struct RunArgs {
    /// Which session; can be left out if there is only one
    session: Option<SessionName>,
    /// At most so many iterations [default: 10]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// The longest a run may take, like 45m [default: 1h]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<HumanDuration>,
    /// The longest an agent may be silent [default: 15m]
    #[arg(long, value_name = "DURATION")]
    idle_timeout: Option<HumanDuration>,
    /// Let the agent do everything without being asked
    #[arg(long)]
    trust: bool,
    /// The model
    #[arg(long, value_name = "MODEL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// Which agent of the configuration [default: implementer]
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Stop when the runs of this loop have cost so much
    #[arg(long, value_name = "USD", value_parser = super::work::dollars)]
    max_cost: Option<f64>,
    /// Stop after so many failed runs in a row [default: 3]
    #[arg(long, value_name = "N")]
    max_failures: Option<u32>,
    /// The longest wait for a rate limit or a quota [default: 6h]
    #[arg(long, value_name = "DURATION")]
    max_wait: Option<HumanDuration>,
    /// Take the agent's word that all is complete
    #[arg(long)]
    accept_complete: bool,
    /// A message to put into every prompt
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Print the prompt and the command, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// With --json: every event as a line, the summary last
    #[arg(long, requires = "json")]
    follow: bool,
}

/// `run --dry-run --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DryRun {
    /// The task that would be worked on.
    task: String,
    /// The program and its arguments.
    command: Vec<String>,
    /// What would keep the agent within bounds, and what it would be granted.
    bounds: Bounds,
    /// What this version of the agent cannot do.
    warnings: Vec<String>,
    /// What it would be told.
    prompt: String,
}

pub(crate) async fn run(args: RunArgs, context: &Context) -> Done {
    let project = context.project()?;
    let request = LoopRequest {
        overrides: overrides(&args),
        session: args.session,
        trust: args.trust,
        message: args.message,
        dry_run: args.dry_run,
    };
    if args.dry_run {
        return dry_run(request, &project, context).await;
    }
    let (summary, interrupted) = run_loop(request, args.follow, &project, context).await?;
    summary::show(&summary, context);
    let exit = exit_of(&summary, interrupted);
    context.ui.document(summary);
    Ok(exit)
}

/// The loop alone, for whoever shows its summary in another way; and the exit code for whoever stopped it.
pub(crate) async fn run_loop(
    request: LoopRequest,
    follow: bool,
    project: &Project,
    context: &Context,
) -> Result<(WorkSummary, Exit), CliError> {
    let watch = watch(follow, context);
    let control = control(&watch);
    let stop = control.stop.clone();
    let prepared = prepare(request, project, control).await?;
    let interruption = interruption::listen(stop, MANNERS, watch.aside(context))?;
    Ok((prepared.run().await?, interruption.exit()))
}

fn control(watch: &Watch) -> Control {
    Control { reporter: watch.reporter(), stop: StopSwitch::default(), moments: Arc::new(Undisturbed) }
}

const MANNERS: Manners = Manners {
    first: "the loop ends after this iteration; Ctrl-C again stops the agent now",
    kill_drains: false,
};

fn overrides(args: &RunArgs) -> Overrides {
    Overrides::default()
        .set("agent", args.agent.as_ref())
        .set("agents.*.model", args.model.as_ref())
        .set("agents.*.permission", args.trust.then_some(PermissionMode::Trust))
        .set("agents.*.timeout", args.timeout)
        .set("agents.*.idle_timeout", args.idle_timeout)
        .set("loop.iterations", args.iterations)
        .set("loop.max_failures", args.max_failures)
        .set("loop.max_cost", args.max_cost)
        .set("loop.max_wait", args.max_wait)
        .set("loop.accept_complete", args.accept_complete.then_some(true))
}

async fn dry_run(request: LoopRequest, project: &Project, context: &Context) -> Done {
    let prepared = prepare(request, project, control(&watch(false, context))).await?;
    let Preview { task, command, bounds, warnings, prompt } = prepared.preview().await?;
    let quoted: Vec<String> = command.iter().map(|word| quote(word)).collect();
    let warnings: Vec<String> = warnings.iter().map(words::notice).collect();
    let ui = context.ui;
    ui.say(format!("# command (the prompt goes to its standard input)\n{}", harmless(&quoted.join(" "))));
    ui.say(format!("# {}", harmless(&words::confined(&bounds.by))));
    for line in words::granted(&bounds) {
        ui.say(format!("#   {}", harmless(&line)));
    }
    for warning in &warnings {
        ui.say(format!("# note: {}", harmless(warning)));
    }
    ui.say(format!("\n# prompt for task {task}\n{}", harmless(&prompt)));
    ui.document(DryRun { task, command, bounds, warnings, prompt });
    Ok(Exit::Ok)
}

fn has_failed(task: &Task) -> bool {
    matches!(task.standing, Standing::Ended { end: End::Failure })
}

/// What a run that failed means for a script.
fn exit_of_failure(outcome: &Outcome) -> Exit {
    match outcome.name() {
        OutcomeName::TimedOut => Exit::Timeout,
        OutcomeName::BudgetReached => Exit::Budget,
        OutcomeName::Blocked => Exit::NeedsHuman,
        OutcomeName::SandboxUnavailable => Exit::Sandbox,
        name if name.passes_with_time() => Exit::TryLater,
        _ => Exit::Agent,
    }
}

/// What failures have in common; an agent's, if that is nothing.
pub(super) fn exit_of_failures<'a>(outcomes: impl Iterator<Item = Option<&'a Outcome>>) -> Exit {
    let mut exits = outcomes.map(|outcome| outcome.map_or(Exit::Agent, exit_of_failure));
    let first = exits.next().unwrap_or(Exit::Agent);
    if exits.all(|exit| exit == first) { first } else { Exit::Agent }
}

/// What the end of a loop means for a script.
pub(crate) fn exit_of(summary: &WorkSummary, interrupted: Exit) -> Exit {
    match &summary.end {
        WorkEnd::NothingToDo
        | WorkEnd::AllDone
        | WorkEnd::Complete { .. }
        | WorkEnd::Idle
        | WorkEnd::Once => Exit::Ok,
        WorkEnd::MaxIterations => summary.all_failed.as_ref().map_or(Exit::Ok, exit_of_failure),
        WorkEnd::NeedsHuman { .. } if summary.is_spent => Exit::Budget,
        WorkEnd::Blocked { .. } | WorkEnd::NeedsHuman { .. } => Exit::NeedsHuman,
        WorkEnd::BudgetReached { .. } => Exit::Budget,
        WorkEnd::TooManyFailures { last } => exit_of_failure(last),
        WorkEnd::LineStopped { cause } if cause.name() == OutcomeName::SandboxUnavailable => Exit::Sandbox,
        WorkEnd::SomeFailed { .. } => exit_of_failures(
            summary.tasks.iter().filter(|task| has_failed(task)).map(|task| task.last_outcome.as_ref()),
        ),
        WorkEnd::LineStopped { .. } => Exit::Agent,
        WorkEnd::WaitTooLong { .. } => Exit::TryLater,
        WorkEnd::Interrupted => interrupted,
    }
}
