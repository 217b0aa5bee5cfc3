//! Where work is done and how it gets out: worktrees and branches, pull requests, and a stand-in for `gh`.
//!
//! A task gets a [`Worktree`] from [`Worktrees`], outside the user's checkout; its commits go out through a
//! branch of the remote ([`Work`]), become a pull request, and land on the base by compare-and-swap
//! ([`Candidate`]).
//!
//! **Invariant:** nothing here deletes work that is nowhere else.
//!
//! **Invariant:** every change to something shared names what it believes to be there, and fails if it is not.

mod branch;
mod checkpoint;
mod class;
mod forge;
mod github;
mod local;
mod lock;
mod merge;
pub mod mock_gh;
mod policy;
mod ports;
mod reference;
mod remote;
mod repository;
mod watch;
mod worktree;

pub use branch::{LeftoversError, PushError, Pushed, RebaseError, Rebased, Work};
pub use checkpoint::{Aftermath, Checkpoint, Keep};
pub use class::ErrorClass;
pub use forge::{
    Checks, Comment, Forge, ForgeError, Mergeable, Merged, NewPullRequest, Opened, PrState, PullRequest,
    Review, ReviewVerdict,
};

pub use github::GitHub;
pub use local::Local;
pub use merge::{Candidate, CandidateError, LandError, check_fit, tree_of};
pub use ports::PortBlock;
pub use reference::sweep_references;
pub use remote::{RemoteError, fetch, remote_head};
pub use watch::{CheckoutPrint, FilePrint, Trespass};
pub use worktree::{
    Collected, GcEntry, GcMode, Occupied, Origin, Released, Unsaved, Worktree, WorktreeError,
    WorktreeSettings, Worktrees,
};
