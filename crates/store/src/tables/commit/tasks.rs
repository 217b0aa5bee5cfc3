//! Writing tasks.

use std::collections::{HashMap, HashSet};

use rehearsal_core::flow::Flow;
use rehearsal_core::transition::{TaskInput, transition};
use rehearsal_core::{EventKind, NewTask, RunId, Standing, Task, TaskId, Timestamp};
use serde::Serialize;

use super::{Writing, insert_event};
use crate::columns::TaskColumns;
use crate::json::to_json;
use crate::link::{Link, Sql, Value, Write, values};
use crate::policy::CHUNK;
use crate::tables::log::{About, run_of};
use crate::tables::{flows, tasks};
use crate::{ClaimRequest, CommitError, StoreError, check, cycle};

/// A row on its way into a statement: what to search by, and the document, as text within the text.
#[derive(Serialize)]
struct NewRow {
    #[serde(flatten)]
    columns: TaskColumns,
    doc: String,
}

impl NewRow {
    fn of(task: &Task) -> Result<Self, StoreError> {
        Ok(Self { columns: TaskColumns::of(task), doc: to_json(task)? })
    }
}

/// A change that is made if a task is as it is believed to be.
pub(crate) struct AtOnce {
    /// The task as it will be.
    pub(crate) after: Task,
    /// The document as it is believed to be, and as it will be.
    pub(crate) was: String,
    pub(crate) is: String,
    sql: &'static str,
    values: Vec<Value<'static>>,
}

impl AtOnce {
    /// Changes it, if it is as it was believed to be.
    pub(crate) async fn make(&self, link: &mut Link<'_>) -> Result<bool, StoreError> {
        Ok(link.execute(self.sql, &self.values).await? == 1)
    }
}

fn changed(before: &Task, after: &Task, input: TaskInput) -> EventKind {
    let (from, to) = (before.state.clone(), after.state.clone());
    EventKind::TaskChanged { task: after.id.clone(), input, from, to }
}

impl<'a> Writing<'a> {
    pub(super) async fn add_tasks(
        &mut self,
        new: Vec<(TaskId, NewTask)>,
        flow: &Flow,
    ) -> Result<Vec<Task>, CommitError> {
        for (id, task) in &new {
            check::new_task(id, task, self.index)?;
        }
        self.check_ids(&new).await?;
        let mut known = HashSet::new();
        for session in new.iter().filter_map(|(_, task)| task.session.as_ref()) {
            if known.insert(session) {
                self.known_session(session).await?;
            }
        }
        let dependencies = new.iter().map(|(id, task)| (id, task.depends_on.as_slice()));
        let own: HashSet<&TaskId> = new.iter().map(|(id, _)| id).collect();
        self.check_known(dependencies, &own).await?;
        check_batch_for_cycles(&new)?;
        flows::pin(&mut self.link, flow).await?;
        let tasks: Vec<Task> = new.into_iter().map(|(id, task)| Task::new(task, id, flow, self.at)).collect();
        for chunk in tasks.chunks(CHUNK) {
            self.insert(chunk).await?;
        }
        // Only now are all there that others depend on.
        for chunk in tasks.chunks(CHUNK) {
            self.insert_dependencies(chunk).await?;
        }
        Ok(tasks)
    }

    async fn insert(&mut self, tasks: &[Task]) -> Result<(), StoreError> {
        let rows: Vec<NewRow> = tasks.iter().map(NewRow::of).collect::<Result<_, _>>()?;
        let rows = to_json(&rows)?;
        self.link.execute(INSERT_TASKS, values![&rows]).await?;
        let run = run_of(self.actor).map(RunId::as_str);
        let values = values![&rows, self.at.0, to_json(self.actor)?, run];
        self.link.execute(INSERT_ADDED, values).await?;
        if let Some(task) = tasks.last() {
            let about = About { task: Some(&task.id), session: task.session.as_ref(), run: None };
            self.leaves(about, ADDED);
        }
        Ok(())
    }

    /// Writes the edges of tasks that have none yet, and counts those that are open.
    async fn insert_dependencies(&mut self, tasks: &[Task]) -> Result<(), StoreError> {
        const INSERT: Sql = Sql {
            sqlite: "INSERT INTO task_deps (task, depends_on)
                     SELECT DISTINCT value ->> 0, value ->> 1 FROM json_each($1)",
            postgres: "INSERT INTO task_deps (task, depends_on)
                       SELECT DISTINCT edge ->> 0, edge ->> 1 FROM json_array_elements($1::json) AS edge",
        };
        let edges: Vec<(&TaskId, &TaskId)> =
            tasks.iter().flat_map(|task| task.depends_on.iter().map(|id| (&task.id, id))).collect();
        if edges.is_empty() {
            return Ok(());
        }
        self.link.execute(INSERT, values![to_json(&edges)?]).await?;
        let ids: Vec<&TaskId> =
            tasks.iter().filter(|task| !task.depends_on.is_empty()).map(|task| &task.id).collect();
        self.count_open_dependencies(&ids).await
    }

