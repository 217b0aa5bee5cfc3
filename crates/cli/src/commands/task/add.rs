//! `task add`.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use rehearsal_core::config::Overrides;
use rehearsal_core::flow::Flow;
use rehearsal_core::{AgentName, Budget, FlowName, NewTask, Priority, SessionName, Task, TaskId};
use rehearsal_store::{Change, CommitError, Committed, Store};

use super::{Done, TaskDocument};
use crate::commands::session::the_session;
use crate::commands::work::check_agent;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;
use crate::project::read_stdin;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal task add 'Add a greeting' --session hello
  rehearsal task add 'Fix the login' --priority high --criterion 'the test passes' --after k3f
  rehearsal task add 'Speed up the parser' --flow pull-request --touches 'src/parser/**'

A task goes the way that its flow says: `rehearsal flow list` shows all. Tasks of `loop` are worked on by \
`rehearsal run` in this checkout; tasks of any flow by `rehearsal work`, each in a worktree of its own.")]
pub(crate) struct AddArgs {
    /// What is to be done, in one line
    title: String,
    /// Which session; can be left out if there is only one, and for flows that are not for a loop
    #[arg(long, short)]
    session: Option<SessionName>,
    /// The flow that it goes through [default: `flow:` of the configuration, else loop]
    #[arg(long, short, value_name = "NAME")]
    flow: Option<FlowName>,
    /// Who does it, instead of the agent that its flow begins with
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Files that it will change, as a pattern; tasks that touch the same are not worked on at once; may be given again
    #[arg(long, value_name = "GLOB")]
    touches: Vec<String>,
    /// The whole description; `-` reads it from standard input
    #[arg(long, short, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    body: String,
    /// What must hold when it is done; may be given again
    #[arg(long = "criterion", short = 'c', value_name = "TEXT")]
    criteria: Vec<String>,
    /// How urgent it is
    #[arg(long, short, value_enum, default_value_t = PriorityArg::Medium)]
    priority: PriorityArg,
    /// A label; may be given again
    #[arg(long = "label", short, value_name = "LABEL")]
    labels: Vec<String>,
    /// A task that must be done before; may be given again
    #[arg(long = "after", value_name = "TASK")]
    depends_on: Vec<String>,
    /// What all its runs together may cost, in dollars
    #[arg(long, value_name = "USD")]
    max_cost: Option<f64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PriorityArg {
    Urgent,
    High,
    Medium,
    Low,
}

impl From<PriorityArg> for Priority {
    fn from(priority: PriorityArg) -> Self {
        match priority {
            PriorityArg::Urgent => Self::Urgent,
            PriorityArg::High => Self::High,
            PriorityArg::Medium => Self::Medium,
            PriorityArg::Low => Self::Low,
        }
    }
}

pub(super) async fn run(args: AddArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let project = context.project()?;
    let store = project.store().await?;
    let body = if args.body == "-" { read_stdin()? } else { args.body };
    let flow = Arc::new(project.flow_for_tasks(args.flow.as_ref())?);
    if let Some(agent) = &args.agent {
        check_agent(agent, &project.settings(Overrides::default())?)?;
    }
    let new = NewTask {
        session: session_for(&*store, args.session, &flow).await?,
        title: args.title,
        body,
        criteria: args.criteria,
        priority: args.priority.into(),
        labels: args.labels,
        depends_on: whole_ids(&*store, &args.depends_on).await?,
        touches: args.touches,
        author: args.agent,
        budget: Budget { usd: args.max_cost, ..Budget::default() },
    };
    let task = add(context, &*store, new, &flow).await?;
    context.ui.say(format!("{}  {}", task.id, crate::ui::harmless(&task.title)));
    context.ui.document(TaskDocument::new(task));
    Ok(Exit::Ok)
}

/// The session of new tasks. Only a loop needs one: a worker takes tasks with and without.
pub(super) async fn session_for(
    store: &dyn Store,
    named: Option<SessionName>,
    flow: &Flow,
) -> Result<Option<SessionName>, CliError> {
    if named.is_none() && flow.fits_a_loop().is_err() {
        let mut sessions = store.sessions().await?;
        let only = if sessions.len() == 1 { sessions.pop() } else { None };
        return Ok(only.map(|only| only.session.name));
    }
    the_session(store, named).await.map(Some)
}

/// Short ids are drawn at random, so that one may be taken already.
const DRAWS: usize = 8;

async fn add(context: &Context, store: &dyn Store, new: NewTask, flow: &Arc<Flow>) -> Result<Task, CliError> {
    let mut draws = 0;
    loop {
        draws += 1;
        let id = TaskId::from_random(rehearsal_engine::random_bits());
        let change = Change::AddTask { task: Box::new(new.clone()), id, flow: Arc::clone(flow) };
        match store.commit(rehearsal_core::Actor::User, context.now(), vec![change]).await {
            Err(CommitError::IdTaken { .. }) if draws < DRAWS => {}
            Err(error) => return Err(error.into()),
            Ok(committed) => {
                let task = committed.into_iter().find_map(Committed::task);
                return task.ok_or_else(|| CliError::new(Exit::Internal, "the store gave no task back"));
            }
        }
    }
}

/// Ids from unique prefixes.
pub(super) async fn whole_ids(store: &dyn Store, prefixes: &[String]) -> Result<Vec<TaskId>, CliError> {
    let mut ids = Vec::new();
    for prefix in prefixes {
        ids.push(store.find_task(prefix).await?.id);
    }
    Ok(ids)
}
