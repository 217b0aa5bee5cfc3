//! The append-only log.

use rehearsal_core::{Actor, Event, EventKind, RunId, SessionName, TaskId, Timestamp};
use sqlx::sqlite::SqliteConnection;
use sqlx::{query, query_as, query_scalar};

use super::error::{from_json, to_json};
use crate::{EventQuery, StoreError};

/// Whom an event is about: what the log can be filtered by.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About<'a> {
    pub(super) task: Option<&'a TaskId>,
    pub(super) session: Option<&'a SessionName>,
    pub(super) run: Option<&'a RunId>,
}

/// The run that an actor is.
pub(super) fn run_of(actor: &Actor) -> Option<&RunId> {
    match actor {
        Actor::Run(run) => Some(run),
        Actor::User | Actor::Worker(_) => None,
    }
}

/// Writes one event; the caller is in the transaction that makes the change.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    actor: &Actor,
    at: Timestamp,
    about: About<'_>,
    kind: &EventKind,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO events (at, actor, kind, task_id, session, run_id, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(at.0)
    .bind(to_json(actor)?)
    .bind(kind.name())
    .bind(about.task.map(TaskId::as_str))
    .bind(about.session.map(SessionName::as_str))
    .bind(about.run.or(run_of(actor)).map(RunId::as_str))
    .bind(to_json(kind)?)
    .execute(connection)
    .await?;
    Ok(())
}

/// The place of the last event.
pub(super) async fn last(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(query_scalar("SELECT coalesce(max(seq), 0) FROM events").fetch_one(connection).await?)
}

/// The condition comes first, so that its index is the one that is used.
macro_rules! events_where {
    ($condition:literal) => {
        concat!(
            "SELECT seq, at, actor, body FROM events WHERE ",
            $condition,
            " AND seq > ?4
               AND (?1 IS NULL OR task_id = ?1)
               AND (?2 IS NULL OR session = ?2)
               AND (?3 IS NULL OR run_id = ?3)
             ORDER BY seq LIMIT ?5"
        )
    };
}

pub(super) async fn events(
    connection: &mut SqliteConnection,
    events: &EventQuery,
) -> Result<Vec<Event>, StoreError> {
    let sql = if events.run.is_some() {
        events_where!("run_id = ?3")
    } else if events.task.is_some() {
        events_where!("task_id = ?1")
    } else if events.session.is_some() {
        events_where!("session = ?2")
    } else {
        events_where!("TRUE")
    };
    let rows: Vec<EventRow> = query_as(sql)
        .bind(events.task.as_ref().map(TaskId::as_str))
        .bind(events.session.as_ref().map(SessionName::as_str))
        .bind(events.run.as_ref().map(RunId::as_str))
        .bind(events.after)
        .bind(super::tasks::limit(events.limit))
        .fetch_all(connection)
        .await?;
    rows.into_iter().map(read_event).collect()
}

/// `seq, at, actor, body`.
pub(super) type EventRow = (i64, i64, String, String);

pub(super) fn read_event((seq, at, actor, body): EventRow) -> Result<Event, StoreError> {
    let what = format!("event {seq}");
    Ok(Event { seq, at: Timestamp(at), actor: from_json(&what, &actor)?, kind: from_json(&what, &body)? })
}
