//! The append-only log.

use rehearsal_core::{Actor, Event, RunId, SessionName, TaskId, Timestamp};

use super::tasks::limit;
use crate::json::from_json;
use crate::link::{Link, values};
use crate::{EventQuery, StoreError};

/// Whom an event is about: what the log can be filtered by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct About<'a> {
    pub(crate) task: Option<&'a TaskId>,
    pub(crate) session: Option<&'a SessionName>,
    pub(crate) run: Option<&'a RunId>,
}

/// An event that was written, by what it can be found.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) at: Timestamp,
    pub(crate) kind: &'static str,
    pub(crate) task: Option<TaskId>,
    pub(crate) session: Option<SessionName>,
    pub(crate) run: Option<RunId>,
    /// PostgreSQL's id of the transaction that wrote it.
    pub(crate) transaction: Option<String>,
}

pub(crate) fn run_of(actor: &Actor) -> Option<&RunId> {
    match actor {
        Actor::Run(run) => Some(run),
        Actor::User | Actor::Person(_) | Actor::Worker(_) => None,
    }
}

/// The place of the last event.
pub(crate) async fn last(link: &mut Link<'_>) -> Result<i64, StoreError> {
    let (seq,) = link.one("SELECT coalesce(max(seq), 0) FROM events", &[]).await?;
    Ok(seq)
}

/// The condition comes first, so that its index is the one that is used.
macro_rules! events_where {
    ($condition:literal) => {
        concat!(
            "SELECT seq, at, actor, body FROM events WHERE ",
            $condition,
            " AND seq > $4
               AND ($1 IS NULL OR task_id = $1)
               AND ($2 IS NULL OR session = $2)
               AND ($3 IS NULL OR run_id = $3)
             ORDER BY seq LIMIT $5 + 0"
        )
    };
}

/// An event as a transaction of PostgreSQL left it, `$6`.
macro_rules! trace_where {
    ($condition:literal) => {
        concat!(
            "SELECT count(*) FROM events WHERE ",
            $condition,
            " AND xmin = ($6::xid8)::xid AND at = $4 AND kind = $5
               AND task_id IS NOT DISTINCT FROM $1
               AND session IS NOT DISTINCT FROM $2
               AND run_id IS NOT DISTINCT FROM $3"
        )
    };
}

/// Whether an event is there, from the transaction with this number. Only PostgreSQL has such numbers.
pub(crate) async fn is_there(
    link: &mut Link<'_>,
    trace: &Trace,
    transaction: &str,
) -> Result<bool, StoreError> {
    let sql = if trace.run.is_some() {
        trace_where!("run_id = $3")
    } else if trace.task.is_some() {
        trace_where!("task_id = $1")
    } else if trace.session.is_some() {
        trace_where!("session = $2")
    } else {
        // Of lanes and tests. Hardly ever asked for: the whole log is read.
        trace_where!("TRUE")
    };
    let values = values![
        trace.task.as_ref().map(TaskId::as_str),
        trace.session.as_ref().map(SessionName::as_str),
        trace.run.as_ref().map(RunId::as_str),
        trace.at.0,
        trace.kind,
        transaction,
    ];
    let (count,): (i64,) = link.one(sql, values).await?;
    Ok(count > 0)
}

pub(crate) async fn events(link: &mut Link<'_>, events: &EventQuery) -> Result<Vec<Event>, StoreError> {
    let sql = if events.run.is_some() {
        events_where!("run_id = $3")
    } else if events.task.is_some() {
        events_where!("task_id = $1")
    } else if events.session.is_some() {
        events_where!("session = $2")
    } else {
        events_where!("TRUE")
    };
    let values = values![
        events.task.as_ref().map(TaskId::as_str),
        events.session.as_ref().map(SessionName::as_str),
        events.run.as_ref().map(RunId::as_str),
        events.after,
        limit(events.limit),
    ];
    let rows: Vec<EventRow> = link.all(sql, values).await?;
    rows.into_iter().map(read_event).collect()
}

/// `seq, at, actor, body`.
pub(crate) type EventRow = (i64, i64, String, String);

pub(crate) fn read_event((seq, at, actor, body): EventRow) -> Result<Event, StoreError> {
    let what = format!("event {seq}");
    Ok(Event { seq, at: Timestamp(at), actor: from_json(&what, &actor)?, kind: from_json(&what, &body)? })
}
