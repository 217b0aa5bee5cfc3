//! Stories of the forge, with real git.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod branches;
mod crashes;
mod env;
mod local_forge;
mod mock_gh;
mod running_git;
mod worktrees;
