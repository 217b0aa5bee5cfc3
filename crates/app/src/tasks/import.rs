//! Tasks from a text.

use std::collections::HashMap;
use std::sync::Arc;

use rehearsal_core::import::ImportedTask;
use rehearsal_core::{FlowName, NewTask, SessionName, TaskId};
use rehearsal_engine::random_bits;
use rehearsal_store::{Change, Store};
use serde::Serialize;

use super::TaskError;
use super::add::session_for;
use crate::ids::commit_drawn;
use crate::project::Project;

/// Tasks to add, as a text has them.
#[derive(Debug)]
pub struct ImportRequest {
    /// Where they come from, as messages show it.
    pub file: String,
    /// In the order of the text.
    pub tasks: Vec<ImportedTask>,
    /// Can be left out if there is only one session, and for flows that no loop takes tasks through.
    pub session: Option<SessionName>,
    /// Otherwise the one that the settings name.
    pub flow: Option<FlowName>,
}

/// `task import --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportDocument {
    /// The new tasks, in the order of the file.
    pub added: Vec<TaskId>,
    /// Items that were done already and left out.
    pub left_out: usize,
    /// The session that they went to.
    #[serde(skip)]
    pub session: Option<SessionName>,
}

/// Adds all tasks that are not done, or none.
pub async fn import(project: &Project, request: ImportRequest) -> Result<ImportDocument, TaskError> {
    project.caller.may_change()?;
    let store = project.store().await?;
    let flow = Arc::new(project.flow_for_tasks(request.flow.as_ref())?);
    let session = session_for(&*store, request.session, &flow).await?;
    let all = request.tasks.len();
    let open: Vec<ImportedTask> = request.tasks.into_iter().filter(|task| !task.done).collect();
    let left_out = all - open.len();
    if open.is_empty() {
        return Err(TaskError::NothingToImport { file: request.file });
    }
    let draw = async || {
        let tasks = with_ids(&*store, session.as_ref(), &open).await?;
        let added: Vec<TaskId> = tasks.iter().map(|(id, _)| id.clone()).collect();
        Ok::<_, TaskError>((vec![Change::AddTasks { tasks, flow: Arc::clone(&flow) }], added))
    };
    let (_, added) = commit_drawn(project, draw).await?;
    Ok(ImportDocument { added, left_out, session })
}

/// Draws ids, and turns the text's keys into them.
async fn with_ids(
    store: &dyn Store,
    session: Option<&SessionName>,
    imported: &[ImportedTask],
) -> Result<Vec<(TaskId, NewTask)>, TaskError> {
    let mut keys: HashMap<&str, TaskId> = HashMap::new();
    let ids: Vec<TaskId> = imported.iter().map(|_| TaskId::from_random(random_bits())).collect();
    for (task, id) in imported.iter().zip(&ids) {
        if let Some(key) = &task.key
            && keys.insert(key, id.clone()).is_some()
        {
            return Err(TaskError::KeyUsedTwice { key: key.clone() });
        }
    }
    let mut tasks = Vec::with_capacity(ids.len());
    for (task, id) in imported.iter().cloned().zip(ids) {
        let mut depends_on = Vec::new();
        for name in &task.depends_on {
            depends_on.push(match keys.get(name.as_str()) {
                Some(id) => id.clone(),
                None => store.find_task(name).await?.id,
            });
        }
        let new = NewTask {
            session: session.cloned(),
            title: task.title,
            body: task.body,
            criteria: task.criteria,
            priority: task.priority,
            labels: task.labels,
            depends_on,
            budget: task.budget,
            ..NewTask::default()
        };
        tasks.push((id, new));
    }
    Ok(tasks)
}
