//! From an approved plan to tasks in the store, all or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use rehearsal_app::project::Project;
use rehearsal_core::flow::Flow;
use rehearsal_core::{Actor, NewSession, NewTask, SessionName, TaskId};
use rehearsal_crew::plan::{Plan, PlanStep};
use rehearsal_store::{Change, CommitError, FindError, Store};

use super::AddedTask;
use crate::context::Context;
use crate::error::CliError;
use crate::ui::one_line;

/// The flow of tasks that change something.
const PLAN: &str = "plan";
/// The flow of tasks that only look.
const LOOK: &str = "look";
/// A title is one line of a listing; the whole description is the task's body.
const TITLE: usize = 120;
/// Short ids are drawn at random, so that one may be taken already.
const DRAWS: usize = 8;

/// What was added.
pub(super) struct Added {
    pub(super) session: SessionName,
    pub(super) tasks: Vec<AddedTask>,
}

/// Adds the tasks of a plan, each after all that it depends on, in one transaction.
pub(super) async fn add(
    plan: &Plan,
    wish: Option<&str>,
    session: Option<&SessionName>,
    project: &Project,
    context: &Context,
) -> Result<Added, CliError> {
    let settings = project.settings()?;
    let flow = |name| {
        let flow = project.flow(name)?;
        project.check_agents(&flow, &settings)?;
        Ok::<_, CliError>(Arc::new(flow))
    };
    let flows = Flows { plan: flow(PLAN)?, look: flow(LOOK)? };
    let store = project.store().await?;
    let mut draws = 0;
    loop {
        draws += 1;
        let name = match session {
            Some(session) => session.clone(),
            None => {
                SessionName::new(format!("plan-{}", TaskId::from_random(rehearsal_engine::random_bits())))?
            }
        };
        let mut changes: Vec<Change> = new_session(&*store, &name, wish, plan).await?.into_iter().collect();
        let (adding, tasks) = tasks_of(plan, &name, &flows);
        changes.extend(adding);
        match store.commit(Actor::User, context.now(), changes).await {
            Err(CommitError::IdTaken { .. }) if draws < DRAWS => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(Added { session: name, tasks }),
        }
    }
}

struct Flows {
    plan: Arc<Flow>,
    look: Arc<Flow>,
}

impl Flows {
    fn of(&self, step: &PlanStep) -> &Arc<Flow> {
        if step.only_looks { &self.look } else { &self.plan }
    }
}

/// The session, if it is not there yet. Every run of its tasks is told the wish.
async fn new_session(
    store: &dyn Store,
    name: &SessionName,
    wish: Option<&str>,
    plan: &Plan,
) -> Result<Option<Change>, CliError> {
    match store.session(name).await {
        Ok(_) => return Ok(None),
        Err(FindError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let wish = wish.unwrap_or_default().trim();
    let description = match wish {
        "" => format!("A plan of {}", crate::words::count(plan.steps().len() as u64, "task")),
        wish => one_line(wish, TITLE),
    };
    // A wish of one line is told by the description.
    let context = if wish == description { String::new() } else { wish.to_owned() };
    Ok(Some(Change::AddSession(NewSession {
        name: name.clone(),
        description,
        context,
        criteria: Vec::new(),
    })))
}

fn tasks_of(plan: &Plan, session: &SessionName, flows: &Flows) -> (Vec<Change>, Vec<AddedTask>) {
    let mut ids: BTreeMap<&str, TaskId> = BTreeMap::new();
    let (mut changes, mut added) = (Vec::new(), Vec::new());
    for step in plan.in_order() {
        let id = TaskId::from_random(rehearsal_engine::random_bits());
        let depends_on = step.task.depends_on.iter().filter_map(|on| ids.get(on.as_str()).cloned());
        let flow = flows.of(step);
        let task = Box::new(new_task(step, session, depends_on.collect()));
        changes.push(Change::AddTask { task, id: id.clone(), flow: Arc::clone(flow) });
        let (planned, agent) = (step.task.id.clone(), step.agent.clone());
        added.push(AddedTask { planned, id: id.clone(), agent, flow: flow.name.clone() });
        ids.insert(&step.task.id, id);
    }
    (changes, added)
}

fn new_task(step: &PlanStep, session: &SessionName, mut depends_on: Vec<TaskId>) -> NewTask {
    let description = step.task.description.trim();
    let title = one_line(description, TITLE);
    depends_on.sort();
    depends_on.dedup();
    NewTask {
        session: Some(session.clone()),
        body: if title == description { String::new() } else { description.to_owned() },
        title,
        labels: vec![step.task.id.clone()],
        depends_on,
        touches: step.task.touches.clone(),
        author: Some(step.agent.clone()),
        ..NewTask::default()
    }
}
