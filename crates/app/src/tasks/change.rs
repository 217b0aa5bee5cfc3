//! What changes one task. From inside a run, some of it is reported instead.

use rehearsal_agent::result_file::ReportLine;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Budget, Lane, Priority, RunId, Standing, Task, TaskEdit, Wait, WaitFor};
use rehearsal_store::{Change, Committed, RunQuery, Scope, Store, StoreError};

use super::add::whole_ids;
use super::{TaskDocument, TaskError, TaskReport, only_task};
use crate::caller::{Caller, InsideRun};
use crate::project::Project;

/// A task that was changed.
#[derive(Debug)]
pub struct Changed {
    /// The task as it is now.
    pub document: TaskDocument,
    /// The run that was working on it and does not count any more.
    pub superseded: Option<RunId>,
}

/// What became of a request that agents may make too.
#[derive(Debug)]
pub enum Noted {
    /// A person asked: it is done.
    Changed(Changed),
    /// An agent asked: it is reported, and takes effect when the run ends.
    Reported(TaskDocument),
    /// An agent asked that cannot see its tasks: it is reported, and checked when the run ends.
    Unchecked(TaskReport),
}

/// What to change about a task; what is left out stays as it is.
#[derive(Debug, Default)]
pub struct EditRequest {
    /// A new title.
    pub title: Option<String>,
    /// A new description.
    pub body: Option<String>,
    /// New criteria, in place of all that were there.
    pub criteria: Option<Vec<String>>,
    /// A new priority.
    pub priority: Option<Priority>,
    /// New labels, in place of all that were there.
    pub labels: Option<Vec<String>>,
    /// Unique prefixes of the ids of new dependencies, in place of all that were there.
    pub depends_on: Option<Vec<String>>,
    /// What all its runs together may cost, in dollars.
    pub max_cost: Option<f64>,
    /// New patterns of files that it will change, in place of all that were there.
    pub touches: Option<Vec<String>>,
}

/// Marks a task as done; an agent says why, if nothing had to change for it. A task is named by a unique prefix of its id, here and
/// below.
pub async fn finish(caller: &Caller, task: &str, reason: Option<String>) -> Result<Noted, TaskError> {
    let line = ReportLine::TaskDone { id: task.to_owned(), reason };
    report_or_change(caller, task, &line, TaskInput::Finish).await
}

/// Marks a task as needing a human.
pub async fn block(caller: &Caller, task: &str, reason: String) -> Result<Noted, TaskError> {
    let line = ReportLine::TaskBlocked { id: task.to_owned(), reason: reason.clone() };
    report_or_change(caller, task, &line, TaskInput::Block { reason }).await
}

/// Lets blocked tasks continue, all or none; an answer goes into their next prompts.
pub async fn unblock(
    project: &Project,
    tasks: &[String],
    answer: Option<String>,
) -> Result<Vec<Changed>, TaskError> {
    project.caller.may_decide()?;
    if answer.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(TaskError::NoAnswer);
    }
    let store = project.store().await?;
    let mut changes = Vec::new();
    let mut before: Vec<Task> = Vec::new();
    for prefix in tasks {
        let task = store.find_task(prefix).await?;
        if before.iter().any(|named| named.id == task.id) {
            continue;
        }
        let input = answer.clone().map_or(TaskInput::Unblock, |text| TaskInput::Answer { text });
        changes.push(Change::ChangeTask { id: task.id.clone(), input });
        let lane = vendor_limit(&*store, &task).await?.map(|lane| Change::FreeLane { lane });
        changes.extend(lane.filter(|free| !changes.contains(free)));
        before.push(task);
    }
    let committed = project.commit(changes).await?.into_iter().filter_map(Committed::task);
    Ok(before.into_iter().zip(committed).map(|(before, after)| Changed::of(before, after)).collect())
}