    async fn count_open_dependencies(&mut self, ids: &[&TaskId]) -> Result<(), StoreError> {
        macro_rules! count_open {
            ($ids:literal) => {
                concat!(
                    "UPDATE tasks SET open_deps =
                         (SELECT count(*) FROM task_deps d JOIN tasks t ON t.id = d.depends_on
                          WHERE d.task = tasks.id AND t.done = 0)
                     WHERE id IN (",
                    $ids,
                    ")"
                )
            };
        }
        const COUNT: Sql = Sql {
            sqlite: count_open!("SELECT value FROM json_each($1)"),
            postgres: count_open!("SELECT json_array_elements_text($1::json)"),
        };
        self.link.execute(COUNT, values![to_json(&ids)?]).await?;
        Ok(())
    }

    pub(super) async fn change_task(&mut self, id: TaskId, input: TaskInput) -> Result<Task, CommitError> {
        check::task_input(&input)?;
        let Some(before) = tasks::task_to_change(&mut self.link, &id).await? else {
            return Err(CommitError::UnknownTask { id });
        };
        self.change(before, input, None).await
    }

    /// How a task that is believed to be like this is changed by one statement. Nothing if that takes more, or is refused:
    /// the belief may be wrong.
    pub(crate) async fn plan_change(
        &mut self,
        believed: &Task,
        input: &TaskInput,
    ) -> Result<Option<Box<AtOnce>>, StoreError> {
        if check::task_input(input).is_err() {
            return Ok(None);
        }
        let was = to_json(believed)?;
        self.plan(UPDATE_AND_APPEND_IF_SAME, believed, was, input, None, &[]).await
    }

    /// The same for a claim of a task that was read before, with the conditions of `sql`. Their values come after those of the
    /// task and its event, and the document as it was: from `$24` on.
    pub(super) async fn plan_claim(
        &mut self,
        sql: &'static str,
        task: &Task,
        was: String,
        request: &ClaimRequest,
        values: &[Value<'_>],
    ) -> Result<Option<Box<AtOnce>>, StoreError> {
        let input = TaskInput::Claim { worker: request.worker.clone(), run: request.run.clone() };
        let lease_until = self.at.plus(request.lease);
        self.plan(sql, task, was, &input, Some(lease_until), values).await
    }

    async fn plan(
        &mut self,
        sql: &'static str,
        believed: &Task,
        was: String,
        input: &TaskInput,
        lease_until: Option<Timestamp>,
        more: &[Value<'_>],
    ) -> Result<Option<Box<AtOnce>>, StoreError> {
        let flow = self.flows.get(&mut self.link, &believed.flow_version).await?;
        let Ok(after) = transition(believed, input, &flow, self.at) else { return Ok(None) };
        if after.depends_on != believed.depends_on {
            return Ok(None);
        }
        let is = to_json(&after)?;
        let kind = changed(believed, &after, input.clone());
        let mut values = self.row(believed, &after, &is, lease_until, &kind)?;
        values.push(was.as_str().into());
        values.extend_from_slice(more);
        let values = values.into_iter().map(Value::into_owned).collect();
        Ok(Some(Box::new(AtOnce { after, was, is, sql, values })))
    }

    /// The document of a task that nobody else changes until the end of the transaction.
    pub(crate) async fn doc_to_change(&mut self, id: &TaskId) -> Result<Option<String>, StoreError> {
        tasks::doc_to_change(&mut self.link, id).await
    }

    /// Moves a task that was read in this transaction, and that nobody else can move meanwhile. A claim that begins
    /// may have a lease.
    pub(super) async fn change(
        &mut self,
        before: Task,
        input: TaskInput,
        lease_until: Option<Timestamp>,
    ) -> Result<Task, CommitError> {
        let flow = self.flows.get(&mut self.link, &before.flow_version).await?;
        let after = transition(&before, &input, &flow, self.at)
            .map_err(|refusal| CommitError::Refused { index: self.index, refusal })?;
        let is_rewired = after.depends_on != before.depends_on;
        if is_rewired {
            self.check_new_dependencies(&after).await?;
        }
        let kind = changed(&before, &after, input);
        let lease_until = lease_until.filter(|_| matches!(after.standing, Standing::Claimed(_)));
        self.update(&before, &after, lease_until, &kind).await?;
        if is_rewired {
            self.replace_dependencies(&after).await?;
        }
        Ok(after)
    }

    /// Writes a task and its event. The fence that the task was read with is checked by the very statement that writes.
    async fn update(
        &mut self,
        before: &Task,
        task: &Task,
        lease_until: Option<Timestamp>,
        kind: &EventKind,
    ) -> Result<(), StoreError> {
        let doc = to_json(task)?;
        let values = self.row(before, task, &doc, lease_until, kind)?;
        let sql = update_of(&TaskColumns::of(before), &TaskColumns::of(task));
        let sql = Write { sqlite: [sql, APPEND_IF_CHANGED], postgres: UPDATE_AND_APPEND };
        self.link.later(sql, values).await?;
        self.leaves(event_of(before, task), kind.name());
        Ok(())
    }

    /// The parameters of the statements that write a task and its event, `$1` to `$22`.
    fn row<'v>(
        &self,
        before: &'v Task,
        task: &'v Task,
        doc: &'v str,
        lease_until: Option<Timestamp>,
        kind: &EventKind,
    ) -> Result<Vec<Value<'v>>, StoreError>
    where
        'a: 'v,
    {
        let mut values: Vec<Value<'v>> = self.event(event_of(before, task), kind)?.into();
        let new = TaskColumns::of(task);
        values.extend_from_slice(values![
            task.id.as_str(),
            before.fence.0,
            new.state,
            new.lane,
            new.status,
            new.standing,
            new.claimable_at,
            new.updated_at,
            new.fence,
            doc,
            lease_until.map(|until| until.0),
            new.open,
            new.done,
            new.touches,
            new.priority,
        ]);
        Ok(values)
    }

    async fn replace_dependencies(&mut self, task: &Task) -> Result<(), StoreError> {
        self.link.execute("DELETE FROM task_deps WHERE task = $1", values![task.id.as_str()]).await?;
        self.insert_dependencies(std::slice::from_ref(task)).await?;
        self.count_open_dependencies(&[&task.id]).await
    }

    async fn check_ids(&mut self, new: &[(TaskId, NewTask)]) -> Result<(), CommitError> {
        const TAKEN: Sql = Sql {
            sqlite: "SELECT value FROM json_each($1) WHERE value IN (SELECT id FROM tasks) ORDER BY key LIMIT 1",
            postgres:
                "SELECT id.value FROM json_array_elements_text($1::json) WITH ORDINALITY AS id (value, place)
                       WHERE EXISTS (SELECT FROM tasks WHERE tasks.id = id.value) ORDER BY place LIMIT 1",
        };
        let mut seen = HashSet::with_capacity(new.len());
        if let Some((twice, _)) = new.iter().find(|(id, _)| !seen.insert(id)) {
            return Err(CommitError::IdTaken { id: twice.to_string() });
        }
        for chunk in new.chunks(CHUNK) {
            let ids: Vec<&TaskId> = chunk.iter().map(|(id, _)| id).collect();
            if let Some((id,)) = self.link.optional(TAKEN, values![to_json(&ids)?]).await? {
                return Err(CommitError::IdTaken { id });
            }
        }
        Ok(())
    }

    /// Refuses dependencies that are neither in the store nor among `own`. Those that are there stay as they are until
    /// the end of the transaction: one that is done meanwhile could not know that it is waited for.
    async fn check_known<'t>(
        &mut self,
        dependencies: impl Iterator<Item = (&'t TaskId, &'t [TaskId])>,
        own: &HashSet<&TaskId>,
    ) -> Result<(), CommitError> {
        const LOCK: &str =
            "SELECT FROM tasks WHERE id IN (SELECT edge ->> 1 FROM json_array_elements($1::json) AS edge)
                            ORDER BY id FOR SHARE";
        const UNKNOWN: Sql = Sql {
            sqlite: "SELECT key FROM json_each($1) AS edge
                     WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE id = edge.value ->> 1) ORDER BY key LIMIT 1",
            postgres:
                "SELECT place - 1 FROM json_array_elements($1::json) WITH ORDINALITY AS edge (ends, place)
                       WHERE NOT EXISTS (SELECT FROM tasks WHERE id = ends ->> 1) ORDER BY place LIMIT 1",
        };
        let outside: Vec<(&TaskId, &TaskId)> = dependencies
            .flat_map(|(task, ids)| ids.iter().map(move |id| (task, id)))
            .filter(|(_, id)| !own.contains(id))
            .collect();
        for chunk in outside.chunks(CHUNK) {
            let edges = to_json(&chunk)?;
            self.link.on_postgres(LOCK, values![&edges]).await?;
            let unknown: Option<(i64,)> = self.link.optional(UNKNOWN, values![&edges]).await?;
            let edge = unknown.and_then(|(key,)| usize::try_from(key).ok()).and_then(|key| chunk.get(key));
            if let Some((task, depends_on)) = edge {
                let (task, depends_on) = ((*task).clone(), (*depends_on).clone());
                return Err(CommitError::UnknownDependency { task, depends_on });
            }
        }
        Ok(())
    }

