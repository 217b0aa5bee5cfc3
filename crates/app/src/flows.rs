//! Flows: listing, checking, drawing.

use rehearsal_core::AgentName;
use rehearsal_core::flow::{self, Flow, SHIPPED};
use serde::Serialize;

use crate::file::{FileError, read_text};
use crate::project::{Project, ProjectError};

/// `flow list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowList {
    /// The project's own, then the shipped ones that none of them replaces.
    pub flows: Vec<ListedFlow>,
}

/// A flow in a listing.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedFlow {
    /// Its name.
    pub name: String,
    /// Whether new tasks go this way if nothing else is said.
    pub is_default: bool,
    /// Whether it is the repository's own.
    pub own: bool,
    /// Whether `run` can take tasks through it; `work` can with all.
    pub fits_a_loop: bool,
    /// The agents that it names.
    pub agents: Vec<String>,
    /// Its states.
    pub states: Vec<String>,
    /// Why no task can go this way.
    pub mistake: Option<String>,
}

/// `flow check --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowCheck {
    /// The flows without mistakes.
    pub flows: Vec<FlowView>,
    /// What is wrong with the others.
    #[serde(skip)]
    pub mistakes: Vec<ProjectError>,
}

/// A flow that was checked.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowView {
    /// Its name.
    pub name: String,
    /// A hash of what it says.
    pub version: String,
    /// Its states.
    pub states: Vec<String>,
    /// As it was asked for: its name or its file.
    #[serde(skip)]
    pub asked_as: String,
}

/// `flow graph --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowGraph {
    /// The flow.
    pub name: String,
    /// The diagram.
    pub mermaid: String,
}

/// Lists the flows: the project's own and the shipped ones.
pub fn list(project: &Project) -> Result<FlowList, ProjectError> {
    let default = &project.settings()?.flow;
    let listed = |name: String| match project.flow(&name) {
        Ok(flow) => {
            let mut agents: Vec<String> = flow.agents.iter().map(|(agent, _)| agent.to_string()).collect();
            agents.dedup();
            ListedFlow {
                is_default: name == *default,
                own: project.flow_path(&name).exists(),
                fits_a_loop: flow.fits_a_loop().is_ok(),
                states: states_of(&flow),
                agents,
                name,
                mistake: None,
            }
        }
        Err(mistake) => ListedFlow {
            name,
            is_default: false,
            own: true,
            fits_a_loop: false,
            agents: Vec::new(),
            states: Vec::new(),
            mistake: Some(mistake.to_string()),
        },
    };
    Ok(FlowList { flows: all_names(project)?.into_iter().map(listed).collect() })
}

/// Checks flows by name or file; all, if none is named.
pub fn check(project: &Project, mut names: Vec<String>) -> Result<FlowCheck, ProjectError> {
    if names.is_empty() {
        names = all_names(project)?;
    }
    let known: Vec<AgentName> = project.settings()?.agent_names().collect();
    let (mut flows, mut mistakes) = (Vec::new(), Vec::new());
    for asked_as in names {
        let place = if is_file(&asked_as) { asked_as.clone() } else { project.place_of_flow(&asked_as) };
        let checked = find(project, &asked_as).and_then(|flow| match flow.unknown_agent(&known.iter()) {
            Some(error) => Err(FileError::wrong(error, place).into()),
            None => Ok(flow),
        });
        match checked {
            Ok(flow) => flows.push(FlowView {
                name: flow.name.to_string(),
                states: states_of(&flow),
                version: flow.version,
                asked_as,
            }),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    Ok(FlowCheck { flows, mistakes })
}

/// Draws a flow, by name or file, as a Mermaid state diagram.
pub fn graph(project: &Project, name: &str) -> Result<FlowGraph, ProjectError> {
    let flow = find(project, name)?;
    Ok(FlowGraph { name: flow.name.to_string(), mermaid: flow::mermaid(&flow) })
}

fn states_of(flow: &Flow) -> Vec<String> {
    flow.states.keys().map(ToString::to_string).collect()
}

fn all_names(project: &Project) -> Result<Vec<String>, ProjectError> {
    let mut names = project.own_flows()?;
    for (name, _) in SHIPPED {
        if !names.iter().any(|own| own == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// What looks like a file is one.
fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml")
}

fn find(project: &Project, name: &str) -> Result<Flow, ProjectError> {
    if !is_file(name) {
        return project.flow(name);
    }
    let text = read_text(&project.caller.directory.join(name))?;
    let text = text.ok_or_else(|| FileError::Missing(name.into()))?;
    Ok(flow::parse(&text).map_err(|error| FileError::wrong(error, name))?)
}
