//! Where Rehearsal keeps what it knows: sessions, tasks, runs, and the log of all that happened to them.
//!
//! There is one way to write, [`Store::commit`]: a list of [`Change`]s that are all made or none, each with its
//! event in the append-only log, in one transaction. Tasks move only through
//! [`transition`](rehearsal_core::transition::transition), with the version of the flow that they started with.
//! So every row equals the fold of its events, and [`Store::verify`] can prove it.
//!
//! There are two engines: a file of one machine ([`SqliteStore`]), and a server for many ([`PostgresStore`]). What they do
//! is written once, over a connection that is either; an engine has only what is its own: how to connect, to begin and
//! to commit, and to hear of others.
//!
//! **Invariant:** no rule about tasks lives here, and no clock: whoever writes says who and when; where machines share
//! a server, the server says when. Two processes may write at once; a change that was answered is on the disk.
//!
//! ```
//! # use std::sync::Arc;
//! # use rehearsal_core::{Actor, NewTask, TaskId, Timestamp, flow::Flow};
//! # use rehearsal_store::{Change, SqliteStore, Store};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let (now, id) = (Timestamp(0), TaskId::from_random(7));
//! let store: Arc<dyn Store> = Arc::new(SqliteStore::open(directory.path()).await?);
//! let flow = Arc::new(Flow::shipped("loop").ok_or("no such flow")?);
//! let task = Box::new(NewTask { title: "add a greeting".into(), ..NewTask::default() });
//! store.commit(Actor::User, now, vec![Change::AddTask { task, id, flow }]).await?;
//!
//! let next = store.next_task(None, now).await?.ok_or("nothing to do")?;
//! assert_eq!(next.title, "add a greeting");
//! # Ok(()) }
//! ```

mod change;
mod check;
mod claim;
mod columns;
mod cycle;
mod durability;
mod engine;
mod error;
mod json;
mod link;
mod open;
mod patience;
pub mod policy;
mod postgres;
mod query;
#[cfg(feature = "scratch")]
pub mod scratch;
mod sqlite;
mod store;
mod tables;

pub use change::{Change, Committed};
pub use claim::{ClaimRequest, Claimed};
pub use durability::Durability;
pub use error::{CommitError, FindError, OpenError, StoreError};
pub use open::{StoreLocation, open};
pub use postgres::{PostgresStore, TimeSource};
pub use query::{
    Cost, Counts, EventQuery, RunQuery, Scope, SessionSummary, StatusFilter, TaskQuery, TestQuery, Tested,
};
pub use sqlite::SqliteStore;
pub use store::Store;
