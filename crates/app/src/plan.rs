//! Plans: from a goal to tasks with dependencies, once a person has approved them.

mod members;
mod tasks;

use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_core::TaskId;
use rehearsal_crew::plan::{Member, Plan, PlanErrors, PlanFile};
use rehearsal_crew::planner::{Planned, PlannerError, Wish, plan};
use rehearsal_crew::{ChoiceError, ModelChoice, RoleError, Surroundings};
use rehearsal_engine::random_bits;
use rehearsal_llm::clients::{Client, ClientError, Settings};

use crate::crew::roles_of;
use crate::project::{Project, ProjectError};

pub use members::members;
pub use tasks::{Added, AddedTask, add};

/// Planning is part of writing code, and done by the model that does that.
const ROLE: &str = "code";

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum PlanningError {
    #[error("there is nothing to plan")]
    NoGoal,
    #[error("the plan cannot be used: {0}")]
    Unusable(PlanErrors),
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error(transparent)]
    NoModel(#[from] ChoiceError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Planner(#[from] PlannerError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for PlanningError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// Who plans.
pub struct Planner {
    /// The model that is asked.
    pub model: String,
    client: Client,
    known: Surroundings,
}

impl Planner {
    /// The model as named, or the one of the role that writes code.
    pub fn new(project: &Project, model: Option<&str>) -> Result<Self, PlanningError> {
        let roles = roles_of(project)?;
        let variables = &project.caller.environment;
        let choice = ModelChoice::new(model, roles.get(ROLE)?, |name| variables.get(name).cloned())?;
        let client = Client::new(choice.endpoint, Settings::default(), Arc::clone(&project.caller.clock))?;
        Ok(Self { model: choice.model, client, known: Surroundings::of(&project.root) })
    }

    /// Asks for a plan; a question gets an answer instead.
    pub async fn plan(&self, goal: &str, members: &[Member]) -> Result<Planned, PlanningError> {
        let wish = Wish { model: &self.model, text: goal, members, known: &self.known };
        Ok(plan(&self.client, wish).await?)
    }
}

/// A goal that says something.
pub fn check_goal(goal: &str) -> Result<(), PlanningError> {
    if goal.trim().is_empty() { Err(PlanningError::NoGoal) } else { Ok(()) }
}

/// A plan that a person wrote.
pub fn read(text: &str, members: &[Member]) -> Result<Plan, PlanningError> {
    let plan = PlanFile::read(text).map_err(Into::into).and_then(|file| Plan::check(file, members));
    plan.map_err(PlanningError::Unusable)
}

/// Keeps a plan that nobody has approved yet; returns where, as seen from the repository's root.
pub fn keep(project: &Project, plan: &Plan) -> Result<String, ProjectError> {
    let directory = project.state_dir()?.join("plans");
    fs_err::create_dir_all(&directory)?;
    let path = directory.join(format!("{}.json", TaskId::from_random(random_bits())));
    let text = serde_json::to_string_pretty(&plan.file()).map_err(std::io::Error::other)?;
    fs_err::write(&path, format!("{text}\n"))?;
    Ok(project.shown(&path))
}

/// Removes a kept plan, which is in the store now. A person's own file stays.
pub fn forget(project: &Project, path: &Utf8Path) {
    if project.state_dir().is_ok_and(|state| path.parent() == Some(&state.join("plans"))) {
        let _ = fs_err::remove_file(path);
    }
}
