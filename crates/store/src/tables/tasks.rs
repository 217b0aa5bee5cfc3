//! Reading tasks.

use rehearsal_core::{SessionName, StateName, Task, TaskId, Timestamp};

use crate::json::{from_json, to_json};
use crate::link::{Link, Sql, values};
use crate::tables::lanes::{first_of_lanes, lanes};
use crate::{Counts, StatusFilter, StoreError, TaskQuery};

pub(crate) async fn task(link: &mut Link<'_>, id: &TaskId) -> Result<Option<Task>, StoreError> {
    let doc: Option<(String,)> =
        link.optional("SELECT doc FROM tasks WHERE id = $1", values![id.as_str()]).await?;
    doc.map(|(doc,)| read_task(&doc)).transpose()
}

/// A task that is about to be changed: nobody else changes it until then.
pub(crate) async fn task_to_change(link: &mut Link<'_>, id: &TaskId) -> Result<Option<Task>, StoreError> {
    const TO_CHANGE: Sql = Sql {
        sqlite: "SELECT doc FROM tasks WHERE id = $1",
        postgres: "SELECT doc FROM tasks WHERE id = $1 FOR NO KEY UPDATE",
    };
    let doc: Option<(String,)> = link.optional(TO_CHANGE, values![id.as_str()]).await?;
    doc.map(|(doc,)| read_task(&doc)).transpose()
}

pub(crate) fn read_task(doc: &str) -> Result<Task, StoreError> {
    from_json("a task", doc)
}

