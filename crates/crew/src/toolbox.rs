//! The tools of one role in one worktree for one run.

mod bash;
mod blocking;
mod head_tail;
mod read_file;
mod tool;

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use rehearsal_agent::environment::{RunIdentity, Variables, tool_environment_in_run};
use rehearsal_agent::redact::Redactor;
use rehearsal_core::{RunId, TaskId, nearest};
use rehearsal_llm::chat::{ToolCall, ToolDefinition};
use rehearsal_sandbox::{Demand, Network, ProjectMode};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::limits::{MAX_ARGUMENTS, RESULT_HEAD, RESULT_TAIL};
use crate::shell::{Leave, Shell};
use crate::tools::{CallEnd, Called, Tools};
use crate::worktree::{AccessError, Worktree};
use crate::{Permission, Permissions};
use bash::Bash;
pub(crate) use head_tail::HeadTail;
use head_tail::capped;
use read_file::ReadFile;
use tool::{Tool, ToolError, Typed};

/// The names of all tools of ours, in the order in which a model is told of them.
pub const TOOL_NAMES: [&str; 2] = ["read_file", "bash"];

/// For whom and where tools are.
#[derive(Debug, Clone)]
pub struct Workplace {
    /// The name of the role.
    pub role: String,
    /// The tools that it has, by name.
    pub tools: Vec<String>,
    /// What it may do.
    pub permissions: Permissions,
    /// Where it works. No tool leaves it.
    pub worktree: Utf8PathBuf,
    /// The task that it works on.
    pub task: TaskId,
    /// The run.
    pub run: RunId,
    /// The run's directory, for its result and its report.
    pub run_dir: Utf8PathBuf,
    /// Our environment. Commands see what of it is harmless; no secret in it is ever in an answer.
    pub variables: Variables,
    /// What to do when commands cannot be confined.
    pub demand: Demand,
}

/// Why there is no toolbox.
#[derive(Debug, thiserror::Error)]
pub enum ToolboxError {
    /// The role has a tool that there is not.
    #[error("there is no tool `{name}`{}", did_you_mean(.near.as_deref()))]
    UnknownTool {
        /// As it was written.
        name: String,
        /// What may have been meant.
        near: Option<String>,
    },
    /// The worktree cannot be used.
    #[error("the worktree cannot be used: {0}")]
    Worktree(#[from] AccessError),
}

/// The tools of one role in one worktree for one run.
pub struct Toolbox {
    role: String,
    permissions: Permissions,
    /// Those that the role has, in the fixed order, whether it may use them or not.
    tools: Vec<Box<dyn Tool>>,
    redactor: Redactor,
}

impl Toolbox {
    /// The tools that a role has in its workplace.
    pub fn open(place: &Workplace) -> Result<Self, ToolboxError> {
        for name in &place.tools {
            if !TOOL_NAMES.contains(&name.as_str()) {
                let near = nearest(name, TOOL_NAMES).map(str::to_owned);
                return Err(ToolboxError::UnknownTool { name: name.clone(), near });
            }
        }
        let redactor = Redactor::new(&place.variables);
        let worktree = Arc::new(Worktree::open(&place.worktree)?);
        let shell = Arc::new(shell(place, &worktree, &redactor));
        let all: [Box<dyn Tool>; 2] = [
            Box::new(Typed::new(ReadFile { worktree: Arc::clone(&worktree) })),
            Box::new(Typed::new(Bash { shell: Arc::clone(&shell) })),
        ];
        let tools = all.into_iter().filter(|tool| place.tools.iter().any(|name| name == tool.name()));
        Ok(Self {
            role: place.role.clone(),
            permissions: place.permissions,
            tools: tools.collect(),
            redactor,
        })
    }

    fn tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(AsRef::as_ref)
    }

    fn may_use(&self, tool: &dyn Tool) -> Result<(), Refusal> {
        match tool.needs() {
            Some(needed) if !self.permissions.allow(needed) => Err(Refusal::denied(format!(
                "`{}` needs the permission `{needed}`, which the role `{}` does not have",
                tool.name(),
                self.role
            ))),
            _ => Ok(()),
        }
    }