/// The agent that is paused because this task met a limit of its vendor: who lets the task continue wants it to be tried.
async fn vendor_limit(store: &dyn Store, task: &Task) -> Result<Option<Lane>, StoreError> {
    let Standing::Waiting(Wait { wait_for: WaitFor::System(limit), .. }) = &task.standing else {
        return Ok(None);
    };
    let last = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(1) };
    let agent = store.runs(&last).await?.into_iter().next().map(|run| run.start.agent);
    Ok(agent.filter(|_| limit.passes_with_time()).map(Lane::Agent))
}

/// Gives a task up.
pub async fn cancel(project: &Project, task: &str) -> Result<Changed, TaskError> {
    change(project, task, TaskInput::Cancel).await
}

/// Starts a task over.
pub async fn retry(project: &Project, task: &str) -> Result<Changed, TaskError> {
    change(project, task, TaskInput::Retry).await
}

/// Decides in favor of a task that waits for a person's decision.
pub async fn approve(project: &Project, task: &str, comment: String) -> Result<Changed, TaskError> {
    change(project, task, TaskInput::Decide { approve: true, comment }).await
}

/// Decides against a task that waits for a person's decision. The comment goes into the next prompt.
pub async fn reject(project: &Project, task: &str, comment: String) -> Result<Changed, TaskError> {
    if comment.trim().is_empty() {
        return Err(TaskError::NoComment);
    }
    change(project, task, TaskInput::Decide { approve: false, comment }).await
}

/// Changes what a task says; also while a loop runs.
pub async fn edit(project: &Project, task: &str, request: EditRequest) -> Result<Changed, TaskError> {
    project.caller.may_decide()?;
    let store = project.store().await?;
    let before = store.find_task(task).await?;
    let depends_on = match &request.depends_on {
        Some(prefixes) => Some(whole_ids(&*store, prefixes).await?),
        None => None,
    };
    let edit = TaskEdit {
        title: request.title,
        body: request.body,
        criteria: request.criteria,
        priority: request.priority,
        labels: request.labels,
        depends_on,
        budget: request.max_cost.map(|usd| Budget { usd: Some(usd), ..before.budget }),
        touches: request.touches,
    };
    change(project, task, TaskInput::Edit { edit }).await
}

async fn report_or_change(
    caller: &Caller,
    task: &str,
    line: &ReportLine,
    input: TaskInput,
) -> Result<Noted, TaskError> {
    match caller.inside_run() {
        Some(inside) => report(&inside, caller, task, line).await,
        None => Ok(Noted::Changed(change(&Project::open(caller)?, task, input).await?)),
    }
}

/// The agent learns at once of a wrong id; the store is only read. One that cannot be read from here, because its address or a
/// network is missing, does not stand in the way: the engine checks the report anyway.
async fn report(
    inside: &InsideRun,
    caller: &Caller,
    task: &str,
    line: &ReportLine,
) -> Result<Noted, TaskError> {
    let store = match Project::open(caller) {
        Ok(project) => project.store().await,
        Err(error) => Err(error),
    };
    let Ok(store) = store else {
        inside.report(line)?;
        return Ok(Noted::Unchecked(TaskReport { id: task.to_owned(), reported: true }));
    };
    let found = store.find_task(task).await?;
    inside.report(line)?;
    Ok(Noted::Reported(TaskDocument { reported: true, ..TaskDocument::new(found) }))
}

async fn change(project: &Project, task: &str, input: TaskInput) -> Result<Changed, TaskError> {
    project.caller.may_decide()?;
    let before = project.store().await?.find_task(task).await?;
    let change = Change::ChangeTask { id: before.id.clone(), input };
    let task = only_task(project.commit(vec![change]).await?)?;
    Ok(Changed::of(before, task))
}

impl Changed {
    fn of(before: Task, after: Task) -> Self {
        let superseded = match before.standing {
            Standing::Claimed(claim) if after.fence != before.fence => Some(claim.run),
            _ => None,
        };
        Self { document: TaskDocument::new(after), superseded }
    }
}
