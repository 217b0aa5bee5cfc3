//! Tasks against their events, their columns and their dependencies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rehearsal_core::transition::{TaskInput, transition};
use rehearsal_core::{EventKind, Standing, Task, Timestamp};

use super::Findings;
use crate::StoreError;
use crate::columns::TaskColumns;
use crate::json::from_json;
use crate::link::{Link, values};
use crate::policy::PAGE;
use crate::tables::flows::FlowCache;
use crate::tables::tasks::read_task;

pub(super) async fn check(
    link: &mut Link<'_>,
    flows: &FlowCache,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut after = String::new();
    loop {
        let rows: Vec<CheckedRow> = link
            .all(
                "SELECT id, session, flow_version, priority, state, status, standing, open, done, claimable_at,
                        lane, touches, created_at, updated_at, fence, doc
                 FROM tasks WHERE id > $1 ORDER BY id LIMIT $2 + 0",
                values![&after, PAGE],
            )
            .await?;
        let rows: Vec<TaskRow> = rows.into_iter().map(TaskRow::from).collect();
        // After the last row there must be no events either.
        let upto = rows.last().map_or_else(|| char::MAX.to_string(), |last| last.columns.id.clone());
        let is_end = rows.is_empty();
        let range = Range { after: &after, upto: &upto };
        let folded = fold(link, flows, range, findings).await?;
        let edges = dependencies(link, range).await?;
        compare(rows, folded, &edges, findings);
        if is_end {
            break;
        }
        after = upto;
    }
    check_counters(link, findings).await
}

/// Ids after one and up to another.
#[derive(Clone, Copy)]
struct Range<'a> {
    after: &'a str,
    upto: &'a str,
}

struct TaskRow {
    columns: TaskColumns,
    doc: String,
}

/// As the statement above selects it.
type CheckedRow = (
    String,
    Option<String>,
    String,
    i64,
    String,
    String,
    String,
    i64,
    i64,
    Option<i64>,
    String,
    Option<String>,
    i64,
    i64,
    i64,
    String,
);

impl From<CheckedRow> for TaskRow {
    fn from(row: CheckedRow) -> Self {
        let (id, session, flow_version, priority, state, status, standing, open, done, claimable_at, ..) =
            row;
        let (.., lane, touches, created_at, updated_at, fence, doc) = row;
        let columns = TaskColumns {
            id,
            session,
            flow_version,
            priority,
            state,
            status,
            standing,
            open,
            done,
            claimable_at,
            lane,
            touches,
            created_at,
            updated_at,
            fence,
        };
        Self { columns, doc }
    }
}

type Edges = HashMap<String, BTreeSet<String>>;

async fn dependencies(link: &mut Link<'_>, range: Range<'_>) -> Result<Edges, StoreError> {
    let rows: Vec<(String, String)> = link
        .all(
            "SELECT task, depends_on FROM task_deps WHERE task > $1 AND task <= $2",
            values![range.after, range.upto],
        )
        .await?;
    let mut edges = Edges::new();
    for (task, depends_on) in rows {
        edges.entry(task).or_default().insert(depends_on);
    }
    Ok(edges)
}

fn compare(rows: Vec<TaskRow>, mut folded: BTreeMap<String, Fold>, edges: &Edges, findings: &mut Findings) {
    for TaskRow { columns, doc } in rows {
        let id = &columns.id;
        let folded = folded.remove(id);
        let Some(task) = findings.readable(read_task(&doc)) else {
            continue;
        };
        if TaskColumns::of(&task) != columns {
            findings.add(format!("task `{id}`: its columns differ from its document"));
        }
        let named: BTreeSet<String> = task.depends_on.iter().map(ToString::to_string).collect();
        if named != edges.get(id).cloned().unwrap_or_default() {
            findings.add(format!("task `{id}`: its dependencies differ from its document"));
        }
        match folded {
            None => findings.add(format!("task `{id}` is not in the log (I1)")),
            Some(Fold::To(folded)) if *folded != task => {
                findings.add(format!("task `{id}` differs from what the log says (I5)"));
            }
            Some(Fold::To(_) | Fold::Broken) => {}
        }
    }
    for id in folded.keys() {
        findings.add(format!("the log has a task `{id}` that is not there (I1)"));
    }
}

/// How far the events of a task lead.
enum Fold {
    To(Box<Task>),
    /// To a finding that was told already.
    Broken,
}

