//! The one way to write: the changes, one after the other. The transaction around them is the engine's.

mod claims;
mod foresee;
mod runs;
mod sessions;
mod tasks;
mod tested;

use rehearsal_core::{Actor, EventKind, RunId, SessionName, TaskId, Timestamp};

use super::flows::FlowCache;
use super::log::{About, Trace, run_of};
use crate::json::to_json;
use crate::link::{FirstRead, Link, Value};
use crate::{Change, CommitError, Committed, StoreError};

pub(crate) use claims::NOW;
pub(crate) use foresee::{Ahead, Foreseen};
pub(crate) use runs::EndColumns;
pub(crate) use sessions::apply_edit;
pub(crate) use tasks::AtOnce;

/// A transaction under way.
pub(crate) struct Writing<'a> {
    link: Link<'a>,
    flows: &'a FlowCache,
    actor: &'a Actor,
    at: Timestamp,
    /// Which change it is, counted from 0.
    index: usize,
    /// The last event that was written.
    trace: Option<Trace>,
    /// PostgreSQL's number of the transaction, by which its outcome can be asked for.
    transaction: Option<String>,
}

/// What a transaction wrote.
pub(crate) struct Written {
    /// Its last event.
    pub(crate) trace: Trace,
    /// Its number, on PostgreSQL.
    pub(crate) transaction: Option<String>,
}

/// One event.
macro_rules! insert_event {
    ($source:literal) => {
        concat!("INSERT INTO events (at, actor, kind, task_id, session, run_id, body) ", $source)
    };
}
use insert_event;

const APPEND: &str = insert_event!("VALUES ($1, $2, $3, $4, $5, $6, $7)");

/// What a change reads before anything else, if that can be said beforehand.
pub(crate) fn first_read(change: &Change) -> Option<FirstRead> {
    match change {
        Change::ClaimNext(request) => claims::first_read(request),
        Change::ChangeTask { id, .. } => Some(crate::tables::tasks::first_read(id)),
        _ => None,
    }
}

impl<'a> Writing<'a> {
    pub(crate) fn new(
        link: Link<'a>,
        flows: &'a FlowCache,
        actor: &'a Actor,
        at: Timestamp,
        transaction: Option<String>,
    ) -> Self {
        Self { link, flows, actor, at, index: 0, trace: None, transaction }
    }

    /// What was written, if anything was: a claim that found nothing to do is no news.
    pub(crate) fn into_written(self) -> Option<Written> {
        self.trace.map(|trace| Written { trace, transaction: self.transaction })
    }

    /// All changes and the end of the transaction.
    pub(crate) async fn apply_and_commit(
        &mut self,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        let committed = self.apply_all(changes).await?;
        self.commit().await?;
        Ok(committed)
    }

    /// Ends the transaction, together with what was written last.
    pub(crate) async fn commit(&mut self) -> Result<(), StoreError> {
        self.link.commit().await
    }

    pub(crate) async fn apply_all(&mut self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
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

    /// Writes one event.
    async fn append(&mut self, about: About<'_>, kind: &EventKind) -> Result<(), StoreError> {
        self.link.execute(APPEND, &self.event(about, kind)?).await?;
        self.leaves(about, kind.name());
        Ok(())
    }

    /// Remembers an event that is written.
    fn leaves(&mut self, about: About<'_>, kind: &'static str) {
        self.trace = Some(Trace {
            at: self.at,
            kind,
            task: about.task.cloned(),
            session: about.session.cloned(),
            run: about.run.or(run_of(self.actor)).cloned(),
        });
    }

    /// The parameters of an event, `$1` to `$7`.
    fn event<'v>(&self, about: About<'v>, kind: &EventKind) -> Result<[Value<'v>; 7], StoreError>
    where
        'a: 'v,
    {
        let actor: &'a Actor = self.actor;
        Ok([
            self.at.0.into(),
            to_json(actor)?.into(),
            kind.name().into(),
            about.task.map(TaskId::as_str).into(),
            about.session.map(SessionName::as_str).into(),
            about.run.or(run_of(actor)).map(RunId::as_str).into(),
            to_json(kind)?.into(),
        ])
    }
}