    /// Follows the new dependencies as far as they go; none may lead back to the task. Two that rewire tasks at once
    /// would each not see what the other does: one waits.
    async fn check_new_dependencies(&mut self, task: &Task) -> Result<(), CommitError> {
        macro_rules! way {
            ($ids:literal) => {
                concat!(
                    "WITH RECURSIVE way (source, target) AS (
                         SELECT ",
                    $ids,
                    " UNION
                         SELECT d.task, d.depends_on FROM way JOIN task_deps d ON d.task = way.target
                         WHERE way.target <> $1
                     )
                     SELECT source, target FROM way WHERE EXISTS (SELECT 1 FROM way WHERE target = $1)"
                )
            };
        }
        const WAY: Sql = Sql {
            sqlite: way!("$1, value FROM json_each($2)"),
            postgres: way!("$1 COLLATE \"C\", json_array_elements_text($2::json) COLLATE \"C\""),
        };
        self.link.on_postgres("SELECT pg_advisory_xact_lock($1)", values![REWIRING]).await?;
        let dependencies = [(&task.id, task.depends_on.as_slice())];
        self.check_known(dependencies.into_iter(), &HashSet::new()).await?;
        let values = values![task.id.as_str(), to_json(&task.depends_on)?];
        let edges: Vec<(String, String)> = self.link.all(WAY, values).await?;
        let mut graph: HashMap<&str, Vec<&str>> = HashMap::new();
        for (source, target) in &edges {
            graph.entry(source).or_default().push(target);
        }
        refuse_cycle(cycle::find(&graph, &[task.id.as_str()]))
    }
}

