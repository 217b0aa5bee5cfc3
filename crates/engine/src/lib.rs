//! Moves tasks through flows.
//!
//! The [`Worker`] claims tasks and takes each to its next state: those of any flow in worktrees, or those of a session one
//! after the other in the user's checkout, with a fresh context each time. [`why`](why::why) tells
//! why a task is not moving; [`LoopLock`] keeps two loops out of one checkout. The [`Tester`] runs a repository's
//! tests, remembers what came of them, and says what is behind the failures; the [`Checker`] builds and lints before.
//!
//! **Invariants:** state changes only through the store's one writer path. What an agent says is applied when
//! its run is over, in one transaction with the run's end. The engine prints nothing: it tells a reporter.

mod agents;
mod checker;
mod clock;
mod draws;
mod findings;
mod last_words;
mod ledger;
mod lock;
mod outcome_file;
pub mod prompt;
mod steps;
mod stop;
mod tester;
pub mod why;
mod worker;

pub use agents::{AgentSetup, Reach, SetupError, allowed_commands, containment_of, driver_of, program_of};
pub use checker::{CheckWanted, Checker};
pub use clock::SystemClock;
pub use draws::Draws;
pub use findings::Finding;
pub use last_words::last_words;
pub use lock::{LockError, LoopLock};
pub use stop::StopSwitch;

pub use worker::{
    Landing, LeftWork, LeftWorkError, LocalWorker, Moment, Moments, Outlet, Policy, QueuePolicy, Reaction,
    Role, Roles, SessionPolicy, SessionStart, Undisturbed, WorkEnd, WorkError, WorkEvent, WorkOptions,
    WorkReporter, WorkSummary, Worker, Workspace, forget_dead_workers, has_died, is_in_checkout, left_runs,
    left_work, open_patiently, workers_here,
};

pub use tester::{ChangedSince, Choice, Tested, TestedProject, Tester, TesterError, Wanted};

/// A worker is one start of one process.
fn worker_id(drawn: uuid::Uuid) -> rehearsal_core::WorkerId {
    #[expect(clippy::expect_used, reason = "a UUID has only letters, digits and dashes")]
    rehearsal_core::WorkerId::new(drawn.to_string()).expect("a UUID is a valid name")
}

/// Randomness for short ids.
pub fn random_bits() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}
