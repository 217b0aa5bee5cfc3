//! The tools of one role in one worktree for one run.

mod bash;
mod blocking;
#[cfg(all(test, feature = "schema"))]
mod derived;
mod edit_file;
mod git_diff;
mod glob;
mod grep;
mod head_tail;
mod read_file;
mod report;
mod run_tests;
mod tool;
mod walk;
mod web_search;
mod write_file;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use rehearsal_agent::environment::{RunIdentity, Variables, tool_environment_in_run};
use rehearsal_agent::redact::Redactor;
use rehearsal_core::{BoxFuture, RunId, TaskId, nearest};
use rehearsal_llm::chat::{ToolCall, ToolDefinition};
use rehearsal_sandbox::{Demand, Network, ProjectMode};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::hooks::{Before, HookRunner, HookedCall, Hooks, MatcherError};
use crate::limits::{MAX_ARGUMENTS, RESULT_HEAD, RESULT_TAIL};
use crate::mcp::{self, McpServer};
use crate::shell::{Leave, Shell};
use crate::tools::{CallEnd, Called, Tools};
use crate::worktree::{AccessError, Worktree};
use crate::{Permission, Permissions};
use bash::Bash;
use edit_file::EditFile;
use git_diff::GitDiff;
use glob::Glob;
use grep::Grep;
pub(crate) use head_tail::HeadTail;
use head_tail::capped;
use read_file::ReadFile;
use report::{Decide, Progress, Report, TaskBlock, TaskDone};
use run_tests::RunTests;
pub use run_tests::{TestRunError, TestRunner};
use tool::{BuiltIn, Typed};
pub(crate) use tool::{Checked, Tool, ToolError};
use web_search::Search;
pub use web_search::{WebSearch, WebSearchError};
use write_file::WriteFile;

/// The names of all tools of ours, in the order in which a model is told of them.
pub const TOOL_NAMES: [&str; 13] = [
    "read_file",
    "glob",
    "grep",
    "git_diff",
    "edit_file",
    "write_file",
    "bash",
    "run_tests",
    "web_search",
    "task_done",
    "task_block",
    "progress",
    "decide",
];

/// What each tool of ours needs.
pub(crate) const NEEDS: [(&str, Option<Permission>); TOOL_NAMES.len()] = [
    (ReadFile::NAME, ReadFile::NEEDS),
    (Glob::NAME, Glob::NEEDS),
    (Grep::NAME, Grep::NEEDS),
    (GitDiff::NAME, GitDiff::NEEDS),
    (EditFile::NAME, EditFile::NEEDS),
    (WriteFile::NAME, WriteFile::NEEDS),
    (Bash::NAME, Bash::NEEDS),
    (RunTests::NAME, RunTests::NEEDS),
    (Search::NAME, Search::NEEDS),
    (TaskDone::NAME, TaskDone::NEEDS),
    (TaskBlock::NAME, TaskBlock::NEEDS),
    (Progress::NAME, Progress::NEEDS),
    (Decide::NAME, Decide::NEEDS),
];

/// For whom and where tools are.
#[derive(Clone)]
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
    /// The branch or commit that the work began from.
    pub base: Option<String>,
    /// Commands around each call.
    pub hooks: Hooks,
    /// Servers of more tools, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Where the web is searched. None: there is no `web_search`.
    pub web_search: Option<WebSearch>,
    /// Who runs tests. None: there is no `run_tests`.
    pub tests: Option<Arc<dyn TestRunner>>,
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
    /// A hook says for no tools that it is.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// The endpoint for searches is none.
    #[error("the web cannot be searched: {0}")]
    WebSearch(#[from] WebSearchError),
}

/// The tools of one role in one worktree for one run.
pub struct Toolbox {
    role: String,
    permissions: Permissions,
    /// Those that the role has, in the fixed order, whether it may use them or not.
    tools: Vec<Box<dyn Tool>>,
    hooks: HookRunner,
    redactor: Redactor,
    notes: Vec<String>,
}