    /// The tool, if there is one by this name and the role may use it.
    fn granted(&self, name: &str) -> Result<&dyn Tool, Refusal> {
        if let Some(tool) = self.tool(name) {
            self.may_use(tool)?;
            return Ok(tool);
        }
        if TOOL_NAMES.contains(&name) {
            return Err(Refusal::denied(format!("the role `{}` does not have the tool `{name}`", self.role)));
        }
        let usable = self.usable().map(|tool| tool.name());
        let near = did_you_mean(nearest(name, usable));
        Err(Refusal::malformed(format!("there is no tool `{}`{near}", shown_name(name))))
    }

    fn usable(&self) -> impl Iterator<Item = &dyn Tool> {
        self.tools.iter().map(AsRef::as_ref).filter(|tool| self.may_use(*tool).is_ok())
    }

    async fn carry_out(&self, call: &ToolCall, cancel: &CancellationToken) -> Result<String, Refusal> {
        let tool = self.granted(&call.name)?;
        let arguments = parsed(call)?;
        tool.check(&arguments)?;
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled.into());
        }
        Ok(tool.call(&arguments, cancel).await?)
    }
}

#[async_trait]
impl Tools for Toolbox {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.usable().map(Tool::definition).collect()
    }

    fn only_reads(&self, tool: &str) -> bool {
        self.tool(tool).is_none_or(Tool::only_reads)
    }

    async fn call(&self, call: &ToolCall, cancel: &CancellationToken) -> Called {
        let (text, end) = match self.carry_out(call, cancel).await {
            Ok(text) => (text, CallEnd::Done),
            Err(Refusal { text, end }) => (format!("ERROR: {text}"), end),
        };
        let text = self.redactor.redact(&text).into_owned();
        Called { text: capped(text, RESULT_HEAD, RESULT_TAIL, "ask for less at a time"), end }
    }
}

/// Why a call came to nothing.
#[derive(Debug)]
struct Refusal {
    text: String,
    end: CallEnd,
}

impl Refusal {
    fn denied(text: String) -> Self {
        Self { text, end: CallEnd::Denied }
    }

    fn malformed(text: String) -> Self {
        Self { text, end: CallEnd::Malformed }
    }
}

impl From<ToolError> for Refusal {
    fn from(error: ToolError) -> Self {
        let end = match error {
            ToolError::Malformed(_) => CallEnd::Malformed,
            ToolError::Failed(_) | ToolError::Access(_) | ToolError::Cancelled => CallEnd::Failed,
        };
        Self { text: error.to_string(), end }
    }
}

/// Without the permission to write, what commands write is thrown away: builds and tests work, and change nothing.
fn shell(place: &Workplace, worktree: &Worktree, redactor: &Redactor) -> Shell {
    let identity = RunIdentity {
        task: &place.task,
        run: &place.run,
        run_dir: &place.run_dir,
        working_dir: worktree.path(),
    };
    let leave = Leave {
        mode: if place.permissions.allow(Permission::Write) {
            ProjectMode::Writable
        } else {
            ProjectMode::Overlay
        },
        network: if place.permissions.allow(Permission::Web) { Network::Allowed } else { Network::Private },
        demand: place.demand,
    };
    let env = tool_environment_in_run(&place.variables, identity);
    Shell::new(worktree.path(), &place.run_dir, env, redactor.clone(), leave)
}

/// Giant ones are not even looked at.
fn parsed(call: &ToolCall) -> Result<Value, Refusal> {
    let text = call.arguments.as_str();
    if text.len() > MAX_ARGUMENTS {
        return Err(Refusal::malformed(format!(
            "the arguments have {} bytes, and may have {MAX_ARGUMENTS}",
            text.len()
        )));
    }
    serde_json::from_str(text)
        .map_err(|error| Refusal::malformed(format!("the arguments of `{}` are no JSON: {error}", call.name)))
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// A name that a model made up may be of any length.
fn shown_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(100)]
}
