//! `work`: claims tasks of any flow and takes each from a worktree to its next state.

mod die_at;
mod foot;
mod lines;
mod summary;
mod view;

use std::sync::Arc;

use clap::Args;
use rehearsal_app::project::Project;
use rehearsal_app::work::{Control, WorkDocument, WorkRequest, Worked, WorkerError};
use rehearsal_core::{AgentName, SessionName};
use rehearsal_engine::{Moments, StopSwitch, Undisturbed, WorkEvent, WorkReporter};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interruption::{self, Aside, Manners};
use crate::ui::{Document, emit};
use crate::words;
use die_at::DieAt;

pub(crate) use summary::{exit_of, shown as shown_pull_request};
use view::Live;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(after_help = "Examples:
  rehearsal task add 'Add a greeting' --flow pull-request
  rehearsal work --until-idle                  # work on all that can be worked on, then end
  rehearsal work --workers 4                   # four tasks at once, until it is stopped
  rehearsal work --agent gatekeeper --once     # one review
  rehearsal work --until-idle --max-cost 20    # spend at most twenty dollars
  rehearsal work --json --follow               # every event as a line

Each task is worked on in a worktree of its own, outside of the repository; `rehearsal doctor` says where. \
What a flow does not push stays in it. Several `work` processes in one repository are fine: a task is claimed by one at a time.

Ctrl-C or SIGTERM once: nothing new is begun, and what is under way is finished. Twice: agents are stopped now, and \
their tasks given back without blame. An agent whose `work` was killed goes on for as long as its claim holds (`work.lease`), \
and the next `work` in this repository goes on with it.")]
pub(crate) struct WorkArgs {
    /// So many tasks at once in this process [default: 2]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    workers: Option<u32>,
    /// Only tasks that this agent works on next; may be given again
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<AgentName>,
    /// Only tasks of this session
    #[arg(long, short)]
    session: Option<SessionName>,
    /// End when there is nothing more to do, or only what waits for a person
    #[arg(long)]
    until_idle: bool,
    /// End after one task
    #[arg(long, conflicts_with = "until_idle")]
    once: bool,
    /// What the runs of this process may cost together, in dollars; each run gets what is left
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<f64>,
    /// Let the agents do everything without being asked
    #[arg(long)]
    trust: bool,
    /// With --json: every event as a line, the summary last
    #[arg(long, requires = "json")]
    follow: bool,
}

/// A sum that is not negative.
pub(crate) fn dollars(text: &str) -> Result<f64, String> {
    let usd: f64 = text.parse().map_err(|_| "this is no number".to_owned())?;
    if usd.is_finite() && usd >= 0.0 {
        Ok(usd)
    } else {
        Err("it must be a number, and not negative".to_owned())
    }
}

const MANNERS: Manners = Manners {
    first: "nothing new is begun, and what is under way is finished; once more stops it now",
    kill_drains: true,
};

pub(crate) async fn run(args: WorkArgs, context: &Context) -> Done {
    let project = context.project()?;
    let watch = watch(args.follow, context);
    let request = WorkRequest {
        workers: args.workers,
        agents: args.agents,
        session: args.session,
        until_idle: args.until_idle,
        once: args.once,
        max_cost: args.max_cost,
        trust: args.trust,
    };
    let (document, exit) = shown(request, watch, &project, context).await?;
    context.ui.document(document);
    Ok(exit)
}

/// The worker alone, for whoever shows what it came to in another way; and the exit code for whoever stopped it.
pub(crate) async fn work(
    request: WorkRequest,
    watch: Watch,
    project: &Project,
    context: &Context,
) -> Result<(Worked, Exit), CliError> {
    let stop = StopSwitch::default();
    let interruption = interruption::listen(stop.clone(), MANNERS, watch.aside(context))?;
    let control = Control { reporter: watch.reporter(), stop: stop.clone(), moments: moments(context)? };
    let worked = rehearsal_app::work::work(request, project, control).await;
    let worked = worked.map_err(|error| match error {
        WorkerError::Project(error) if stop.is_thrown() => CliError::from(error).exiting(interruption.exit()),
        error => error.into(),
    })?;
    Ok((worked, interruption.exit()))
}

/// Nobody listens, unless a test wants the program to die at one of them.
fn moments(context: &Context) -> Result<Arc<dyn Moments>, CliError> {
    match context.variable(die_at::VARIABLE) {
        Some(place) => Ok(Arc::new(DieAt::parse(place)?)),
        None => Ok(Arc::new(Undisturbed)),
    }
}

/// A line of `--follow --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EventDocument {
    #[serde(flatten)]
    event: WorkEvent,
    /// A warning as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// How a worker is watched.
pub(crate) enum Watch {
    /// Every event is a document.
    Follow,
    /// For people.
    Live(Live),
}

pub(crate) fn watch(follow_events: bool, context: &Context) -> Watch {
    if follow_events { Watch::Follow } else { Watch::Live(Live::new(context)) }
}

impl Watch {
    /// Receives what happens.
    pub(crate) fn reporter(&self) -> WorkReporter {
        match self {
            Self::Follow => Arc::new(follow),
            Self::Live(live) => live.reporter(),
        }
    }

    /// Prints what is no event.
    pub(crate) fn aside(&self, context: &Context) -> Aside {
        let ui = context.ui;
        match self {
            Self::Follow => Box::new(move |text| ui.aside(text)),
            Self::Live(live) => Box::new(live.aside()),
        }
    }
}

/// Prints an event as a document.
fn follow(event: WorkEvent) {
    let message = match &event {
        WorkEvent::Warning { notice } => Some(words::notice(notice)),
        _ => None,
    };
    emit(&Document::new(EventDocument { event, message }));
}

/// Works, and shows what came of it.
async fn shown(
    request: WorkRequest,
    watch: Watch,
    project: &Project,
    context: &Context,
) -> Result<(WorkDocument, Exit), CliError> {
    let (worked, interrupted) = work(request, watch, project, context).await?;
    let document = worked.document().await?;
    summary::show(&document, context);
    let exit = exit_of(&document, interrupted);
    Ok((document, exit))
}

/// Works on the tasks of a session until nothing more can be done, and shows what came of it.
pub(crate) async fn until_idle(
    session: &SessionName,
    project: &Project,
    context: &Context,
) -> Result<(WorkDocument, Exit), CliError> {
    let request = WorkRequest { session: Some(session.clone()), until_idle: true, ..WorkRequest::default() };
    shown(request, watch(false, context), project, context).await
}
