//! Reading tasks.

use rehearsal_core::{SessionName, StateName, Task, TaskId, Timestamp};
use sqlx::sqlite::SqliteConnection;
use sqlx::{query_as, query_scalar};

use super::error::{from_json, to_json};
use crate::{Counts, StatusFilter, StoreError, TaskQuery};

pub(super) async fn task(connection: &mut SqliteConnection, id: &TaskId) -> Result<Option<Task>, StoreError> {
    let doc: Option<String> = query_scalar("SELECT doc FROM tasks WHERE id = ?1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    doc.map(|doc| read_task(&doc)).transpose()
}

pub(super) fn read_task(doc: &str) -> Result<Task, StoreError> {
    from_json("a task", doc)
}

/// The condition is one that a (partial) index has; the rest narrows down what it yields, in its order.
macro_rules! tasks_where {
    ($condition:literal) => {
        concat!(
            "SELECT t.doc FROM tasks t WHERE ",
            $condition,
            " AND (?2 IS NULL OR t.standing = ?2)
              AND (?3 IS NULL OR t.status IN (SELECT value FROM json_each(?3))
                   OR (t.standing IN ('ready', 'claimed') AND t.standing IN (SELECT value FROM json_each(?3))))
              AND (?4 IS NULL OR t.state = ?4)
              AND (?5 IS NULL OR EXISTS (SELECT 1 FROM json_each(t.doc, '$.labels') WHERE value = ?5))
              AND (?6 IS NULL OR instr(lower(t.doc ->> 'title' || char(10) || (t.doc ->> 'body')), lower(?6)))
              AND (?7 IS NULL OR (t.priority, t.created_at, t.num)
                   > (SELECT priority, created_at, num FROM tasks WHERE id = ?7))
             ORDER BY t.priority, t.created_at, t.num LIMIT ?8"
        )
    };
}

pub(super) async fn tasks(
    connection: &mut SqliteConnection,
    tasks: &TaskQuery,
) -> Result<Vec<Task>, StoreError> {
    let open = tasks.status == StatusFilter::Open;
    let sql = match (tasks.session.is_some(), open) {
        (true, true) => tasks_where!("t.session = ?1 AND t.standing <> 'ended'"),
        (true, false) => tasks_where!("t.session = ?1"),
        (false, true) => tasks_where!("?1 IS NULL AND t.standing <> 'ended'"),
        (false, false) => tasks_where!("?1 IS NULL"),
    };
    let words = match &tasks.status {
        StatusFilter::Words(words) => Some(to_json(words)?),
        StatusFilter::All | StatusFilter::Open | StatusFilter::Ended => None,
    };
    let docs: Vec<String> = query_scalar(sql)
        .bind(tasks.session.as_ref().map(SessionName::as_str))
        .bind((tasks.status == StatusFilter::Ended).then_some("ended"))
        .bind(words)
        .bind(tasks.state.as_ref().map(StateName::as_str))
        .bind(tasks.label.as_deref())
        .bind(tasks.text.as_deref())
        .bind(tasks.after.as_ref().map(TaskId::as_str))
        .bind(limit(tasks.limit))
        .fetch_all(connection)
        .await?;
    docs.iter().map(|doc| read_task(doc)).collect()
}

/// SQLite takes a negative limit for none.
pub(super) fn limit(limit: Option<u32>) -> i64 {
    limit.map_or(-1, i64::from)
}

/// The two first conditions are those of the partial index, word for word, or it is not used.
macro_rules! next_task_where {
    ($condition:literal) => {
        concat!(
            "SELECT doc FROM tasks WHERE claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= ?1 AND ",
            $condition,
            " ORDER BY priority, created_at, num LIMIT 1"
        )
    };
}

pub(super) async fn next(
    connection: &mut SqliteConnection,
    session: Option<&SessionName>,
    now: Timestamp,
) -> Result<Option<Task>, StoreError> {
    let sql = match session {
        Some(_) => next_task_where!("session = ?2"),
        None => next_task_where!("?2 IS NULL"),
    };
    let doc: Option<String> = query_scalar(sql)
        .bind(now.0)
        .bind(session.map(SessionName::as_str))
        .fetch_optional(connection)
        .await?;
    doc.map(|doc| read_task(&doc)).transpose()
}

macro_rules! count_where {
    ($condition:literal) => {
        concat!(
            "SELECT status, sum(total), sum(total * open), sum(total * done) FROM task_counts WHERE ",
            $condition,
            " AND total > 0 GROUP BY status"
        )
    };
}

pub(super) async fn count(
    connection: &mut SqliteConnection,
    session: Option<&SessionName>,
) -> Result<Counts, StoreError> {
    let sql = match session {
        Some(_) => count_where!("session = ?1"),
        None => count_where!("?1 IS NULL"),
    };
    let rows: Vec<(String, i64, i64, i64)> =
        query_as(sql).bind(session.map(SessionName::as_str)).fetch_all(connection).await?;
    let mut counts = Counts::default();
    for (status, total, open, done) in rows {
        add_count(&mut counts, CountRow { status, total, open, done });
    }
    Ok(counts)
}

/// The tasks of one status.
pub(super) struct CountRow {
    pub(super) status: String,
    pub(super) total: i64,
    pub(super) open: i64,
    pub(super) done: i64,
}

pub(super) fn add_count(counts: &mut Counts, row: CountRow) {
    *counts.by_status.entry(row.status).or_default() += row.total.cast_unsigned();
    counts.total += row.total.cast_unsigned();
    counts.open += row.open.cast_unsigned();
    counts.done += row.done.cast_unsigned();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;

    async fn plan(sql: &'static str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(directory.path()).await.unwrap();
        let mut reader = store.database.reader().await.unwrap();
        let steps: Vec<(i64, i64, i64, String)> = query_as(sql).fetch_all(&mut *reader).await.unwrap();
        steps.into_iter().map(|(.., step)| step).collect()
    }

    #[tokio::test]
    async fn the_queue_is_read_off_its_index_and_not_sorted() {
        let of_session = plan(concat!("EXPLAIN QUERY PLAN ", next_task_where!("session = ?2"))).await;
        assert_eq!(of_session, ["SEARCH tasks USING INDEX tasks_claimable_of_session (session=?)"]);
        let of_all = plan(concat!("EXPLAIN QUERY PLAN ", next_task_where!("?2 IS NULL"))).await;
        assert_eq!(of_all, ["SCAN tasks USING INDEX tasks_claimable"]);
    }

    #[tokio::test]
    async fn open_tasks_are_read_off_their_index_and_not_sorted() {
        let open = concat!("EXPLAIN QUERY PLAN ", tasks_where!("t.session = ?1 AND t.standing <> 'ended'"));
        assert_eq!(plan(open).await[0], "SEARCH t USING INDEX tasks_open_of_session (session=?)");
        let open = concat!("EXPLAIN QUERY PLAN ", tasks_where!("?1 IS NULL AND t.standing <> 'ended'"));
        let open = plan(open).await;
        assert_eq!(open[0], "SCAN t USING INDEX tasks_open");
        assert!(!open.iter().any(|step| step.contains("ORDER BY")), "{open:?}");
    }
}
