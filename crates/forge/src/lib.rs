//! Where work is done and how it gets out: worktrees and branches, pull requests, and a stand-in for `gh`.
//!
//! A task gets a [`Worktree`] from [`Worktrees`], outside the user's checkout; its commits go out through a
//! [`Branch`](branch), become a pull request on a [`Forge`](forge::Forge), and land on the base by
//! compare-and-swap.
//!
//! **Invariant:** git is called in one way ([`Git`]): in a clean environment, without hooks, within a deadline.
//!
//! **Invariant:** nothing here deletes work that is nowhere else.
//!
//! **Invariant:** every change to something shared names what it believes to be there, and fails if it is not.

mod child;
mod git;
mod lock;
mod policy;
mod ports;
mod repository;
mod watch;
mod worktree;

pub use git::{Git, GitError, NotAnOid, Oid};
pub use ports::PortBlock;
pub use watch::{CheckoutPrint, Trespass};
pub use worktree::{
    Collected, GcEntry, GcMode, Origin, Released, Unsaved, Worktree, WorktreeError, WorktreeSettings, Worktrees,
};
