//! Reading sessions and their journals.

use rehearsal_core::{ProgressEntry, Session, SessionName, nearest};

use super::tasks::{CountRow, add_count};
use crate::json::from_json;
use crate::link::{Link, Sql, values};
use crate::{Counts, FindError, SessionSummary, StoreError};

pub(crate) async fn session(link: &mut Link<'_>, name: &SessionName) -> Result<Session, FindError> {
    if let Some(session) = look_up(link, name).await? {
        return Ok(session);
    }
    let near = near(link, name).await?;
    Err(FindError::NotFound { what: "session", text: name.to_string(), near })
}

pub(crate) async fn look_up(link: &mut Link<'_>, name: &SessionName) -> Result<Option<Session>, StoreError> {
    let doc: Option<(String,)> =
        link.optional("SELECT doc FROM sessions WHERE name = $1", values![name.as_str()]).await?;
    doc.map(|(doc,)| read_session(name.as_str(), &doc)).transpose()
}

/// The name that may have been meant.
pub(crate) async fn near(link: &mut Link<'_>, name: &SessionName) -> Result<Option<String>, StoreError> {
    let names: Vec<(String,)> = link.all("SELECT name FROM sessions ORDER BY name", &[]).await?;
    Ok(nearest(name.as_str(), names.iter().map(|(name,)| name.as_str())).map(str::to_owned))
}

/// Each session with its tasks by status. One statement sees one moment; two could count tasks of a session that was
/// not listed.
const SUMMARIES: Sql = Sql {
    sqlite: "SELECT s.name, s.doc, c.status, coalesce(sum(c.total), 0), coalesce(sum(c.total * c.open), 0),
                    coalesce(sum(c.total * c.done), 0)
             FROM sessions s LEFT JOIN task_counts c ON c.session = s.name AND c.total > 0
             GROUP BY s.name, c.status ORDER BY s.created_at, s.num",
    postgres: "SELECT s.name, s.doc, t.status, count(t.num), count(t.num) FILTER (WHERE t.open = 1),
                      count(t.num) FILTER (WHERE t.done = 1)
               FROM sessions s LEFT JOIN tasks t ON t.session = s.name
               GROUP BY s.num, t.status ORDER BY s.created_at, s.num",
};

/// Name and document of a session; a status, and how many tasks there are of it, open and done.
type SummaryRow = (String, String, Option<String>, i64, i64, i64);

pub(crate) async fn sessions(link: &mut Link<'_>) -> Result<Vec<SessionSummary>, StoreError> {
    let rows: Vec<SummaryRow> = link.all(SUMMARIES, &[]).await?;
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

pub(crate) async fn progress(
    link: &mut Link<'_>,
    session: &SessionName,
    last: u32,
) -> Result<Vec<ProgressEntry>, StoreError> {
    let mut rows: Vec<(String,)> = link
        .all(
            "SELECT doc FROM progress WHERE session = $1 ORDER BY num DESC LIMIT $2 + 0",
            values![session.as_str(), i64::from(last)],
        )
        .await?;
    rows.reverse();
    let what = format!("the journal of session `{session}`");
    rows.iter().map(|(doc,)| from_json(&what, doc)).collect()
}

pub(crate) fn read_session(name: &str, doc: &str) -> Result<Session, StoreError> {
    from_json(&format!("session `{name}`"), doc)
}
