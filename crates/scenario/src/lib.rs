//! Scenarios: scripted rehearsals of flows.
//!
//! A rehearsal runs the whole pipeline with real git, a real store and real processes, but with scripted agents and
//! a virtual clock. A [`Scenario`] describes the repository, the tasks, what each agent does, which faults occur and the
//! expected result. [`Rehearsal::play`] runs it on one thread and returns a [`Rehearsed`]: mismatches, broken
//! invariants and a timeline. The same scenario with the same seed produces the same log, byte for byte.
//!
//! **Invariant:** nothing outside the scenario's own directory changes: not the user's repository, not its remotes, not
//! the store.

mod actors;
mod calls;
mod clock;
mod clock_socket;
mod director;
mod environment;
mod events;
mod expectation;
mod fake_model;
mod faulty_store;
mod foreign_commit;
mod invariants;
mod observed;
mod read;
mod rehearsal;
mod repository;
mod scenario;
mod suite;
mod timeline;

pub use calls::RoleScript;
pub use environment::ScenarioError;
pub use expectation::{Expect, ExpectBase, ExpectPrompt, ExpectTask, Mismatch};
pub use faulty_store::OpensStore;
pub use read::parse;
pub use rehearsal::{Performance, Rehearsal, Rehearsed};
pub use repository::RepositoryCache;
pub use scenario::{
    Act, CallScript, Deed, DiskFull, DiskOf, Edit, ForeignCommit, ForgeChoice, Gh, Kill, Pause, Rejection,
    Repository, RoleFile, Scenario, ScenarioTask, When,
};
pub use suite::{Prepared, StoreKind, Suite, SuiteError, SuiteEvent};
pub use timeline::TimelineEntry;
