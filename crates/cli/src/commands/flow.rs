//! `flow list|check|graph`.

use clap::Subcommand;
use rehearsal_app::flows::{self, ListedFlow};
use rehearsal_app::project::Project;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::table;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  rehearsal flow list
  rehearsal flow check
  rehearsal flow graph pull-request")]
pub(crate) enum FlowCommand {
    /// List the flows: your own and the shipped ones
    #[command(after_help = "Example: rehearsal flow list")]
    List,
    /// Check flows: all of the repository's and the shipped ones, or the named ones
    #[command(
        after_help = "Examples:\n  rehearsal flow check\n  rehearsal flow check .rehearsal/flows/review.yaml"
    )]
    Check {
        /// Names or files
        flows: Vec<String>,
    },
    /// Draw a flow as a Mermaid state diagram
    #[command(after_help = "Example: rehearsal flow graph loop")]
    Graph {
        /// A name or a file
        flow: String,
    },
}

pub(crate) fn run(command: FlowCommand, context: &Context) -> Done {
    let project = context.project()?;
    match command {
        FlowCommand::List => list(&project, context),
        FlowCommand::Check { flows } => check(flows, &project, context),
        FlowCommand::Graph { flow } => {
            let graph = flows::graph(&project, &flow)?;
            context.ui.say(graph.mermaid.trim_end());
            context.ui.document(graph);
            Ok(Exit::Ok)
        }
    }
}

fn list(project: &Project, context: &Context) -> Done {
    let list = flows::list(project)?;
    let row = |flow: &ListedFlow| {
        let mark = if flow.is_default { " (default)" } else { "" };
        let whose = if flow.own { "yours" } else { "shipped" };
        let by = match (&flow.mistake, flow.fits_a_loop) {
            (Some(_), _) => "nobody",
            (None, true) => "run, work",
            (None, false) => "work",
        };
        let states = flow.mistake.clone().unwrap_or_else(|| flow.states.join(", "));
        vec![format!("{}{mark}", flow.name), whose.into(), by.into(), flow.agents.join(", "), states]
    };
    let rows: Vec<Vec<String>> = list.flows.iter().map(row).collect();
    context.ui.say(table(&["FLOW", "FROM", "WORKED ON BY", "AGENTS", "STATES"], &rows));
    context.ui.document(list);
    Ok(Exit::Ok)
}

fn check(names: Vec<String>, project: &Project, context: &Context) -> Done {
    let mut checked = flows::check(project, names)?;
    for flow in &checked.flows {
        let (name, count) = (&flow.asked_as, flow.states.len());
        context.ui.say(format!("{name}: ok, {count} states, version {}", flow.version));
    }
    let mistakes: Vec<CliError> = checked.mistakes.drain(..).map(CliError::from).collect();
    if !mistakes.is_empty() {
        return Err(CliError::together(format!("{} flows have mistakes", mistakes.len()), mistakes));
    }
    context.ui.document(checked);
    Ok(Exit::Ok)
}
