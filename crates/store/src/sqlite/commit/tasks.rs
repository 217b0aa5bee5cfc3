//! Writing tasks.

use std::collections::{HashMap, HashSet};

use rehearsal_core::flow::Flow;
use rehearsal_core::transition::{TaskInput, transition};
use rehearsal_core::{EventKind, NewTask, RunId, Standing, Task, TaskId};
use serde_json::value::RawValue;
use sqlx::{query, query_as, query_scalar};

use super::Writing;
use crate::columns::TaskColumns;
use crate::policy::CHUNK;
use crate::sqlite::error::to_json;
use crate::sqlite::log::{About, run_of};
use crate::sqlite::{flows, tasks};
use crate::{CommitError, StoreError, check, cycle};

/// A row on its way into a statement: what to search by, and the document.
fn row(task: &Task) -> Result<(TaskColumns, Box<RawValue>), StoreError> {
    let doc = serde_json::value::to_raw_value(task).map_err(|error| StoreError::Other(Box::new(error)))?;
    Ok((TaskColumns::of(task), doc))
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
        flows::pin(self.connection, flow).await?;
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
        let rows: Vec<_> = tasks.iter().map(row).collect::<Result<_, _>>()?;
        let rows = to_json(&rows)?;
        // `jsonb_each` and not `json_each`, which would write each row out as text to be parsed for each column.
        query(
            "INSERT INTO tasks (id, session, flow_version, priority, state, status, standing, done, claimable_at,
                                lane, created_at, updated_at, fence, doc)
             SELECT value ->> '$[0].id', value ->> '$[0].session', value ->> '$[0].flow_version',
                    value ->> '$[0].priority', value ->> '$[0].state', value ->> '$[0].status',
                    value ->> '$[0].standing', value ->> '$[0].done', value ->> '$[0].claimable_at',
                    value ->> '$[0].lane', value ->> '$[0].created_at', value ->> '$[0].updated_at', value ->> '$[0].fence',
                    value -> 1
             FROM jsonb_each(?1) ORDER BY key",
        )
        .bind(&rows)
        .execute(&mut *self.connection)
        .await?;
        // The event is `EventKind::TaskAdded`, made of the same document.
        query(
            "INSERT INTO events (at, actor, kind, task_id, session, run_id, body)
             SELECT ?2, ?3, 'task_added', value ->> '$[0].id', value ->> '$[0].session', ?4,
                    json_object('type', 'task_added', 'task', value -> 1)
             FROM jsonb_each(?1) ORDER BY key",
        )
        .bind(&rows)
        .bind(self.at.0)
        .bind(to_json(self.actor)?)
        .bind(run_of(self.actor).map(RunId::as_str))
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    /// Writes the edges of tasks that have none yet, and counts those that are open.
    async fn insert_dependencies(&mut self, tasks: &[Task]) -> Result<(), StoreError> {
        let edges: Vec<(&TaskId, &TaskId)> =
            tasks.iter().flat_map(|task| task.depends_on.iter().map(|id| (&task.id, id))).collect();
        if edges.is_empty() {
            return Ok(());
        }
        query(
            "INSERT INTO task_deps (task, depends_on)
             SELECT DISTINCT value ->> 0, value ->> 1 FROM json_each(?1)",
        )
        .bind(to_json(&edges)?)
        .execute(&mut *self.connection)
        .await?;
        let ids: Vec<&TaskId> =
            tasks.iter().filter(|task| !task.depends_on.is_empty()).map(|task| &task.id).collect();
        self.count_open_dependencies(&ids).await
    }

    async fn count_open_dependencies(&mut self, ids: &[&TaskId]) -> Result<(), StoreError> {
        query(
            "UPDATE tasks SET open_deps =
                 (SELECT count(*) FROM task_deps d JOIN tasks t ON t.id = d.depends_on
                  WHERE d.task = tasks.id AND NOT t.done)
             WHERE id IN (SELECT value FROM json_each(?1))",
        )
        .bind(to_json(&ids)?)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    pub(super) async fn change_task(&mut self, id: TaskId, input: TaskInput) -> Result<Task, CommitError> {
        check::task_input(&input)?;
        let Some(before) = tasks::task(self.connection, &id).await? else {
            return Err(CommitError::UnknownTask { id });
        };
        self.change(before, input).await
    }

    /// Moves a task that was read in this transaction.
    pub(super) async fn change(&mut self, before: Task, input: TaskInput) -> Result<Task, CommitError> {
        let id = before.id.clone();
        let flow = self.flows.get(self.connection, &before.flow_version).await?;
        let after = transition(&before, &input, &flow, self.at)
            .map_err(|refusal| CommitError::Refused { index: self.index, refusal })?;
        if after.depends_on != before.depends_on {
            self.check_new_dependencies(&after).await?;
        }
        self.update(&after).await?;
        if after.depends_on != before.depends_on {
            self.replace_dependencies(&after).await?;
        }
        if after.is_done() != before.is_done() {
            self.tell_dependents(&after).await?;
        }
        let run = claiming_run(&before).or_else(|| claiming_run(&after));
        let about = About { task: Some(&id), session: after.session.as_ref(), run };
        let kind = EventKind::TaskChanged {
            task: id.clone(),
            input,
            from: before.state.clone(),
            to: after.state.clone(),
        };
        self.append(about, &kind).await?;
        Ok(after)
    }

    async fn update(&mut self, task: &Task) -> Result<(), StoreError> {
        let columns = TaskColumns::of(task);
        query(
            "UPDATE tasks SET priority = ?2, state = ?3, status = ?4, standing = ?5, done = ?6, claimable_at = ?7,
                              lane = ?8, updated_at = ?9, fence = ?10, doc = ?11,
                              lease_until = CASE WHEN ?5 = 'claimed' AND fence = ?10 THEN lease_until END
             WHERE id = ?1",
        )
        .bind(columns.id)
        .bind(columns.priority)
        .bind(columns.state)
        .bind(columns.status)
        .bind(columns.standing)
        .bind(columns.done)
        .bind(columns.claimable_at)
        .bind(columns.lane)
        .bind(columns.updated_at)
        .bind(columns.fence)
        .bind(to_json(task)?)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    async fn replace_dependencies(&mut self, task: &Task) -> Result<(), StoreError> {
        query("DELETE FROM task_deps WHERE task = ?1")
            .bind(task.id.as_str())
            .execute(&mut *self.connection)
            .await?;
        self.insert_dependencies(std::slice::from_ref(task)).await?;
        self.count_open_dependencies(&[&task.id]).await
    }

    /// One dependency less is open for those that wait for it, or one more if it begins anew.
    async fn tell_dependents(&mut self, task: &Task) -> Result<(), StoreError> {
        query(
            "UPDATE tasks SET open_deps = open_deps + ?2
             WHERE id IN (SELECT task FROM task_deps WHERE depends_on = ?1)",
        )
        .bind(task.id.as_str())
        .bind(if task.is_done() { -1_i64 } else { 1 })
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    async fn check_ids(&mut self, new: &[(TaskId, NewTask)]) -> Result<(), CommitError> {
        let mut seen = HashSet::with_capacity(new.len());
        if let Some((twice, _)) = new.iter().find(|(id, _)| !seen.insert(id)) {
            return Err(CommitError::IdTaken { id: twice.to_string() });
        }
        for chunk in new.chunks(CHUNK) {
            let ids: Vec<&TaskId> = chunk.iter().map(|(id, _)| id).collect();
            let taken: Option<String> = query_scalar(
                "SELECT value FROM json_each(?1) WHERE value IN (SELECT id FROM tasks) ORDER BY key LIMIT 1",
            )
            .bind(to_json(&ids)?)
            .fetch_optional(&mut *self.connection)
            .await?;
            if let Some(id) = taken {
                return Err(CommitError::IdTaken { id });
            }
        }
        Ok(())
    }

    /// Refuses dependencies that are neither in the store nor among `own`.
    async fn check_known<'t>(
        &mut self,
        dependencies: impl Iterator<Item = (&'t TaskId, &'t [TaskId])>,
        own: &HashSet<&TaskId>,
    ) -> Result<(), CommitError> {
        let outside: Vec<(&TaskId, &TaskId)> = dependencies
            .flat_map(|(task, ids)| ids.iter().map(move |id| (task, id)))
            .filter(|(_, id)| !own.contains(id))
            .collect();
        for chunk in outside.chunks(CHUNK) {
            let unknown: Option<i64> = query_scalar(
                "SELECT key FROM json_each(?1) AS edge
                 WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE id = edge.value ->> 1) ORDER BY key LIMIT 1",
            )
            .bind(to_json(&chunk)?)
            .fetch_optional(&mut *self.connection)
            .await?;
            let edge = unknown.and_then(|key| usize::try_from(key).ok()).and_then(|key| chunk.get(key));
            if let Some((task, depends_on)) = edge {
                let (task, depends_on) = ((*task).clone(), (*depends_on).clone());
                return Err(CommitError::UnknownDependency { task, depends_on });
            }
        }
        Ok(())
    }

    /// Follows the new dependencies as far as they go; none may lead back to the task.
    async fn check_new_dependencies(&mut self, task: &Task) -> Result<(), CommitError> {
        let dependencies = [(&task.id, task.depends_on.as_slice())];
        self.check_known(dependencies.into_iter(), &HashSet::new()).await?;
        let edges: Vec<(String, String)> = query_as(
            "WITH RECURSIVE way (source, target) AS (
                 SELECT ?1, value FROM json_each(?2)
                 UNION
                 SELECT d.task, d.depends_on FROM way JOIN task_deps d ON d.task = way.target
                 WHERE way.target <> ?1
             )
             SELECT source, target FROM way WHERE EXISTS (SELECT 1 FROM way WHERE target = ?1)",
        )
        .bind(task.id.as_str())
        .bind(to_json(&task.depends_on)?)
        .fetch_all(&mut *self.connection)
        .await?;
        let mut graph: HashMap<&str, Vec<&str>> = HashMap::new();
        for (source, target) in &edges {
            graph.entry(source).or_default().push(target);
        }
        refuse_cycle(cycle::find(&graph, &[task.id.as_str()]))
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
