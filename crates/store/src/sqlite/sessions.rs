//! Reading sessions and their journals.

use rehearsal_core::{ProgressEntry, RunId, Session, SessionName, Timestamp, nearest};
use sqlx::sqlite::SqliteConnection;
use sqlx::{query_as, query_scalar};

use super::error::from_json;
use super::tasks::{CountRow, add_count};
use crate::{Counts, FindError, SessionSummary, StoreError};

pub(super) async fn session(
    connection: &mut SqliteConnection,
    name: &SessionName,
) -> Result<Session, FindError> {
    if let Some(session) = look_up(connection, name).await? {
        return Ok(session);
    }
    let near = near(connection, name).await?;
    Err(FindError::NotFound { what: "session", text: name.to_string(), near })
}

pub(super) async fn look_up(
    connection: &mut SqliteConnection,
    name: &SessionName,
) -> Result<Option<Session>, StoreError> {
    let doc: Option<String> = query_scalar("SELECT doc FROM sessions WHERE name = ?1")
        .bind(name.as_str())
        .fetch_optional(connection)
        .await?;
    doc.map(|doc| read_session(name.as_str(), &doc)).transpose()
}

/// The name that may have been meant.
pub(super) async fn near(
    connection: &mut SqliteConnection,
    name: &SessionName,
) -> Result<Option<String>, StoreError> {
    let names: Vec<String> =
        query_scalar("SELECT name FROM sessions ORDER BY name").fetch_all(connection).await?;
    Ok(nearest(name.as_str(), names.iter().map(String::as_str)).map(str::to_owned))
}

pub(super) async fn sessions(connection: &mut SqliteConnection) -> Result<Vec<SessionSummary>, StoreError> {
    // One statement sees one moment; two could count tasks of a session that was not listed.
    let rows: Vec<(String, String, Option<String>, i64, i64, i64)> = query_as(
        "SELECT s.name, s.doc, c.status, coalesce(sum(c.total), 0), coalesce(sum(c.total * c.open), 0),
                coalesce(sum(c.total * c.done), 0)
         FROM sessions s LEFT JOIN task_counts c ON c.session = s.name AND c.total > 0
         GROUP BY s.name, c.status ORDER BY s.created_at, s.rowid",
    )
    .fetch_all(connection)
    .await?;
    let mut summaries: Vec<SessionSummary> = Vec::new();
    for (name, doc, status, total, open, done) in rows {
        if summaries.last().is_none_or(|last| last.session.name.as_str() != name) {
            let session = read_session(&name, &doc)?;
            summaries.push(SessionSummary { session, counts: Counts::default() });
        }
        if let (Some(summary), Some(status)) = (summaries.last_mut(), status) {
            add_count(&mut summary.counts, CountRow { status, total, open, done });
        }
    }
    Ok(summaries)
}

pub(super) async fn progress(
    connection: &mut SqliteConnection,
    session: &SessionName,
    last: u32,
) -> Result<Vec<ProgressEntry>, StoreError> {
    let mut rows: Vec<(i64, Option<String>, String)> =
        query_as("SELECT at, run_id, text FROM progress WHERE session = ?1 ORDER BY num DESC LIMIT ?2")
            .bind(session.as_str())
            .bind(i64::from(last))
            .fetch_all(connection)
            .await?;
    rows.reverse();
    rows.into_iter()
        .map(|(at, run, text)| {
            let run = run.map(RunId::new).transpose().map_err(|error| StoreError::Corrupt {
                what: format!("the journal of session `{session}` names a run that cannot be: {error}"),
            })?;
            Ok(ProgressEntry { at: Timestamp(at), run, text })
        })
        .collect()
}

pub(super) fn read_session(name: &str, doc: &str) -> Result<Session, StoreError> {
    from_json(&format!("session `{name}`"), doc)
}
