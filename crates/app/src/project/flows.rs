//! The flows of a project: its own before the shipped ones.

use camino::Utf8PathBuf;
use rehearsal_core::config::Settings;
use rehearsal_core::flow::{self, Flow, SHIPPED};
use rehearsal_core::{AgentName, FlowName, nearest};

use super::{Project, ProjectError};
use crate::file::{FileError, read_text, yaml_files};

impl Project {
    /// Where the project's own flow of this name would be.
    pub fn flow_path(&self, name: &str) -> Utf8PathBuf {
        self.directory().join("flows").join(format!("{name}.yaml"))
    }

    /// A flow by its name: the project's own before the shipped one.
    pub fn flow(&self, name: &str) -> Result<Flow, ProjectError> {
        let path = self.flow_path(name);
        let Some(text) = read_text(&path)? else {
            return Flow::shipped(name).ok_or_else(|| self.no_flow(name));
        };
        let file = self.shown(&path);
        let flow = flow::parse(&text).map_err(|error| FileError::wrong(error, file.clone()))?;
        if flow.name.as_str() == name {
            return Ok(flow);
        }
        let (expected, name) = (name.to_owned(), flow.name.to_string());
        Err(ProjectError::MisnamedFlow { file, expected, name })
    }

    fn no_flow(&self, name: &str) -> ProjectError {
        // Without the project's own ones, only the suggestion is worse.
        let own = self.own_flows().unwrap_or_default();
        let shipped = SHIPPED.iter().map(|(name, _)| *name);
        let near = nearest(name, own.iter().map(String::as_str).chain(shipped)).map(ToOwned::to_owned);
        ProjectError::UnknownFlow { name: name.to_owned(), near }
    }

    /// The flow of new tasks: the named one, or the one that the settings name. Its agents must exist.
    pub fn flow_for_tasks(&self, named: Option<&FlowName>) -> Result<Flow, ProjectError> {
        let settings = self.settings()?;
        let name = match named {
            Some(name) => name.clone(),
            None => FlowName::new(settings.flow.clone()).map_err(|error| ProjectError::FlowSetting {
                origin: settings.origins.get("flow").clone(),
                error,
            })?,
        };
        let flow = self.flow(name.as_str())?;
        self.check_agents(&flow, settings)?;
        Ok(flow)
    }

    /// Every agent that a flow names must be one that the settings know.
    pub fn check_agents(&self, flow: &Flow, settings: &Settings) -> Result<(), ProjectError> {
        let known: Vec<AgentName> = settings.agent_names().collect();
        match flow.unknown_agent(&known.iter()) {
            Some(error) => Err(FileError::wrong(error, self.place_of_flow(flow.name.as_str())).into()),
            None => Ok(()),
        }
    }

    /// Where a flow comes from, as messages show it.
    pub fn place_of_flow(&self, name: &str) -> String {
        let path = self.flow_path(name);
        if path.exists() { self.shown(&path) } else { format!("the shipped flow `{name}`") }
    }

    /// The flow that a loop takes tasks through.
    pub fn loop_flow(&self) -> Result<Flow, ProjectError> {
        let flow = self.flow("loop")?;
        flow.fits_a_loop().map_err(|why| ProjectError::LoopFlow { why })?;
        Ok(flow)
    }

    /// The names of the project's own flows.
    pub fn own_flows(&self) -> Result<Vec<String>, ProjectError> {
        let files = yaml_files(&self.directory().join("flows"))?;
        let flows = files.iter().filter(|path| path.extension() == Some("yaml"));
        let mut names: Vec<String> =
            flows.filter_map(|path| path.file_stem()).map(ToOwned::to_owned).collect();
        names.sort();
        Ok(names)
    }
}
