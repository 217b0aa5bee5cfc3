//! `flow list|check|graph`.

use camino::Utf8PathBuf;
use clap::Subcommand;
use rehearsal_core::AgentName;
use rehearsal_core::config::Overrides;
use rehearsal_core::flow::{self, Flow, SHIPPED};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::{Project, read_text};
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

/// `flow list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FlowList {
    flows: Vec<ListedFlow>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ListedFlow {
    name: String,
    /// Whether new tasks go this way if nothing else is said.
    is_default: bool,
    /// Whether it is the repository's own.
    own: bool,
    /// Whether `run` can take tasks through it; `work` can with all.
    fits_a_loop: bool,
    agents: Vec<String>,
    states: Vec<String>,
    /// Why no task can go this way.
    mistake: Option<String>,
}

impl ListedFlow {
    fn broken(name: String, mistake: &CliError) -> Self {
        let mistake = Some(mistake.in_a_line());
        let (agents, states) = (Vec::new(), Vec::new());
        Self { name, is_default: false, own: true, fits_a_loop: false, agents, states, mistake }
    }
}

/// `flow check --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FlowCheck {
    flows: Vec<FlowView>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FlowView {
    name: String,
    version: String,
    states: Vec<String>,
}

/// `flow graph --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FlowGraph {
    name: String,
    /// The diagram.
    mermaid: String,
}

pub(crate) fn run(command: &FlowCommand, context: &Context) -> Done {
    let project = context.project()?;
    match command {
        FlowCommand::List => list(&project, context),
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

/// The repository's own, then the shipped ones that none of them stands in for.
fn all_names(project: &Project) -> Result<Vec<String>, CliError> {
    let mut names = project.own_flows()?;
    for (name, _) in SHIPPED {
        if !names.iter().any(|own| own == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn list(project: &Project, context: &Context) -> Done {
    let set = project.settings(Overrides::default())?.flow;
    let mut flows = Vec::new();
    for name in all_names(project)? {
        let flow = match project.flow(&name) {
            Ok(flow) => flow,
            Err(mistake) => {
                flows.push(ListedFlow::broken(name, &mistake));
                continue;
            }
        };
        let mut agents: Vec<String> = flow.agents.iter().map(|(agent, _)| agent.to_string()).collect();
        agents.dedup();
        flows.push(ListedFlow {
            is_default: name == set,
            own: project.flow_path(&name).exists(),
            fits_a_loop: flow.fits_a_loop().is_ok(),
            states: flow.states.keys().map(ToString::to_string).collect(),
            agents,
            name,
            mistake: None,
        });
    }
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
    let rows: Vec<Vec<String>> = flows.iter().map(row).collect();
    context.ui.say(table(&["FLOW", "FROM", "WORKED ON BY", "AGENTS", "STATES"], &rows));
    context.ui.document(FlowList { flows });
    Ok(Exit::Ok)
}

fn check(names: &[String], project: &Project, context: &Context) -> Done {
    let mut names = names.to_vec();
    if names.is_empty() {
        names = all_names(project)?;
    }
    let settings = project.settings(Overrides::default())?;
    let known: Vec<AgentName> = settings.agent_names().collect();
    let (mut flows, mut mistakes) = (Vec::new(), Vec::new());
    for name in &names {
        let checked = find(name, project, context).and_then(|flow| match flow.unknown_agent(&known.iter()) {
            Some(error) => Err(CliError::in_file(error, &place_of(name, project))),
            None => Ok(flow),
        });
        let flow = match checked {
            Ok(flow) => flow,
            Err(mistake) => {
                mistakes.push(mistake);
                continue;
            }
        };
        context.ui.say(format!("{name}: ok, {} states, version {}", flow.states.len(), flow.version));
        flows.push(FlowView {
            name: flow.name.to_string(),
            version: flow.version,
            states: flow.states.keys().map(ToString::to_string).collect(),
        });
    }
    if !mistakes.is_empty() {
        return Err(CliError::together(format!("{} flows have mistakes", mistakes.len()), mistakes));
    }
    context.ui.document(FlowCheck { flows });
    Ok(Exit::Ok)
}

/// What looks like a file is one.
fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml")
}

fn place_of(name: &str, project: &Project) -> String {
    if is_file(name) { name.to_owned() } else { project.place_of_flow(name) }
}

fn find(name: &str, project: &Project, context: &Context) -> Result<Flow, CliError> {
    if !is_file(name) {
        return project.flow(name);
    }
    let path: Utf8PathBuf = context.directory.join(name);
    let text = read_text(&path)?.ok_or_else(|| CliError::usage(format!("there is no file `{name}`")))?;
    flow::parse(&text).map_err(|error| CliError::in_file(error, name))
}
