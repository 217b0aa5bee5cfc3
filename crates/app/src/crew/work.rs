//! A built-in agent, ready to work.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::{RunId, TaskId};
use rehearsal_crew::{
    Assignment, CONTEXT, ChoiceError, Limits, ModelChoice, Permissions, Role, RoleError, SYSTEM_BUDGET,
    Surroundings, TestRunner, Toolbox, ToolboxError, Workplace, system_prompt,
};
use rehearsal_engine::random_bits;
use rehearsal_git::base_branch;
use rehearsal_llm::clients::{Client, ClientError, Settings};
use rehearsal_sandbox::Demand;

use super::{agents_dir_of, roles_in};
use crate::caller::Caller;
use crate::places::scratch;
use crate::project::ProjectError;

/// Who is to work, and within which limits. What is left out is as the role says.
#[derive(Debug)]
pub struct MemberRequest {
    /// The role.
    pub role: String,
    /// The model.
    pub model: Option<String>,
    /// Where the roles are; otherwise in the repository around.
    pub agents_dir: Option<Utf8PathBuf>,
    /// How long it may work.
    pub timeout: Option<Duration>,
    /// How often it may ask its model.
    pub max_turns: Option<u64>,
    /// The tokens that it may use.
    pub max_tokens: Option<u64>,
    /// Text appended to its system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether it may neither write nor execute, whatever its role may.
    pub read_only: bool,
}

/// Why an agent cannot start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum CrewError {
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error(transparent)]
    NoModel(#[from] ChoiceError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Toolbox(#[from] ToolboxError),
    #[error(transparent)]
    Project(#[from] ProjectError),
}

/// An agent with its role and its model, but without a task.
pub struct Member {
    role: Role,
    model: String,
    system: String,
    limits: Limits,
    client: Client,
}

/// An agent with all that it needs.
pub struct Work {
    /// What it is told.
    pub assignment: Assignment,
    /// Its model.
    pub client: Client,
    /// Its tools.
    pub toolbox: Toolbox,
    /// Deleted when it is over.
    _scratch: Option<tempfile::TempDir>,
}

impl Member {
    /// Finds the role, and the model that can be asked.
    pub fn new(caller: &Caller, request: MemberRequest) -> Result<Self, CrewError> {
        let roles = roles_in(&request.agents_dir.unwrap_or_else(|| agents_dir_of(caller)))?;
        let mut role = roles.get(&request.role)?.clone();
        if request.read_only {
            role.permissions = Permissions { write: false, execute: false, ..role.permissions };
        }
        let lookup = |name: &str| caller.environment.get(name).cloned();
        let choice = ModelChoice::new(request.model.as_deref(), &role, lookup)?;
        let client = Client::new(choice.endpoint, Settings::default(), Arc::clone(&caller.clock))?;
        let known = Surroundings::of(&caller.directory);
        let appended = request.append_system_prompt.as_deref();
        let system = system_prompt(&role, appended, &known, SYSTEM_BUDGET).text;
        let limits = Limits {
            time: role.time_limit(request.timeout),
            turns: request.max_turns.unwrap_or(role.turns),
            tokens: request.max_tokens,
            context: CONTEXT,
        };
        Ok(Self { role, model: choice.model, system, limits, client })
    }

    /// Gives it a task and its tools. By hand there is no run: then its report goes to a directory that is thrown away.
    pub async fn with_task(
        self,
        caller: &Caller,
        task: String,
        tests: Arc<dyn TestRunner>,
    ) -> Result<Work, CrewError> {
        let inside = caller.inside_run();
        let (run_dir, scratch) = match &inside {
            Some(inside) => (inside.directory().to_owned(), None),
            None => {
                let (path, scratch) = scratch("rehearsal-")?;
                (path, Some(scratch))
            }
        };
        let random = random_bits();
        let run = inside.and_then(|inside| RunId::new(inside.run()).ok());
        let task_id =
            caller.environment.get("REHEARSAL_TASK_ID").and_then(|task| TaskId::new(task.clone()).ok());
        let place = Workplace {
            role: self.role.name,
            tools: self.role.tools,
            permissions: self.role.permissions,
            worktree: caller.directory.clone(),
            task: task_id.unwrap_or_else(|| TaskId::from_random(random)),
            run: run.unwrap_or_else(|| RunId::from_random(random)),
            run_dir,
            variables: caller.environment.clone(),
            demand: Demand::BestEffort,
            base: base_branch(&caller.directory).await.ok(),
            hooks: self.role.hooks,
            mcp: self.role.mcp,
            web_search: self.role.web_search,
            tests: Some(tests),
        };
        Ok(Work {
            assignment: Assignment { model: self.model, system: self.system, task, limits: self.limits },
            client: self.client,
            toolbox: Toolbox::open(&place).await?,
            _scratch: scratch,
        })
    }
}