/// The lock in PostgreSQL for changes of who waits for whom: `rewire` in letters.
const REWIRING: i64 = 0x7265_7769_7265;

/// `jsonb_each` and not `json_each`, which would write each row out as text to be parsed for each column.
const INSERT_TASKS: Sql = Sql {
    sqlite: "INSERT INTO tasks (id, session, flow_version, priority, state, status, standing, open, done,
                                claimable_at, lane, touches, created_at, updated_at, fence, doc)
             SELECT value ->> '$.id', value ->> '$.session', value ->> '$.flow_version', value ->> '$.priority',
                    value ->> '$.state', value ->> '$.status', value ->> '$.standing', value ->> '$.open',
                    value ->> '$.done', value ->> '$.claimable_at', value ->> '$.lane', value ->> '$.touches',
                    value ->> '$.created_at', value ->> '$.updated_at', value ->> '$.fence', value ->> '$.doc'
             FROM jsonb_each($1) ORDER BY key",
    postgres: "INSERT INTO tasks (id, session, flow_version, priority, state, status, standing, open, done,
                                  claimable_at, lane, touches, created_at, updated_at, fence, doc)
               SELECT id, session, flow_version, priority, state, status, standing, open, done,
                      claimable_at, lane, touches, created_at, updated_at, fence, doc
               FROM json_to_recordset($1::json)
                 AS new (id text, session text, flow_version text, priority bigint, state text, status text,
                         standing text, open bigint, done bigint, claimable_at bigint, lane text, touches text,
                         created_at bigint, updated_at bigint, fence bigint, doc text)",
};

/// The name of `EventKind::TaskAdded`.
const ADDED: &str = "task_added";

/// The event is made of the same document.
const INSERT_ADDED: Sql = Sql {
    sqlite: insert_event!(
        "SELECT $2, $3, 'task_added', value ->> '$.id', value ->> '$.session', $4,
                '{\"type\":\"task_added\",\"task\":' || (value ->> '$.doc') || '}'
         FROM jsonb_each($1) ORDER BY key"
    ),
    postgres: insert_event!(
        "SELECT $2, $3, 'task_added', id, session, $4, '{\"type\":\"task_added\",\"task\":' || doc || '}'
         FROM json_to_recordset($1::json) AS new (id text, session text, doc text)"
    ),
};

