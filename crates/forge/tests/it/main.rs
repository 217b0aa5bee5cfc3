//! Stories of the forge, with real git.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]

mod branches;
mod crashes;
mod env;
mod local_forge;
mod mock_gh;
mod worktrees;
