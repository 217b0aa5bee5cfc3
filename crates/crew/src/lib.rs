//! The built-in agents: roles, tools, permissions, the turn loop, planning.
//!
//! **Invariant:** what a role may do is enforced where a tool runs, not where a prompt is written. No tool leaves the worktree.

mod permission;
mod tools;

pub use permission::{Permission, Permissions};
pub use tools::{CallEnd, Called, Tools};