/// A lease lasts as long as its claim, unless a new one is given.
///
/// SQLite writes every index anew that has a column which is set, changed or not, and a page of each to the disk. Most
/// changes only move the claim; few move the task to another place of the flow, and hardly any its priority.
macro_rules! update_task {
    ($more:literal) => {
        concat!(
            "UPDATE tasks SET ",
            $more,
            " status = $12, standing = $13, claimable_at = $14, updated_at = $15, fence = $16, doc = $17,
              lease_until = coalesce($18, CASE WHEN $13 = 'claimed' AND fence = $16 THEN lease_until END)
             WHERE id = $8 AND fence = $9"
        )
    };
}
const UPDATE_CLAIM: &str = update_task!("");
const UPDATE_PLACE: &str = update_task!("state = $10, lane = $11, open = $19, done = $20, touches = $21,");
const UPDATE_ALL: &str =
    update_task!("state = $10, lane = $11, open = $19, done = $20, touches = $21, priority = $22,");

/// An event has a body: without the change that it tells of there is none, and everything fails.
const APPEND_IF_CHANGED: &str =
    insert_event!("SELECT $1, $2, $3, $4, $5, $6, CASE WHEN changes() = 1 THEN $7 END");

/// Both in one statement: half of the way to the server and back.
const UPDATE_AND_APPEND: &str = concat!(
    "WITH changed AS (",
    update_task!("state = $10, lane = $11, open = $19, done = $20, touches = $21, priority = $22,"),
    " RETURNING 1) ",
    insert_event!("SELECT $1, $2, $3, $4, $5, $6, (SELECT $7 FROM changed)")
);

/// The whole of a transaction: what a statement ends with that changes a task as it is believed to be, which is `$23`. What is
/// not so, or does not meet the other conditions, is not changed. What else it does looks at whether anything `changed`.
macro_rules! update_and_append_if_same {
    ($conditions:literal) => {
        update_and_append_if_same!($conditions, "")
    };
    ($conditions:literal, $more:literal) => {
        concat!(
            "changed AS (",
            update_task!("state = $10, lane = $11, open = $19, done = $20, touches = $21, priority = $22,"),
            " AND doc = $23",
            $conditions,
            " RETURNING 1)",
            $more,
            " ",
            insert_event!("SELECT $1, $2, $3, $4, $5, $6, $7 FROM changed")
        )
    };
}
pub(super) use {update_and_append_if_same, update_task};

const UPDATE_AND_APPEND_IF_SAME: &str = concat!("WITH ", update_and_append_if_same!(""));

/// The least that has to be set.
fn update_of(old: &TaskColumns, new: &TaskColumns) -> &'static str {
    let has_moved = (old.open, old.done) != (new.open, new.done)
        || (&old.state, &old.lane, &old.touches) != (&new.state, &new.lane, &new.touches);
    match (old.priority != new.priority, has_moved) {
        (true, _) => UPDATE_ALL,
        (false, true) => UPDATE_PLACE,
        (false, false) => UPDATE_CLAIM,
    }
}

/// Whom the event of a change is about.
fn event_of<'t>(before: &'t Task, task: &'t Task) -> About<'t> {
    let run = claiming_run(before).or_else(|| claiming_run(task));
    About { task: Some(&task.id), session: task.session.as_ref(), run }
}

fn claiming_run(task: &Task) -> Option<&RunId> {
    match &task.standing {
        Standing::Claimed(claim) => Some(&claim.run),
        Standing::Ready | Standing::Waiting(_) | Standing::Ended { .. } => None,
    }
}

/// Nothing in the store can depend on tasks that were not there: only the new ones among themselves can.
fn check_batch_for_cycles(new: &[(TaskId, NewTask)]) -> Result<(), CommitError> {
    let edges: HashMap<&str, Vec<&str>> = new
        .iter()
        .map(|(id, task)| (id.as_str(), task.depends_on.iter().map(TaskId::as_str).collect()))
        .collect();
    let starts: Vec<&str> = new.iter().map(|(id, _)| id.as_str()).collect();
    refuse_cycle(cycle::find(&edges, &starts))
}

fn refuse_cycle(cycle: Option<Vec<&str>>) -> Result<(), CommitError> {
    let Some(path) = cycle else { return Ok(()) };
    let path: Result<Vec<TaskId>, _> = path.into_iter().map(TaskId::new).collect();
    let path = path.map_err(|error| StoreError::Corrupt { what: error.to_string() })?;
    Err(CommitError::DependencyCycle { path })
}
