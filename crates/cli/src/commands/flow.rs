//! `flow check|graph`.

use camino::Utf8PathBuf;
use clap::Subcommand;
use rehearsal_core::config::Overrides;
use rehearsal_core::flow::{self, Flow, SHIPPED};
use schemars::JsonSchema;
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::{Project, read_text};

#[derive(Debug, Subcommand)]
pub(crate) enum FlowCommand {
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

/// `flow check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FlowCheck {
    flows: Vec<FlowView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FlowView {
    name: String,
    version: String,
    states: Vec<String>,
}

/// `flow graph --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FlowGraph {
    name: String,
    /// The diagram.
    mermaid: String,
}

pub(crate) fn run(command: &FlowCommand, context: &Context) -> Done {
    let project = context.project()?;
    match command {
        FlowCommand::Check { flows } => check(flows, &project, context),
        FlowCommand::Graph { flow } => {
            let flow = find(flow, &project, context)?;
            let mermaid = flow::mermaid(&flow);
            context.ui.say(mermaid.trim_end());
            context.ui.document(FlowGraph { name: flow.name.to_string(), mermaid });
            Ok(Exit::Ok)
        }
    }
}

fn check(names: &[String], project: &Project, context: &Context) -> Done {
    let mut names = names.to_vec();
    if names.is_empty() {
        names = project.own_flows()?;
        names.extend(SHIPPED.iter().map(|(name, _)| (*name).to_owned()));
        names.dedup();
    }
    let settings = project.settings(Overrides::default())?;
    let mut flows = Vec::new();
    for name in &names {
        let flow = find(name, project, context)?;
        if let Some(error) = flow.unknown_agent(&settings.agents.keys()) {
            return Err(CliError::in_file(error, &place_of(name, project)));
        }
        context.ui.say(format!("{name}: ok, {} states, version {}", flow.states.len(), flow.version));
        flows.push(FlowView {
            name: flow.name.to_string(),
            version: flow.version,
            states: flow.states.keys().map(ToString::to_string).collect(),
        });
    }
    context.ui.document(FlowCheck { flows });
    Ok(Exit::Ok)
}

/// What looks like a file is one.
fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml")
}

fn place_of(name: &str, project: &Project) -> String {
    if is_file(name) { name.to_owned() } else { project.shown(&project.flow_path(name)) }
}

fn find(name: &str, project: &Project, context: &Context) -> Result<Flow, CliError> {
    if !is_file(name) {
        return project.flow(name);
    }
    let path: Utf8PathBuf = context.directory.join(name);
    let text = read_text(&path)?.ok_or_else(|| CliError::usage(format!("there is no file `{name}`")))?;
    flow::parse(&text).map_err(|error| CliError::in_file(error, name))
}
