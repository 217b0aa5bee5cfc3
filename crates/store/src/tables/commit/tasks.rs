//! Writing tasks.

use std::collections::{HashMap, HashSet};

use rehearsal_core::flow::Flow;
use rehearsal_core::transition::{TaskInput, transition};
use rehearsal_core::{EventKind, NewTask, RunId, Standing, Task, TaskId, Timestamp};
use serde::Serialize;

use super::{Writing, insert_event};
use crate::columns::TaskColumns;
use crate::json::to_json;
use crate::link::{Sql, values};
use crate::policy::CHUNK;
use crate::tables::log::{About, run_of};
use crate::tables::{flows, tasks};
use crate::{CommitError, StoreError, check, cycle};

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

impl Writing<'_> {
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
        let Some(last) = tasks.last() else { return Ok(()) };
        let about = About { task: Some(&last.id), session: last.session.as_ref(), run: None };
        self.write_events(INSERT_ADDED, values, about, ADDED).await
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
        let (from, to) = (before.state.clone(), after.state.clone());
        let kind = EventKind::TaskChanged { task: after.id.clone(), input, from, to };
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
        let (old, new) = (TaskColumns::of(before), TaskColumns::of(task));
        let sql = Sql { sqlite: least_update(&old, &new), postgres: UPDATE_ALL };
        let values = values![
            new.id,
            before.fence.0,
            new.status,
            new.standing,
            new.claimable_at,
            new.updated_at,
            new.fence,
            to_json(task)?,
            lease_until.map(|until| until.0),
            new.state,
            new.lane,
            new.open,
            new.done,
            new.touches,
            new.priority,
        ];
        if self.link.execute(sql, values).await? != 1 {
            return Err(StoreError::Corrupt {
                what: format!("the row of task `{}` is not its document", task.id),
            });
        }
        let run = claiming_run(before).or_else(|| claiming_run(task));
        self.append(About { task: Some(&task.id), session: task.session.as_ref(), run }, kind).await
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
    sqlite: insert_event!(sqlite
        "SELECT $2, $3, 'task_added', value ->> '$.id', value ->> '$.session', $4,
                '{\"type\":\"task_added\",\"task\":' || (value ->> '$.doc') || '}'
         FROM jsonb_each($1) ORDER BY key"
    ),
    postgres: insert_event!(postgres
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
            " status = $3, standing = $4, claimable_at = $5, updated_at = $6, fence = $7, doc = $8,
              lease_until = coalesce($9, CASE WHEN $4 = 'claimed' AND fence = $7 THEN lease_until END)
             WHERE id = $1 AND fence = $2"
        )
    };
}
const UPDATE_CLAIM: &str = update_task!("");
const UPDATE_PLACE: &str = update_task!("state = $10, lane = $11, open = $12, done = $13, touches = $14,");
const UPDATE_ALL: &str =
    update_task!("state = $10, lane = $11, open = $12, done = $13, touches = $14, priority = $15,");

fn least_update(old: &TaskColumns, new: &TaskColumns) -> &'static str {
    let has_moved = (old.open, old.done) != (new.open, new.done)
        || (&old.state, &old.lane, &old.touches) != (&new.state, &new.lane, &new.touches);
    match (old.priority != new.priority, has_moved) {
        (true, _) => UPDATE_ALL,
        (false, true) => UPDATE_PLACE,
        (false, false) => UPDATE_CLAIM,
    }
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
