//! The one way to write.

mod claims;
mod runs;
mod sessions;
mod tasks;
mod tested;

use rehearsal_core::{Actor, EventKind, Timestamp};
use sqlx::query;
use sqlx::sqlite::SqliteConnection;

use super::flows::FlowCache;
use super::log::{self, About};
use super::open::Database;
use crate::{Change, CommitError, Committed, StoreError};

pub(super) use runs::EndColumns;
pub(super) use sessions::apply_edit;

/// Makes all changes in one transaction, or none.
pub(super) async fn commit(
    database: &Database,
    flows: &FlowCache,
    actor: &Actor,
    at: Timestamp,
    changes: Vec<Change>,
) -> Result<Vec<Committed>, CommitError> {
    let mut turn = database.writer().await?;
    // A transaction that begins by reading cannot always go on to write: SQLite would refuse it at once.
    query("BEGIN IMMEDIATE").execute(&mut turn.connection).await?;
    let mut writing = Writing { connection: &mut turn.connection, flows, actor, at, index: 0 };
    match writing.apply_all(changes).await {
        Ok(committed) => {
            query("COMMIT").execute(&mut turn.connection).await?;
            turn.keep();
            Ok(committed)
        }
        Err(error) => {
            // Some errors (a full disk) have rolled back already. The connection is only kept if it is clean.
            if query("ROLLBACK").execute(&mut turn.connection).await.is_ok() {
                turn.keep();
            }
            Err(error)
        }
    }
}

/// A transaction under way.
struct Writing<'a> {
    connection: &'a mut SqliteConnection,
    flows: &'a FlowCache,
    actor: &'a Actor,
    at: Timestamp,
    /// Which change it is, counted from 0.
    index: usize,
}

impl Writing<'_> {
    async fn apply_all(&mut self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        let mut committed = Vec::with_capacity(changes.len());
        for (index, change) in changes.into_iter().enumerate() {
            self.index = index;
            committed.push(self.apply(change).await?);
        }
        Ok(committed)
    }

    async fn apply(&mut self, change: Change) -> Result<Committed, CommitError> {
        match change {
            Change::AddSession(new) => self.add_session(new).await.map(Committed::Session),
            Change::EditSession { name, edit } => self.edit_session(name, edit).await.map(Committed::Session),
            Change::AddProgress { session, run, text } => {
                self.add_progress(session, run, text).await.map(Committed::Progress)
            }
            Change::AddTask { task, id, flow } => {
                let mut tasks = self.add_tasks(vec![(id, *task)], &flow).await?;
                Ok(Committed::Task(Box::new(tasks.swap_remove(0))))
            }
            Change::AddTasks { tasks, flow } => self.add_tasks(tasks, &flow).await.map(Committed::Tasks),
            Change::ChangeTask { id, input } => {
                self.change_task(id, input).await.map(|task| Committed::Task(Box::new(task)))
            }
            Change::ClaimNext(request) => {
                let claimed = self.claim_next(*request).await?;
                Ok(Committed::Claimed(claimed.map(Box::new)))
            }
            Change::HoldLane { lane, hold } => self.hold_lane(lane, hold).await.map(|()| Committed::Lane),
            Change::FreeLane { lane } => self.free_lane(lane).await.map(|()| Committed::Lane),
            Change::StartRun(start) => self.start_run(start).await.map(|run| Committed::Run(Box::new(run))),
            Change::EndRun { run, end } => {
                self.end_run(run, end).await.map(|run| Committed::Run(Box::new(run)))
            }
            Change::AddTestRun { run, results } => {
                self.add_test_run(run, &results).await?;
                Ok(Committed::TestRun)
            }
        }
    }

    async fn append(&mut self, about: About<'_>, kind: &EventKind) -> Result<(), StoreError> {
        log::append(&mut *self.connection, self.actor, self.at, about, kind).await
    }
}
