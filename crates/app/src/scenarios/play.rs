//! Scenarios, ready to be played.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use rehearsal_core::Place;
use rehearsal_core::flow::Flow;
use rehearsal_scenario::{Flows, Prepared, Scenario, StoreKind, Suite, parse};
use rehearsal_stage::Script;

use super::directory;
use crate::caller::Caller;
use crate::file::{FileError, read_text, yaml_files};
use crate::project::{Project, ProjectError};

/// Why scenarios cannot be played.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum RehearseError {
    #[error("there are no scenarios in `{0}`")]
    NoScenarios(String),
    #[error("no scenario has `{filter}` in its name")]
    NoneFits { filter: String, known: Vec<String> },
    #[error("scenario `{name}` is in `{file}` and in `{other}`")]
    Twice { name: String, file: String, other: String },
    #[error("{place}: {error}")]
    Flow { place: String, error: Box<ProjectError> },
    #[error("there is no file `{path}`")]
    NoScript { file: String, path: Utf8PathBuf },
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for RehearseError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// How scenarios are played here, unless asked otherwise; `program` is our own binary.
pub fn suite(caller: &Caller, program: Utf8PathBuf) -> Result<Suite, ProjectError> {
    let project = Project::open(caller).ok();
    Ok(Suite {
        program,
        variables: caller.environment.clone(),
        layers: project.as_ref().map_or_else(|| Ok(Vec::new()), Project::layers)?,
        project: project.map(|project| project.root),
        store: StoreKind::Sqlite,
        jobs: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
        keep: None,
        seed: None,
        workers: None,
    })
}

/// The scenarios in these files (without any, all of the project) in the order of the files: those whose names contain the
/// filter, or the one whose name it is.
pub fn find(
    caller: &Caller,
    files: &[Utf8PathBuf],
    filter: Option<&str>,
) -> Result<Vec<Prepared>, RehearseError> {
    let paths = match files {
        [] => own_files(&Project::open(caller)?)?,
        files => files.iter().map(|file| caller.directory.join(file)).collect(),
    };
    let project = Project::open(caller).ok();
    let mut found: Vec<Written> = Vec::new();
    for path in paths {
        let file = project.as_ref().map_or_else(|| path.to_string(), |project| project.shown(&path));
        let text = read_text(&path)?.ok_or_else(|| FileError::Missing(file.clone().into()))?;
        for scenario in parse(&text).map_err(|error| FileError::wrong(error, file.clone()))? {
            let written = Written { file: file.clone(), path: path.clone(), scenario };
            if let Some(other) = found.iter().find(|other| other.name() == written.name()) {
                let (name, other) = (written.name().to_owned(), other.file.clone());
                return Err(RehearseError::Twice { name, file, other });
            }
            found.push(written);
        }
    }
    let filter = filter.unwrap_or_default();
    let exact = found.iter().any(|written| written.name() == filter);
    let known = found.iter().map(|written| written.name().to_owned()).collect();
    found.retain(|written| if exact { written.name() == filter } else { written.name().contains(filter) });
    if found.is_empty() {
        return Err(RehearseError::NoneFits { filter: filter.to_owned(), known });
    }
    found.into_iter().map(|written| written.prepared(project.as_ref())).collect()
}

fn own_files(project: &Project) -> Result<Vec<Utf8PathBuf>, RehearseError> {
    let directory = directory(project);
    let files = yaml_files(&directory)?;
    if files.is_empty() {
        return Err(RehearseError::NoScenarios(project.shown(&directory)));
    }
    Ok(files)
}

/// A scenario and where it is written.
struct Written {
    /// As messages show it.
    file: String,
    path: Utf8PathBuf,
    scenario: Scenario,
}

impl Written {
    fn name(&self) -> &str {
        &self.scenario.name.value
    }

    fn prepared(self, project: Option<&Project>) -> Result<Prepared, RehearseError> {
        let (flows, script) = (self.flows(project)?, self.script()?);
        Ok(Prepared { file: self.file, scenario: self.scenario, flows, script })
    }

    /// What its model answers.
    fn script(&self) -> Result<Option<Arc<Script>>, RehearseError> {
        let Some(stage) = &self.scenario.stage else { return Ok(None) };
        let (text, file) = if stage.value.contains('\n') {
            (stage.value.clone(), format!("the stage of scenario `{}`", self.name()))
        } else {
            let path = self.path.parent().unwrap_or(&self.path).join(&stage.value);
            let Some(text) = read_text(&path)? else {
                return Err(RehearseError::NoScript { file: self.file.clone(), path });
            };
            (text, path.to_string())
        };
        Ok(Some(Arc::new(Script::parse(&text).map_err(|error| FileError::wrong(error, file))?)))
    }

    /// Its flow (its own, the project's, or a shipped one), and those that its tasks name.
    fn flows(&self, project: Option<&Project>) -> Result<Flows, RehearseError> {
        let named = |name: &str, place: Option<Place>| {
            let found = match project {
                Some(project) => project.flow(name),
                None => Flow::shipped(name)
                    .ok_or_else(|| ProjectError::UnknownFlow { name: name.to_owned(), near: None }),
            };
            let place = place.map_or_else(|| self.file.clone(), |place| format!("{}:{place}", self.file));
            found.map(Arc::new).map_err(|error| RehearseError::Flow { place, error: error.into() })
        };
        let usual = match self.scenario.inline_flow() {
            Some(flow) => Arc::new(flow.map_err(|error| FileError::wrong(error, self.file.clone()))?),
            None => named(&self.scenario.flow.value, self.scenario.flow.place)?,
        };
        let mut others = BTreeMap::new();
        for task in &self.scenario.tasks {
            if let Some(name) = &task.value.flow {
                others.insert(name.clone(), named(name, task.place)?);
            }
        }
        Ok(Flows { usual, others })
    }
}
