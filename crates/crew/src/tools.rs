//! The port between the turn loop and what an agent can use.

use async_trait::async_trait;
use rehearsal_llm::chat::{ToolCall, ToolDefinition};
use tokio_util::sync::CancellationToken;

/// The tools of one agent for one run.
#[async_trait]
pub trait Tools: Send + Sync {
    /// What the model is told of: the tools that the role has and may use, in a fixed order.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Whether a call of this tool changes nothing, so that it can run beside others. An unknown tool changes nothing.
    fn only_reads(&self, tool: &str) -> bool;

    /// Runs a call to its end. Every failure is an answer for the model; cancelled, it stops at once and leaves no process.
    async fn call(&self, call: &ToolCall, cancel: &CancellationToken) -> Called;
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// What the model reads. A failure begins with `ERROR: `.
    pub text: String,
    /// What kind of end it was.
    pub end: CallEnd,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// The tool did what was asked.
    Done,
    /// It could not.
    Failed,
    /// The arguments were none that the tool takes: the model may repair them.
    Malformed,
    /// The role's permissions or a hook refused it. It is recorded.
    Denied,
}
