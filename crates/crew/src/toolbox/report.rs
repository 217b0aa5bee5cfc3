//! What an agent reports of its work: `task_done`, `task_block`, `progress`, `decide`. Nothing of it changes a task by itself: the engine reads
//! it when the run is over.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use rehearsal_agent::result_file::{ReportLine, append_report, write_result};
use rehearsal_core::{ReportedDecision, ResultFile, TaskId};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::to_its_end;
use super::tool::{BuiltIn, ToolError};
use crate::Permission;

#[derive(Debug)]
pub(super) struct Report {
    pub(super) run_dir: Utf8PathBuf,
    pub(super) task: TaskId,
}

impl Report {
    async fn add(self: &Arc<Self>, line: ReportLine) -> Result<(), ToolError> {
        let report = Arc::clone(self);
        to_its_end(move || append_report(&report.run_dir, &line).map_err(|error| unwritten(&error))).await
    }

    fn id(&self, given: Option<String>) -> String {
        given.unwrap_or_else(|| self.task.to_string())
    }
}

fn unwritten(error: &io::Error) -> ToolError {
    ToolError::failed(format!("the report cannot be written: {error}"))
}

pub(super) struct TaskDone(pub(super) Arc<Report>);

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct DoneArguments {
    /// The task; the one that you work on if left out.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200)))]
    id: Option<String>,
}

#[async_trait]
impl BuiltIn for TaskDone {
    type Arguments = DoneArguments;

    const NAME: &'static str = "task_done";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/task_done.json");
    const ABOUT: &'static str = "Report that a task is done. It is checked when you have ended.";
    const NEEDS: Option<Permission> = None;
    const ONLY_READS: bool = false;

    async fn run(&self, asked: DoneArguments, _cancel: &CancellationToken) -> Result<String, ToolError> {
        let id = self.0.id(asked.id);
        self.0.add(ReportLine::TaskDone { id: id.clone(), reason: None }).await?;
        Ok(format!("reported: `{id}` is done"))
    }
}

pub(super) struct TaskBlock(pub(super) Arc<Report>);

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct BlockArguments {
    /// The task; the one that you work on if left out.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200)))]
    id: Option<String>,
    /// What a human has to do or to decide.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 10_000)))]
    reason: String,
}

#[async_trait]
impl BuiltIn for TaskBlock {
    type Arguments = BlockArguments;

    const NAME: &'static str = "task_block";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/task_block.json");
    const ABOUT: &'static str = "Report that a task cannot go on without a human, and why.";
    const NEEDS: Option<Permission> = None;
    const ONLY_READS: bool = false;

    async fn run(&self, asked: BlockArguments, _cancel: &CancellationToken) -> Result<String, ToolError> {
        let id = self.0.id(asked.id);
        self.0.add(ReportLine::TaskBlocked { id: id.clone(), reason: asked.reason }).await?;
        Ok(format!("reported: `{id}` is blocked"))
    }
}

pub(super) struct Progress(pub(super) Arc<Report>);

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ProgressArguments {
    /// One or two sentences.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 10_000)))]
    text: String,
}

#[async_trait]
impl BuiltIn for Progress {
    type Arguments = ProgressArguments;

    const NAME: &'static str = "progress";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/progress.json");
    const ABOUT: &'static str =
        "Note in the journal what was done or learnt, for whoever works on this next.";
    const NEEDS: Option<Permission> = None;
    const ONLY_READS: bool = false;

    async fn run(&self, asked: ProgressArguments, _cancel: &CancellationToken) -> Result<String, ToolError> {
        self.0.add(ReportLine::Progress { text: asked.text }).await?;
        Ok("noted".to_owned())
    }
}

pub(super) struct Decide(pub(super) Arc<Report>);

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct DecideArguments {
    /// Whether the work may pass.
    decision: ReportedDecision,
    /// What is to be changed, with files and lines, if it may not.
    #[cfg_attr(feature = "schema", schemars(length(max = 50_000)))]
    comment: Option<String>,
}

#[async_trait]
impl BuiltIn for Decide {
    type Arguments = DecideArguments;

    const NAME: &'static str = "decide";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/decide.json");
    const ABOUT: &'static str =
        "Say whether the work that you were to judge may pass. The last decision counts.";
    const NEEDS: Option<Permission> = None;
    const ONLY_READS: bool = false;

    async fn run(&self, asked: DecideArguments, _cancel: &CancellationToken) -> Result<String, ToolError> {
        let DecideArguments { decision, comment } = asked;
        let says_nothing = comment.as_ref().is_none_or(|comment| comment.trim().is_empty());
        if decision == ReportedDecision::Reject && says_nothing {
            return Err(ToolError::Malformed(
                "who rejects says in `comment` what is to be changed".to_owned(),
            ));
        }
        let report = Arc::clone(&self.0);
        to_its_end(move || {
            let result = ResultFile { decision: Some(decision), comment, ..ResultFile::default() };
            write_result(&report.run_dir, &result).map_err(|error| unwritten(&error))
        })
        .await?;
        Ok(match decision {
            ReportedDecision::Approve => "decided: it may pass".to_owned(),
            ReportedDecision::Reject => "decided: it goes back".to_owned(),
        })
    }
}
