//! From an approved plan to tasks in the store, all or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use rehearsal_core::flow::Flow;
use rehearsal_core::{AgentName, FlowName, NewSession, NewTask, SessionName, TaskId};
use rehearsal_crew::plan::{Plan, PlanStep};
use rehearsal_engine::random_bits;
use rehearsal_store::{Change, FindError, Store};
use serde::Serialize;

use crate::ids::commit_drawn;
use crate::project::{Project, ProjectError};
use crate::text::one_line;

/// The flow of tasks that change something.
const PLAN: &str = "plan";
/// The flow of tasks that only look.
const LOOK: &str = "look";
/// A title is one line of a listing; the whole description is the task's body.
const TITLE: usize = 120;

/// What was added.
#[derive(Debug)]
pub struct Added {
    /// The session of the tasks.
    pub session: SessionName,
    /// Each after all that it depends on.
    pub tasks: Vec<AddedTask>,
}

/// A task that was added.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddedTask {
    /// Its id in the plan.
    pub planned: String,
    /// Its id.
    pub id: TaskId,
    /// Who does it.
    pub agent: AgentName,
    /// The flow that it goes through.
    pub flow: FlowName,
}

/// Adds the tasks of an approved plan in one transaction. The session is created if it does not exist.
pub async fn add(
    project: &Project,
    plan: &Plan,
    goal: Option<&str>,
    session: Option<&SessionName>,
) -> Result<Added, ProjectError> {
    project.caller.may_change()?;
    let flow = |name| {
        let flow = project.flow(name)?;
        project.check_agents(&flow, project.settings()?)?;
        Ok::<_, ProjectError>(Arc::new(flow))
    };
    let flows = Flows { plan: flow(PLAN)?, look: flow(LOOK)? };
    let store = project.store().await?;
    let draw = async || {
        let name = match session {
            Some(session) => session.clone(),
            None => drawn_session(),
        };
        let mut changes: Vec<Change> = new_session(&*store, &name, goal, plan).await?.into_iter().collect();
        let (adding, tasks) = tasks_of(plan, &name, &flows);
        changes.extend(adding);
        Ok::<_, ProjectError>((changes, Added { session: name, tasks }))
    };
    let (_, added) = commit_drawn(project, draw).await?;
    Ok(added)
}

#[expect(clippy::expect_used, reason = "letters, digits and `-` are a name")]
fn drawn_session() -> SessionName {
    SessionName::new(format!("plan-{}", TaskId::from_random(random_bits()))).expect("a valid name")
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

/// The session, if it does not exist yet. Every run of its tasks is told the goal.
async fn new_session(
    store: &dyn Store,
    name: &SessionName,
    goal: Option<&str>,
    plan: &Plan,
) -> Result<Option<Change>, FindError> {
    match store.session(name).await {
        Ok(_) => return Ok(None),
        Err(FindError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let goal = goal.unwrap_or_default().trim();
    let description = match (goal, plan.steps().len()) {
        ("", 1) => "A plan of 1 task".to_owned(),
        ("", count) => format!("A plan of {count} tasks"),
        (goal, _) => one_line(goal, TITLE),
    };
    // A goal of one line is in the description.
    let context = if goal == description { String::new() } else { goal.to_owned() };
    let session = NewSession { name: name.clone(), description, context, criteria: Vec::new() };
    Ok(Some(Change::AddSession(session)))
}

fn tasks_of(plan: &Plan, session: &SessionName, flows: &Flows) -> (Vec<Change>, Vec<AddedTask>) {
    let mut ids: BTreeMap<&str, TaskId> = BTreeMap::new();
    let (mut changes, mut added) = (Vec::new(), Vec::new());
    for step in plan.in_order() {
        let id = TaskId::from_random(random_bits());
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
