//! The built-in agents: roles, tools, permissions, the turn loop, planning.
//!
//! **Invariant:** what a role may do is enforced where a tool runs, not where a prompt is written. No tool leaves the worktree.

mod hooks;
mod limits;
mod mcp;
mod permission;
mod shell;
mod toolbox;
mod tools;
mod worktree;

pub use hooks::{Hook, Hooks, MatcherError};
pub use mcp::McpServer;
pub use permission::{Permission, Permissions};
pub use toolbox::{
    TOOL_NAMES, TestRunError, TestRunner, Toolbox, ToolboxError, WebSearch, WebSearchError, Workplace,
};
pub use tools::{CallEnd, Called, Tools};
pub use worktree::AccessError;
