//! Writes a commented configuration for a repository.

use std::fmt::Write as _;

use rehearsal_agent::cli_of;
use rehearsal_agent::clis::KNOWN;
use rehearsal_core::config::DriverKind;
use rehearsal_crew::any_vendor;
use rehearsal_git::base_branch;
use serde::Serialize;

use crate::project::{Project, ProjectError};
use crate::scenarios::write_starter;
use crate::testing::{self, FoundTests};

/// `init --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitDocument {
    /// The file that was written.
    pub config: String,
    /// The scenarios that were written.
    pub scenarios: Vec<String>,
    /// What was found.
    pub found: Findings,
}

/// What a look at the repository found.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Findings {
    /// The branch that work starts from.
    pub base_branch: Option<String>,
    /// Whose tests there are.
    pub tests: Vec<FoundTests>,
    /// Agent CLIs on the PATH; and the crew, if a vendor's key or address is set.
    pub agents: Vec<DriverKind>,
}

/// Why no configuration was written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum InitError {
    #[error("`{file}` is already there")]
    Exists { file: String },
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for InitError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// What to do with a configuration that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and fail.
    Keep,
    /// Write over it.
    Replace,
}

/// Beside the configuration, for editors.
const SCHEMA_FILE: &str = "config.schema.json";
const SCHEMA: &str = include_str!("../../../schemas/config.json");

/// Looks at the repository, then writes its configuration and a few scenarios.
pub async fn init(project: &Project, existing: Existing) -> Result<InitDocument, InitError> {
    project.caller.may_change()?;
    let path = project.config_path();
    let config = project.shown(&path);
    if path.exists() && existing == Existing::Keep {
        return Err(InitError::Exists { file: config });
    }
    let found = look(project).await;
    fs_err::create_dir_all(project.directory())?;
    fs_err::write(&path, config_text(&found))?;
    fs_err::write(project.directory().join(SCHEMA_FILE), SCHEMA)?;
    Ok(InitDocument { config, scenarios: write_starter(project)?, found })
}

async fn look(project: &Project) -> Findings {
    let is_here = |kind: &DriverKind| match *kind {
        DriverKind::CREW => any_vendor(|name| project.caller.environment.get(name).cloned()),
        kind => cli_of(kind).install.is_some() && which::which(kind.as_str()).is_ok(),
    };
    Findings {
        base_branch: base_branch(&project.root).await.ok(),
        tests: testing::found(&project.root),
        agents: DriverKind::all().filter(is_here).collect(),
    }
}

/// The one runner is named. Of several, detection goes on to decide.
fn tests_line(tests: &[FoundTests]) -> String {
    match tests {
        [FoundTests { command: Some(command), .. }] => format!("command: {}", yaml_string(command)),
        [one] => format!("framework: {}", one.framework),
        _ => "# command: ./run-tests      # agents are told to use it".to_owned(),
    }
}

fn config_text(found: &Findings) -> String {
    let driver = found.agents.first().copied().unwrap_or(DriverKind::CLAUDE);
    let optional = |key: &str, value: &Option<String>, example: &str| match value {
        Some(value) => format!("{key}: {}", yaml_string(value)),
        None => format!("# {key}: {example}"),
    };
    let mut text = String::new();
    let _ = write!(
        text,
        "\
# yaml-language-server: $schema={SCHEMA_FILE}
# Settings of this repository for `rehearsal`. Everything is optional; `rehearsal config show --origin` shows
# what holds and why, and `rehearsal schema config` the JSON Schema of this file.

# The branch that work starts from.
{}

# The agent that `rehearsal run` uses.
agent: implementer

agents:
  implementer:
    driver: {driver}              # {}, crew (our own), or command (any program)
    # model: MODEL                # the agent's own choice otherwise
    # permission: accept_edits    # plan: only look; everything only with `run --trust`
    # timeout: 1h                 # the longest a run may take
    # idle_timeout: 15m           # the longest it may be silent
    # repeated_calls: 25          # identical tool calls in a row that end the run
    # budget: {{ usd: 5, turns: 100 }}
    # pass_env: [MY_API_KEY]      # variables it may see beyond its own keys

loop:
  iterations: 10
  # max_failures: 3               # failed runs in a row that end the loop
  # max_cost: 10                  # dollars
  # max_wait: 6h                  # for rate limits and quotas

testing:
  {}

# The flow of new tasks: loop, pull-request, approve, plan, or one of your own in .rehearsal/flows.
# flow: loop

# How `rehearsal work` works.
# work:
#   workers: 2                    # tasks at once in one process
#   at_once: 8                    # tasks at once in all processes
#   lease: 90s                    # a worker that is silent for so long loses its task

# Each task that `rehearsal work` takes has a worktree of its own.
# worktrees:
#   directory: ../worktrees       # in your data directory otherwise
#   setup: npm ci                 # makes a fresh one ready for work
#   keep_warm: 4                  # finished ones kept for the next tasks

# Where the work goes.
# forge:
#   kind: auto                    # github (through gh), or local: a bare repository on this machine
#   remote: origin
",
        optional("base_branch", &found.base_branch, "main"),
        KNOWN.foreign().collect::<Vec<_>>().join(", "),
        tests_line(&found.tests),
    );
    text
}

fn yaml_string(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || " -_./".contains(c))
        && !text.starts_with(['-', ' ', '.']);
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}
