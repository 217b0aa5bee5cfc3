//! The one way to write: the changes, one after the other. The transaction around them is the engine's.

mod claims;
mod runs;
mod sessions;
mod tasks;
mod tested;

use rehearsal_core::{Actor, EventKind, RunId, SessionName, TaskId, Timestamp};

use super::flows::FlowCache;
use super::log::{About, Trace, run_of};
use crate::json::to_json;
use crate::link::{Link, Sql, Value, values};
use crate::{Change, CommitError, Committed, StoreError};

pub(crate) use runs::EndColumns;
pub(crate) use sessions::apply_edit;

/// A transaction under way.
pub(crate) struct Writing<'a> {
    link: Link<'a>,
    flows: &'a FlowCache,
    actor: &'a Actor,
    at: Timestamp,
    /// Which change it is, counted from 0.
    index: usize,
    /// The last event that was written.
    last_event: Option<Trace>,
}

/// The statement that writes events. PostgreSQL answers with the id of the transaction.
macro_rules! insert_event {
    (sqlite $source:literal) => {
        concat!("INSERT INTO events (at, actor, kind, task_id, session, run_id, body) ", $source)
    };
    (postgres $source:literal) => {
        concat!(insert_event!(sqlite $source), " RETURNING pg_current_xact_id()::text")
    };
}
use insert_event;

const APPEND: Sql = Sql {
    sqlite: insert_event!(sqlite "VALUES ($1, $2, $3, $4, $5, $6, $7)"),
    postgres: insert_event!(postgres "VALUES ($1, $2, $3, $4, $5, $6, $7)"),
};

impl<'a> Writing<'a> {
    pub(crate) fn new(link: Link<'a>, flows: &'a FlowCache, actor: &'a Actor, at: Timestamp) -> Self {
        Self { link, flows, actor, at, index: 0, last_event: None }
    }

    /// None if nothing was written, such as by a claim that found no task.
    pub(crate) fn into_last_event(self) -> Option<Trace> {
        self.last_event
    }

    pub(crate) async fn apply(&mut self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        let mut committed = Vec::with_capacity(changes.len());
        for (index, change) in changes.into_iter().enumerate() {
            self.index = index;
            committed.push(self.apply_one(change).await?);
        }
        Ok(committed)
    }

    async fn apply_one(&mut self, change: Change) -> Result<Committed, CommitError> {
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
        let run = about.run.or(run_of(self.actor)).map(RunId::as_str);
        let values = values![
            self.at.0,
            to_json(self.actor)?,
            kind.name(),
            about.task.map(TaskId::as_str),
            about.session.map(SessionName::as_str),
            run,
            to_json(kind)?,
        ];
        self.write_events(APPEND, values, about, kind.name()).await
    }

    /// Executes a statement that writes events, and remembers the last of them.
    async fn write_events(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        last: About<'_>,
        kind: &'static str,
    ) -> Result<(), StoreError> {
        let transaction: Option<(String,)> = self.link.optional(sql, values).await?;
        self.last_event = Some(Trace {
            at: self.at,
            kind,
            task: last.task.cloned(),
            session: last.session.cloned(),
            run: last.run.or(run_of(self.actor)).cloned(),
            transaction: transaction.map(|(id,)| id),
        });
        Ok(())
    }
}
