//! Runs against their events and their columns.

use std::collections::HashMap;

use rehearsal_core::{EventKind, Run};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{FromRow, Row, query_as};

use super::Findings;
use crate::StoreError;
use crate::policy::PAGE;
use crate::sqlite::commit::EndColumns;
use crate::sqlite::error::from_json;
use crate::sqlite::runs::{RunRow, read_run};

pub(super) async fn check(
    connection: &mut SqliteConnection,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let rows: Vec<CheckedRun> = query_as("SELECT * FROM runs WHERE num > ?1 ORDER BY num LIMIT ?2")
            .bind(after)
            .bind(PAGE)
            .fetch_all(&mut *connection)
            .await?;
        let Some(last) = rows.last() else { break };
        let upto = last.num;
        let mut logged = logged(connection, after, upto, findings).await?;
        for row in rows {
            let logged = logged.remove(&row.id).unwrap_or_default();
            compare(&row, &logged, findings);
        }
        after = upto;
    }
    check_log(connection, findings).await
}

struct CheckedRun {
    num: i64,
    id: String,
    start: (String, Option<String>, i64, i64),
    end: EndColumns,
    docs: RunRow,
}

impl FromRow<'_, SqliteRow> for CheckedRun {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            num: row.try_get("num")?,
            id: row.try_get("id")?,
            start: (
                row.try_get("task")?,
                row.try_get("session")?,
                row.try_get("fence")?,
                row.try_get("started_at")?,
            ),
            end: EndColumns {
                ended_at: row.try_get("ended_at")?,
                cost_usd: row.try_get("cost_usd")?,
                tokens_input: row.try_get("tokens_input")?,
                tokens_cached: row.try_get("tokens_cached")?,
                tokens_output: row.try_get("tokens_output")?,
                turns: row.try_get("turns")?,
            },
            docs: (row.try_get("start_doc")?, row.try_get("end_doc")?),
        })
    }
}

/// What the log says about a run: its start and its end, each of which it has once.
type Logged = Vec<EventKind>;

async fn logged(
    connection: &mut SqliteConnection,
    after: i64,
    upto: i64,
    findings: &mut Findings,
) -> Result<HashMap<String, Logged>, StoreError> {
    let rows: Vec<(String, i64, String)> = query_as(
        "SELECT e.run_id, e.seq, e.body FROM runs r JOIN events e ON e.run_id = r.id
         WHERE r.num > ?1 AND r.num <= ?2 AND e.kind IN ('run_started', 'run_ended') ORDER BY e.seq",
    )
    .bind(after)
    .bind(upto)
    .fetch_all(connection)
    .await?;
    let mut logged: HashMap<String, Logged> = HashMap::new();
    for (id, seq, body) in rows {
        if let Some(kind) = findings.readable(from_json(&format!("event {seq}"), &body)) {
            logged.entry(id).or_default().push(kind);
        }
    }
    Ok(logged)
}

fn compare(row: &CheckedRun, logged: &[EventKind], findings: &mut Findings) {
    let id = &row.id;
    let Some(run) = findings.readable(read_run(&row.docs)) else {
        return;
    };
    let start = &run.start;
    let expected = (
        start.task.to_string(),
        start.session.as_ref().map(ToString::to_string),
        start.fence.0,
        start.started_at.0,
    );
    let expected_end = run.end.as_ref().map(EndColumns::of).unwrap_or_default();
    if start.id.as_str() != id || row.start != expected || row.end != expected_end {
        findings.add(format!("run `{id}`: its columns differ from its document"));
    }
    if !matches!(logged.first(), Some(EventKind::RunStarted { .. })) {
        findings.add(format!("run `{id}` has no start in the log"));
    } else if logged != expected_log(&run) {
        findings.add(format!("run `{id}` differs from what the log says"));
    }
}

fn expected_log(run: &Run) -> Logged {
    let start = EventKind::RunStarted { run: run.start.clone() };
    let end =
        run.end.clone().map(|end| EventKind::RunEnded { run: run.start.id.clone(), end: Box::new(end) });
    [start].into_iter().chain(end).collect()
}

async fn check_log(connection: &mut SqliteConnection, findings: &mut Findings) -> Result<(), StoreError> {
    let strays: Vec<(i64, Option<String>)> = query_as(
        "SELECT seq, run_id FROM events e
         WHERE kind IN ('run_started', 'run_ended') AND NOT EXISTS (SELECT 1 FROM runs WHERE id = e.run_id)
         ORDER BY seq LIMIT ?1",
    )
    .bind(PAGE)
    .fetch_all(connection)
    .await?;
    for (seq, run) in strays {
        findings.add(format!("event {seq} is about a run `{}` that is not there", run.unwrap_or_default()));
    }
    Ok(())
}
