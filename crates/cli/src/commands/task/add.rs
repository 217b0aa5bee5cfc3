//! `task add`.

use clap::{Args, ValueEnum};
use rehearsal_app::tasks::{self, TaskRequest};
use rehearsal_core::{AgentName, FlowName, Priority, SessionName};

use super::Done;
use crate::context::{Context, text_of};
use crate::exit::Exit;
use crate::ui::harmless;

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
    let project = context.project()?;
    let request = TaskRequest {
        title: args.title,
        body: text_of(args.body)?,
        session: args.session,
        flow: args.flow,
        agent: args.agent,
        touches: args.touches,
        criteria: args.criteria,
        priority: args.priority.into(),
        labels: args.labels,
        depends_on: args.depends_on,
        max_cost: args.max_cost,
    };
    let document = tasks::add(&project, request).await?;
    context.ui.say(format!("{}  {}", document.task.id, harmless(&document.task.title)));
    context.ui.document(document);
    Ok(Exit::Ok)
}
