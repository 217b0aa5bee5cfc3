//! The built-in agents: roles, tools, permissions, the turn loop, planning.
//!
//! **Invariant:** what a role may do is enforced where a tool runs, not where a prompt is written. No tool leaves the worktree.

mod limits;
mod permission;
mod shell;
mod toolbox;
mod tools;
mod worktree;

pub use permission::{Permission, Permissions};
pub use toolbox::{TOOL_NAMES, Toolbox, ToolboxError, Workplace};
pub use tools::{CallEnd, Called, Tools};
pub use worktree::AccessError;
