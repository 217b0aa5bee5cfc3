//! The loop of a session: its tasks one after the other in the checkout, a fresh agent each time.

use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_agent::Containment;
use rehearsal_core::config::{Overrides, Profile, TestingSettings};
use rehearsal_core::{AgentName, Notice, SessionName};
use rehearsal_engine::{
    AgentSetup, LoopLock, Policy, Reach, Role, Roles, SessionPolicy, SetupError, WorkOptions, WorkSummary,
    Worker, Workspace,
};
use rehearsal_process::SpawnError;

use crate::crew::check_role;
use crate::project::{Project, ProjectError};
use crate::sessions::the_session;
use crate::work::{ConfiguredRoles, Control, LOOK_EVERY, WorkerError, check_permission};

/// What a loop is to do.
#[derive(Debug, Clone, Default)]
pub struct LoopRequest {
    /// Which session; none: the only one.
    pub session: Option<SessionName>,
    /// Settings for this loop alone.
    pub overrides: Overrides,
    /// Whether the agent may do everything without being asked.
    pub trust: bool,
    /// A message for every prompt.
    pub message: Option<String>,
    /// Whether it is only shown: then the agent's program need not be here.
    pub dry_run: bool,
}

/// What a first run would be.
#[derive(Debug)]
pub struct Preview {
    /// The task that would be worked on.
    pub task: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What would keep the agent within bounds.
    pub containment: Containment,
    /// What this version of the agent cannot do.
    pub warnings: Vec<Notice>,
    /// What it would be told.
    pub prompt: String,
}

/// A loop with all that it needs.
pub struct SessionLoop {
    worker: Worker,
    session: SessionName,
    setup: AgentSetup,
}

/// Finds the session and its agent.
pub async fn prepare(
    request: LoopRequest,
    project: &Project,
    control: Control,
) -> Result<SessionLoop, WorkerError> {
    project.caller.may_change()?;
    let settings = project.settings_with(request.overrides)?;
    let store = project.store().await?;
    let session = the_session(&*store, request.session).await?;
    let unknown = || ProjectError::UnknownAgent { name: settings.agent.clone(), near: None };
    let profile = settings.profile().cloned().ok_or_else(unknown)?;
    check_permission(&profile, request.trust)?;
    check_role(&profile, project)?;
    let setup = set_up(&profile, request.dry_run, project)
        .await
        .map_err(|error| WorkerError::Agent { driver: profile.driver, error })?;
    let others = ConfiguredRoles::new(settings.clone(), &profile.fallback, request.trust, project)?;
    let role = Role { agent: setup.agent(), profile, template: Some(project.loop_template()?) };
    let roles = LoopRoles { name: settings.agent.clone(), role, others };
    let policy = SessionPolicy {
        session: session.clone(),
        agent: settings.agent.clone(),
        iterations: settings.loop_.iterations,
        max_failures: settings.loop_.max_failures,
        max_wait: settings.loop_.max_wait.0,
        accept_complete: settings.loop_.accept_complete,
        message: request.message,
        test_command: test_command(&settings.testing),
    };
    let worker = Worker {
        store,
        clock: Arc::clone(&project.caller.clock),
        roles: Arc::new(roles),
        workspace: Workspace::Checkout(project.root.clone()),
        state_dir: project.state_dir()?,
        quality: settings.quality.rules(),
        variables: project.caller.environment.clone(),
        options: WorkOptions {
            policy: Policy::Session(policy),
            max_cost: settings.loop_.max_cost,
            lease: settings.work.lease.0,
            limits: settings.limits(),
            look_every: Some(LOOK_EVERY),
            seed: None,
        },
        testing: settings.testing,
        reporter: control.reporter,
        stop: control.stop,
        moments: control.moments,
    };
    Ok(SessionLoop { worker, session, setup })
}

impl SessionLoop {
    /// Works until the session is over, or it is stopped.
    pub async fn run(self) -> Result<WorkSummary, WorkerError> {
        // Should a supervisor be killed, what it supervised comes to us and not to the init process.
        rehearsal_process::become_subreaper()?;
        let _lock = LoopLock::take(&self.worker.state_dir)?;
        Ok(Box::pin(self.worker.run()).await?)
    }

    /// What the first run would be told, and by which command.
    pub async fn preview(&self) -> Result<Preview, WorkerError> {
        let Self { worker, session, setup } = self;
        let task = worker.store.next_task(Some(session), worker.clock.now()).await?;
        let task = task.ok_or_else(|| WorkerError::NoTask(session.clone()))?;
        let request = worker.preview(&task).await?;
        let line = setup.command_line(&request);
        let mut command = vec![line.program];
        command.extend(line.args);
        let (task, prompt) = (task.id.to_string(), request.prompt);
        let containment = setup.containment().clone();
        Ok(Preview { task, command, containment, warnings: line.warnings, prompt })
    }
}

/// The agent of a session, and those that may take over from it.
struct LoopRoles {
    name: AgentName,
    role: Role,
    others: ConfiguredRoles,
}

#[async_trait]
impl Roles for LoopRoles {
    async fn role(&self, name: &AgentName) -> Option<Result<Role, SetupError>> {
        if *name == self.name {
            return Some(Ok(self.role.clone()));
        }
        let template = self.role.template.clone();
        Some(self.others.role(name).await?.map(|other| Role { template, ..other }))
    }
}

/// What agents are told to run: the command, or ours, which knows the runner.
fn test_command(testing: &TestingSettings) -> Option<String> {
    let ours = || testing.framework.as_ref().map(|_| "rehearsal test --agent".to_owned());
    testing.command.clone().or_else(ours)
}

/// What is only shown need not be here.
async fn set_up(profile: &Profile, dry_run: bool, project: &Project) -> Result<AgentSetup, SetupError> {
    let ours = || project.caller.environment.clone();
    let clock = || Arc::clone(&project.caller.clock);
    match AgentSetup::new(profile, ours(), clock(), &project.root, Reach::ItsVendor).await {
        Err(SetupError::Program(SpawnError::ProgramMissing { .. })) if dry_run => {
            AgentSetup::of_missing_program(profile, ours(), clock(), &project.root)
        }
        done => done,
    }
}
