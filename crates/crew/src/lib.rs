//! The built-in agents: roles, tools, permissions, the turn loop, planning.
//!
//! A [`Role`] says what a member of the crew is for and may do; [`system_prompt`] makes of it what the model is told, [`ModelChoice`] finds the
//! model, and [`run`] lets it work with its [`Tools`] until it stops. What comes out is what every driver gives: a stream of
//! [`Activity`](rehearsal_core::Activity) and a [`WireReport`](rehearsal_core::WireReport).
//!
//! **Invariant:** what a role may do is enforced where a tool runs, not where a prompt is written. No tool leaves the worktree.
//!
//! **Invariant:** every run ends in a report, and time, turns, tokens and memory are bounded whatever the model answers.

mod conversation;
mod endpoint;
mod hooks;
mod limits;
mod mcp;
mod permission;
pub mod plan;
pub mod planner;
mod prompt;
mod role;
mod shell;
mod surroundings;
mod tokens;
mod toolbox;
mod tools;
mod turns;
mod worktree;

pub use conversation::TRUNCATED;
pub use endpoint::{ChoiceError, ModelChoice, any_vendor};
pub use hooks::{Hook, Hooks, MatcherError};
pub use mcp::McpServer;
pub use permission::{Permission, Permissions};
pub use prompt::{Prompt, PromptBuilder, SYSTEM_BUDGET, Section, system_prompt};
pub use role::{Role, RoleError, RoleFile, RoleOrigin, Roles};
pub use surroundings::Surroundings;
pub use tokens::estimate;
pub use toolbox::{
    TOOL_NAMES, TestRunError, TestRunner, Toolbox, ToolboxError, WebSearch, WebSearchError, Workplace,
};
pub use tools::{CallEnd, Called, Tools};
pub use turns::{Assignment, CONTEXT, Limits, Witness, run};
pub use worktree::AccessError;