impl Toolbox {
    /// The tools that a role has in its workplace. Waits for servers of tools to start; one that does not is told in [`notes`](Self::notes).
    pub fn open(place: &Workplace) -> BoxFuture<'_, Result<Self, ToolboxError>> {
        Box::pin(async move {
            for name in &place.tools {
                if !TOOL_NAMES.contains(&name.as_str()) {
                    let near = nearest(name, TOOL_NAMES).map(str::to_owned);
                    return Err(ToolboxError::UnknownTool { name: name.clone(), near });
                }
            }
            let redactor = Redactor::new(&place.variables);
            let worktree = Arc::new(Worktree::open(&place.worktree)?);
            let env = tool_environment_in_run(&place.variables, identity(place, &worktree));
            let of_place = |leave: Leave| shell(place, &worktree, &env, &redactor, leave);
            let shell = Arc::new(of_place(Leave::of_role(place)));
            let hooks = HookRunner::new(&place.hooks, Arc::clone(&shell), &place.role)?;
            let mut tools = built_in(place, &worktree, &env, &redactor, &shell)?;
            tools.retain(|tool| place.tools.iter().any(|name| name == tool.name()));
            let leave_of = |server: &McpServer| Leave::of_role(place).with_network(server.allow_network);
            let shell_of = |server: &McpServer| of_place(leave_of(server));
            let (more, notes) = mcp::tools_of(&place.mcp, shell_of).await;
            tools.extend(more);
            Ok(Self {
                role: place.role.clone(),
                permissions: place.permissions,
                tools,
                hooks,
                redactor,
                notes,
            })
        })
    }

    /// What could not be had, in words for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
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
            // One that the role has, and that is not set up, is no better for the model.
            return Err(Refusal::denied(format!(
                "the role `{}` does not have the tool `{name}` here",
                self.role
            )));
        }
        let usable = self.usable().map(Tool::name);
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
        let hooked = HookedCall { tool: tool.name(), arguments: call.arguments.as_str() };
        if let Before::Refused(why) = self.hooks.before(hooked, cancel).await {
            return Err(Refusal::denied(why));
        }
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled.into());
        }
        let called = tool.call(&arguments, cancel).await.map_err(Refusal::from);
        let (text, failed) = match &called {
            Ok(text) => (text, false),
            Err(refusal) => (&refusal.text, true),
        };
        let notes = self.hooks.after(hooked, &self.redactor.redact(text), failed, cancel).await;
        let with_notes = |text: String| {
            notes.iter().fold(text, |text, note| format!("{}\n[{note}]", text.trim_end_matches('\n')))
        };
        called.map(with_notes).map_err(|refusal| Refusal { text: with_notes(refusal.text), ..refusal })
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

impl Leave {
    /// Without the permission to write, what commands write is thrown away: builds and tests work, and change nothing.
    fn of_role(place: &Workplace) -> Self {
        let may = |permission| place.permissions.allow(permission);
        Self {
            mode: if may(Permission::Write) { ProjectMode::Writable } else { ProjectMode::Overlay },
            network: if may(Permission::Web) { Network::Allowed } else { Network::Private },
            demand: place.demand,
        }
    }

    fn with_network(self, is_allowed: bool) -> Self {
        if is_allowed { Self { network: Network::Allowed, ..self } } else { self }
    }

    /// To look, and nothing else.
    fn to_read(place: &Workplace) -> Self {
        Self { mode: ProjectMode::ReadOnly, network: Network::Private, demand: place.demand }
    }
}

fn identity<'a>(place: &'a Workplace, worktree: &'a Worktree) -> RunIdentity<'a> {
    RunIdentity { task: &place.task, run: &place.run, run_dir: &place.run_dir, working_dir: worktree.path() }
}

fn shell(
    place: &Workplace,
    worktree: &Worktree,
    env: &Variables,
    redactor: &Redactor,
    leave: Leave,
) -> Shell {
    Shell::new(worktree.path(), &place.run_dir, env.clone(), redactor.clone(), leave)
}

/// All tools of ours that can be had here, in the order of their names in [`TOOL_NAMES`].
fn built_in(
    place: &Workplace,
    worktree: &Arc<Worktree>,
    env: &Variables,
    redactor: &Redactor,
    shell_of_role: &Arc<Shell>,
) -> Result<Vec<Box<dyn Tool>>, ToolboxError> {
    let worktree = || Arc::clone(worktree);
    let to_read = Arc::new(shell(place, &worktree(), env, redactor, Leave::to_read(place)));
    let report = Arc::new(Report { run_dir: place.run_dir.clone(), task: place.task.clone() });
    let report = || Arc::clone(&report);
    let mut tools: Vec<Box<dyn Tool>> = vec![
        Box::new(Typed::new(ReadFile { worktree: worktree() })),
        Box::new(Typed::new(Glob { worktree: worktree() })),
        Box::new(Typed::new(Grep { worktree: worktree() })),
        Box::new(Typed::new(GitDiff { worktree: worktree(), shell: to_read, base: place.base.clone() })),
        Box::new(Typed::new(EditFile { worktree: worktree() })),
        Box::new(Typed::new(WriteFile { worktree: worktree() })),
        Box::new(Typed::new(Bash { shell: Arc::clone(shell_of_role) })),
    ];
    if let Some(runner) = &place.tests {
        tools.push(Box::new(Typed::new(RunTests { runner: Arc::clone(runner) })));
    }
    if let Some(settings) = &place.web_search {
        tools.push(Box::new(Typed::new(Search::new(settings)?)));
    }
    tools.push(Box::new(Typed::new(TaskDone(report()))));
    tools.push(Box::new(Typed::new(TaskBlock(report()))));
    tools.push(Box::new(Typed::new(Progress(report()))));
    tools.push(Box::new(Typed::new(Decide(report()))));
    Ok(tools)
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