/// The condition is one that a (partial) index has; the rest narrows down what it yields, in its order.
macro_rules! tasks_where {
    ($condition:literal, $words:literal, $label:literal, $text:literal) => {
        concat!(
            "SELECT t.doc FROM tasks t WHERE ",
            $condition,
            " AND ($2 IS NULL OR t.standing = $2)
              AND ($3 IS NULL OR t.status IN (",
            $words,
            ") OR (t.standing IN ('ready', 'claimed') AND t.standing IN (",
            $words,
            ")))
              AND ($4 IS NULL OR t.state = $4)
              AND ($5 IS NULL OR $5 IN (",
            $label,
            "))
              AND ($6 IS NULL OR ",
            $text,
            " > 0)
              AND ($7 IS NULL OR (t.priority, t.created_at, t.num)
                   > (SELECT priority, created_at, num FROM tasks WHERE id = $7))
             ORDER BY t.priority, t.created_at, t.num LIMIT $8 + 0"
        )
    };
    (sqlite $condition:literal) => {
        tasks_where!(
            $condition,
            "SELECT value FROM json_each($3)",
            "SELECT value FROM json_each(t.doc, '$.labels')",
            "instr(lower(t.doc ->> 'title' || char(10) || (t.doc ->> 'body')), lower($6))"
        )
    };
    // PostgreSQL has no text with a NUL in it: what the document escapes is read as another control character.
    (postgres $condition:literal) => {
        tasks_where!(
            $condition,
            "SELECT json_array_elements_text($3::json)",
            "SELECT json_array_elements_text(replace(t.doc, '\\u0000', '\\u0001')::json -> 'labels')",
            "strpos(lower((replace(t.doc, '\\u0000', '\\u0001')::json ->> 'title') || chr(10)
                          || (replace(t.doc, '\\u0000', '\\u0001')::json ->> 'body') COLLATE \"C\"),
                    lower($6 COLLATE \"C\"))"
        )
    };
    ($condition:literal) => {
        Sql { sqlite: tasks_where!(sqlite $condition), postgres: tasks_where!(postgres $condition) }
    };
}

pub(crate) async fn tasks(link: &mut Link<'_>, tasks: &TaskQuery) -> Result<Vec<Task>, StoreError> {
    let open = tasks.status == StatusFilter::Open;
    let sql = match (tasks.session.is_some(), open) {
        (true, true) => tasks_where!("t.session = $1 AND t.open = 1"),
        (true, false) => tasks_where!("t.session = $1"),
        (false, true) => tasks_where!("$1 IS NULL AND t.open = 1"),
        (false, false) => tasks_where!("$1 IS NULL"),
    };
    let words = match &tasks.status {
        StatusFilter::Words(words) => Some(to_json(words)?),
        StatusFilter::All | StatusFilter::Open | StatusFilter::Ended => None,
    };
    let values = values![
        tasks.session.as_ref().map(SessionName::as_str),
        (tasks.status == StatusFilter::Ended).then_some("ended"),
        words,
        tasks.state.as_ref().map(StateName::as_str),
        tasks.label.as_deref(),
        tasks.text.as_deref(),
        tasks.after.as_ref().map(TaskId::as_str),
        limit(tasks.limit),
    ];
    let docs: Vec<(String,)> = link.all(sql, values).await?;
    docs.iter().map(|(doc,)| read_task(doc)).collect()
}

/// No limit is one that nothing reaches.
pub(crate) fn limit(limit: Option<u32>) -> i64 {
    limit.map_or(i64::MAX, i64::from)
}

/// The first of the first of all lanes. The tasks of a lane are of one session.
macro_rules! next_where {
    ($engine:ident $condition:literal) => {
        concat!(
            lanes!($engine),
            " SELECT t.doc FROM ",
            first_of_lanes!($engine),
            " WHERE ",
            $condition,
            " ORDER BY t.priority, t.created_at, t.num LIMIT 1"
        )
    };
    ($condition:literal) => {
        Sql { sqlite: next_where!(sqlite $condition), postgres: next_where!(postgres $condition) }
    };
}

pub(crate) async fn next(
    link: &mut Link<'_>,
    session: Option<&SessionName>,
    now: Timestamp,
) -> Result<Option<Task>, StoreError> {
    let sql = match session {
        Some(_) => next_where!("t.session = $2"),
        None => next_where!("$2 IS NULL"),
    };
    let doc: Option<(String,)> = link.optional(sql, values![now.0, session.map(SessionName::as_str)]).await?;
    doc.map(|(doc,)| read_task(&doc)).transpose()
}

/// SQLite keeps count; in PostgreSQL that would be a row that all writers have to wait for.
macro_rules! count_where {
    ($condition:literal) => {
        Sql {
            sqlite: concat!(
                "SELECT status, sum(total), sum(total * open), sum(total * done) FROM task_counts WHERE ",
                $condition,
                " AND total > 0 GROUP BY status"
            ),
            postgres: concat!(
                "SELECT status, count(*), count(*) FILTER (WHERE open = 1),
                        count(*) FILTER (WHERE done = 1)
                 FROM tasks WHERE ",
                $condition,
                " GROUP BY status"
            ),
        }
    };
}

pub(crate) async fn count(link: &mut Link<'_>, session: Option<&SessionName>) -> Result<Counts, StoreError> {
    let sql = match session {
        Some(_) => count_where!("session = $1"),
        None => count_where!("$1 IS NULL"),
    };
    let rows: Vec<(String, i64, i64, i64)> = link.all(sql, values![session.map(SessionName::as_str)]).await?;
    let mut counts = Counts::default();
    for (status, total, open, done) in rows {
        add_count(&mut counts, CountRow { status, total, open, done });
    }
    Ok(counts)
}

/// The tasks of one status.
pub(crate) struct CountRow {
    pub(crate) status: String,
    pub(crate) total: i64,
    pub(crate) open: i64,
    pub(crate) done: i64,
}

pub(crate) fn add_count(counts: &mut Counts, row: CountRow) {
    *counts.by_status.entry(row.status).or_default() += row.total.cast_unsigned();
    counts.total += row.total.cast_unsigned();
    counts.open += row.open.cast_unsigned();
    counts.done += row.done.cast_unsigned();
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions;
    use sqlx::sqlite::SqliteConnectOptions;

    use crate::SqliteStore;
    use crate::tables::lanes::{first_of_lanes, lanes};

    async fn plan(sql: &'static str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let _store = SqliteStore::open(directory.path()).await.unwrap();
        let file = SqliteConnectOptions::new().filename(directory.path().join("rehearsal.db"));
        let mut connection = file.connect().await.unwrap();
        let steps: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap();
        steps.into_iter().map(|(.., step)| step).collect()
    }

    #[tokio::test]
    async fn the_queue_is_read_off_its_index_lane_by_lane() {
        let steps = plan(concat!("EXPLAIN QUERY PLAN ", next_where!(sqlite "t.session = $2"))).await;
        let searches: Vec<&str> = steps
            .iter()
            .map(String::as_str)
            .filter(|step| step.contains(" tasks") || step.contains(" t "))
            .collect();
        assert_eq!(
            searches,
            [
                "SEARCH tasks USING COVERING INDEX tasks_claimable_of_lane",
                "SEARCH tasks USING COVERING INDEX tasks_claimable_of_lane (lane>?)",
                "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH tasks USING COVERING INDEX tasks_claimable_of_lane (lane=?)",
            ]
        );
    }

    #[tokio::test]
    async fn open_tasks_are_read_off_their_index_and_not_sorted() {
        let open = concat!("EXPLAIN QUERY PLAN ", tasks_where!(sqlite "t.session = $1 AND t.open = 1"));
        assert_eq!(plan(open).await[0], "SEARCH t USING INDEX tasks_open_of_session (session=?)");
        let open = concat!("EXPLAIN QUERY PLAN ", tasks_where!(sqlite "$1 IS NULL AND t.open = 1"));
        let open = plan(open).await;
        assert_eq!(open[0], "SCAN t USING INDEX tasks_open");
        assert!(!open.iter().any(|step| step.contains("ORDER BY")), "{open:?}");
    }
}