/// `task_id, seq, at, body`.
type TaskEventRow = (String, i64, i64, String);

async fn fold(
    link: &mut Link<'_>,
    flows: &FlowCache,
    range: Range<'_>,
    findings: &mut Findings,
) -> Result<BTreeMap<String, Fold>, StoreError> {
    let mut folded = BTreeMap::new();
    let mut after = (range.after.to_owned(), i64::MAX);
    loop {
        let rows: Vec<TaskEventRow> = link
            .all(
                "SELECT task_id, seq, at, body FROM events
                 WHERE task_id <= $1 AND (task_id, seq) > ($2, $3) AND kind IN ('task_added', 'task_changed')
                 ORDER BY task_id, seq LIMIT $4 + 0",
                values![range.upto, &after.0, after.1, PAGE],
            )
            .await?;
        let Some(last) = rows.last() else {
            return Ok(folded);
        };
        after = (last.0.clone(), last.1);
        for row in rows {
            let id = row.0.clone();
            let before = folded.remove(&id);
            let step = fold_event(link, flows, before, row).await?;
            let fold = step.unwrap_or_else(|finding| {
                findings.add(finding);
                Fold::Broken
            });
            folded.insert(id, fold);
        }
    }
}

/// One event further; what does not fit comes back in words.
async fn fold_event(
    link: &mut Link<'_>,
    flows: &FlowCache,
    before: Option<Fold>,
    (id, seq, at, body): TaskEventRow,
) -> Result<Result<Fold, String>, StoreError> {
    let kind: EventKind = match from_json(&format!("event {seq}"), &body) {
        Ok(kind) => kind,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let task = match (before, kind) {
        (Some(Fold::Broken), _) => return Ok(Ok(Fold::Broken)),
        (None, EventKind::TaskAdded { task }) if task.id.as_str() == id => {
            return Ok(Ok(Fold::To(task)));
        }
        (Some(Fold::To(before)), EventKind::TaskChanged { task, input, from, to }) if task == before.id => {
            let flow = match flows.get(link, &before.flow_version).await {
                Ok(flow) => flow,
                Err(StoreError::Corrupt { what }) => return Ok(Err(what)),
                Err(error) => return Err(error),
            };
            match transition(&before, &input, &flow, Timestamp(at)) {
                Ok(after) if before.state == from && after.state == to => {
                    match broken(&before, &input, &after) {
                        None => after,
                        Some(law) => return Ok(Err(format!("event {seq} of task `{id}` {law}"))),
                    }
                }
                Ok(_) => {
                    return Ok(Err(format!("event {seq} leads task `{id}` elsewhere than it says (I5)")));
                }
                Err(refusal) => {
                    return Ok(Err(format!("event {seq} of task `{id}` cannot have been: {refusal} (I5)")));
                }
            }
        }
        (None | Some(Fold::To(_)), _) => {
            return Ok(Err(format!("event {seq} does not fit what came before it for task `{id}` (I5)")));
        }
    };
    Ok(Ok(Fold::To(Box::new(task))))
}

/// What no change may do, whatever the rules of tasks say.
fn broken(before: &Task, input: &TaskInput, after: &Task) -> Option<&'static str> {
    let is_ended = |task: &Task| matches!(task.standing, Standing::Ended { .. });
    let claim = |task: &Task| match &task.standing {
        Standing::Claimed(claim) => Some((claim.run.clone(), claim.worker.clone())),
        _ => None,
    };
    // The one way in which a claim comes to another process under its fence.
    let is_adopted = matches!(input, TaskInput::Adopt { .. });
    if is_ended(before) && !is_ended(after) && !matches!(input, TaskInput::Retry) {
        return Some("leads out of its end (I4)");
    }
    let changed_hands = claim(before) != claim(after) && !is_adopted;
    if after.fence < before.fence || (changed_hands && after.fence == before.fence) {
        return Some("changes its claim without a higher fence (I2)");
    }
    None
}

async fn check_counters(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let ids: Vec<(String,)> = link
        .all(
            "SELECT id FROM tasks
             WHERE open_deps <> (SELECT count(*) FROM task_deps d JOIN tasks t ON t.id = d.depends_on
                                 WHERE d.task = tasks.id AND t.done = 0)
             ORDER BY id LIMIT $1 + 0",
            values![PAGE],
        )
        .await?;
    for (id,) in ids {
        findings.add(format!("task `{id}`: its open dependencies are miscounted"));
    }
    Ok(())
}
