//! `work`: claims tasks of any flow and takes each from a worktree to its next state.

mod die_at;
mod roles;
mod summary;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rehearsal_app::outlet::Destination;
use rehearsal_app::places::open_worktrees;
use rehearsal_app::project::Project;
use rehearsal_core::config::{Overrides, Settings};
use rehearsal_core::{AgentName, SessionName};
use rehearsal_engine::{
    Moments, Policy, QueuePolicy, StopSwitch, Undisturbed, WorkEvent, WorkOptions, WorkReporter, WorkSummary,
    Worker, Workspace, open_patiently,
};
use rehearsal_store::Store;
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interruption::{self, Manners};
use crate::ui::{Document, emit};
use crate::words;
use die_at::DieAt;
use roles::ConfiguredRoles;

pub(crate) use summary::{WorkDocument, document, exit_of, shown as shown_pull_request};

#[derive(Debug, Default, Args)]
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

/// How often a worker looks for what other processes changed: promptly for a person, and a small read.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

const MANNERS: Manners = Manners {
    first: "nothing new is begun, and what is under way is finished; once more stops it now",
    kill_drains: true,
};

pub(crate) async fn run(args: WorkArgs, context: &Context) -> Done {
    context.may_change()?;
    let project = context.project()?;
    let worked = work(&args, &project, context, reporter(&args, context)).await?;
    let document = summary::document(&worked, args.session.as_ref(), &project, context).await?;
    summary::show(&document, context);
    let exit = summary::exit_of(&document, worked.interrupted);
    context.ui.document(document);
    Ok(exit)
}

/// What a worker came to, and where the work went.
pub(crate) struct Worked {
    pub(crate) summary: WorkSummary,
    pub(crate) destination: Destination,
    pub(crate) settings: Settings,
    pub(crate) store: Arc<dyn Store>,
    /// It worked for these only; none: for all.
    pub(crate) agents: Vec<AgentName>,
    /// The exit code for whoever stopped it.
    pub(crate) interrupted: Exit,
}

/// The worker alone, for whoever shows what it came to in another way.
pub(crate) async fn work(
    args: &WorkArgs,
    project: &Project,
    context: &Context,
    reporter: WorkReporter,
) -> Result<Worked, CliError> {
    let overrides = Overrides::default().set("work.workers", args.workers);
    let settings = project.settings_with(overrides)?;
    let stop = StopSwitch::default();
    let interruption = interruption::listen(stop.clone(), MANNERS, context.ui)?;
    let store = open_store(project, &stop, &reporter)
        .await
        .map_err(|error| if stop.is_thrown() { error.exiting(interruption.exit()) } else { error })?;
    check_wishes(args, &settings, project, &*store).await?;
    let roles = ConfiguredRoles::new(settings.clone(), args.trust, project, context)?;
    let destination = Destination::choose(&settings, project).await?;
    let (outlet, note) = destination.open().await?;
    if let Some(notice) = note {
        reporter(WorkEvent::Warning { notice });
    }
    let worker = Worker {
        store: Arc::clone(&store),
        clock: Arc::clone(&context.clock),
        roles: Arc::new(roles),
        workspace: Workspace::Worktrees {
            worktrees: Arc::new(open_worktrees(&settings, project).await?),
            outlet,
        },
        state_dir: project.state_dir(),
        testing: settings.testing.clone(),
        quality: settings.quality.rules(),
        variables: crate::context::variables(),
        options: options(args, &settings),
        reporter,
        stop,
        moments: moments()?,
    };
    // Should a supervisor be killed, what it supervised comes to us and not to the init process.
    rehearsal_process::become_subreaper()?;
    let summary = Box::pin(worker.run()).await?;
    let agents = args.agents.clone();
    Ok(Worked { summary, destination, settings, store, agents, interrupted: interruption.exit() })
}

/// A server that is away is waited for: a worker that is started with the machine may be earlier than its database.
async fn open_store(
    project: &Project,
    stop: &StopSwitch,
    reporter: &WorkReporter,
) -> Result<Arc<dyn Store>, CliError> {
    let location = project.prepare_store()?;
    Ok(open_patiently(&location, stop, reporter).await?)
}

/// Nobody listens, unless a test wants the program to die at one of them.
fn moments() -> Result<Arc<dyn Moments>, CliError> {
    match std::env::var(die_at::VARIABLE) {
        Ok(place) if !place.is_empty() => Ok(Arc::new(DieAt::parse(&place)?)),
        _ => Ok(Arc::new(Undisturbed)),
    }
}

fn options(args: &WorkArgs, settings: &Settings) -> WorkOptions {
    let agents: BTreeSet<AgentName> = args.agents.iter().cloned().collect();
    WorkOptions {
        policy: Policy::Queue(QueuePolicy {
            at_once: settings.work.workers,
            agents: (!agents.is_empty()).then_some(agents),
            session: args.session.clone(),
            until_idle: args.until_idle,
            once: args.once,
        }),
        max_cost: args.max_cost,
        lease: settings.work.lease.0,
        limits: settings.limits(),
        look_every: Some(LOOK_EVERY),
        seed: None,
    }
}

/// A name that nobody has would be waited for without end.
async fn check_wishes(
    args: &WorkArgs,
    settings: &Settings,
    project: &Project,
    store: &dyn Store,
) -> Result<(), CliError> {
    if settings.work.workers == 0 {
        let origin = settings.origins.get("work.workers");
        return Err(CliError::usage(format!("`work.workers` is 0 ({origin}): nothing would be done"))
            .hint("`rehearsal pause` lets nothing more be claimed, and `rehearsal resume` lets it go on"));
    }
    for name in &args.agents {
        project.check_agent(name)?;
    }
    if let Some(session) = &args.session {
        store.session(session).await?;
    }
    Ok(())
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

/// Prints every event as a document.
pub(super) fn follow() -> WorkReporter {
    Arc::new(|event| {
        let message = match &event {
            WorkEvent::Warning { notice } => Some(words::notice(notice)),
            _ => None,
        };
        emit(&Document::new(EventDocument { event, message }));
    })
}

fn reporter(args: &WorkArgs, context: &Context) -> WorkReporter {
    if args.follow {
        return follow();
    }
    view::live(context)
}

/// Works on the tasks of a session until nothing more can be done, and shows what came of it.
pub(crate) async fn until_idle(
    session: &SessionName,
    project: &Project,
    context: &Context,
) -> Result<(WorkDocument, Exit), CliError> {
    let args = WorkArgs { session: Some(session.clone()), ..WorkArgs::until_idle() };
    let worked = work(&args, project, context, view::live(context)).await?;
    let document = summary::document(&worked, Some(session), project, context).await?;
    summary::show(&document, context);
    let exit = summary::exit_of(&document, worked.interrupted);
    Ok((document, exit))
}

impl WorkArgs {
    /// To work on all that can be worked on.
    pub(crate) fn until_idle() -> Self {
        Self { until_idle: true, ..Self::default() }
    }
}

/// The same lines for whoever runs a worker as a part of something else.
pub(crate) fn live(context: &Context) -> WorkReporter {
    view::live(context)
}
