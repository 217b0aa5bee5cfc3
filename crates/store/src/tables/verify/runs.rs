//! Runs against their events and their columns.

use std::collections::HashMap;

use rehearsal_core::{EventKind, Run};

use super::Findings;
use crate::StoreError;
use crate::json::from_json;
use crate::link::{Link, values};
use crate::policy::PAGE;
use crate::tables::commit::EndColumns;
use crate::tables::runs::{RunRow, read_run};

pub(super) async fn check(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let rows: Vec<CheckedRow> = link
            .all(
                "SELECT num, id, task, session, fence, started_at, ended_at, cost_usd, tokens_input, tokens_cached,
                        tokens_output, turns, agent, start_doc, end_doc
                 FROM runs WHERE num > $1 ORDER BY num LIMIT $2 + 0",
                values![after, PAGE],
            )
            .await?;
        let Some(last) = rows.last() else { break };
        let upto = last.0;
        let mut logged = logged(link, after, upto, findings).await?;
        for row in rows {
            let row = CheckedRun::from(row);
            let logged = logged.remove(&row.id).unwrap_or_default();
            compare(&row, &logged, findings);
        }
        after = upto;
    }
    check_log(link, findings).await
}

/// As the statement above selects it.
type CheckedRow = (
    i64,
    String,
    String,
    Option<String>,
    i64,
    i64,
    Option<i64>,
    Option<f64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    String,
    String,
    Option<String>,
);

struct CheckedRun {
    id: String,
    /// Task, session, fence, agent, time of start.
    start: (String, Option<String>, i64, String, i64),
    end: EndColumns,
    docs: RunRow,
}

impl From<CheckedRow> for CheckedRun {
    fn from(row: CheckedRow) -> Self {
        let (_, id, task, session, fence, started_at, ended_at, cost_usd, input, cached, output, turns, ..) =
            row;
        let (.., agent, start_doc, end_doc) = row;
        Self {
            id,
            start: (task, session, fence, agent, started_at),
            end: EndColumns {
                ended_at,
                cost_usd,
                tokens_input: input,
                tokens_cached: cached,
                tokens_output: output,
                turns,
            },
            docs: (start_doc, end_doc),
        }
    }
}

/// What the log says about a run: its start and its end, each of which it has once.
type Logged = Vec<EventKind>;

async fn logged(
    link: &mut Link<'_>,
    after: i64,
    upto: i64,
    findings: &mut Findings,
) -> Result<HashMap<String, Logged>, StoreError> {
    let rows: Vec<(String, i64, String)> = link
        .all(
            "SELECT e.run_id, e.seq, e.body FROM runs r JOIN events e ON e.run_id = r.id
             WHERE r.num > $1 AND r.num <= $2 AND e.kind IN ('run_started', 'run_ended') ORDER BY e.seq",
            values![after, upto],
        )
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
        start.agent.to_string(),
        start.started_at.0,
    );
    let expected_end = run.end.as_ref().map(EndColumns::of).unwrap_or_default();
    if start.id.as_str() != id || row.start != expected || row.end != expected_end {
        findings.add(format!("run `{id}`: its columns differ from its document"));
    }
    if !matches!(logged.first(), Some(EventKind::RunStarted { .. })) {
        findings.add(format!("run `{id}` has no start in the log (I5)"));
    } else if logged != expected_log(&run) {
        findings.add(format!("run `{id}` differs from what the log says (I5)"));
    }
}

fn expected_log(run: &Run) -> Logged {
    let start = EventKind::RunStarted { run: run.start.clone() };
    let end =
        run.end.clone().map(|end| EventKind::RunEnded { run: run.start.id.clone(), end: Box::new(end) });
    [start].into_iter().chain(end).collect()
}

async fn check_log(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let strays: Vec<(i64, Option<String>)> = link
        .all(
            "SELECT seq, run_id FROM events e
             WHERE kind IN ('run_started', 'run_ended') AND NOT EXISTS (SELECT 1 FROM runs WHERE id = e.run_id)
             ORDER BY seq LIMIT $1 + 0",
            values![PAGE],
        )
        .await?;
    for (seq, run) in strays {
        findings
            .add(format!("event {seq} is about a run `{}` that is not there (I1)", run.unwrap_or_default()));
    }
    Ok(())
}
