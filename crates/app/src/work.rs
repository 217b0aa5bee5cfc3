//! A worker: claims tasks of any flow and takes each from a worktree to its next state.

mod document;
mod roles;

use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::config::{DriverKind, Origin, Overrides, PermissionMode, Profile, Settings};
use rehearsal_core::{AgentName, SessionName};
use rehearsal_crew::RoleError;
use rehearsal_engine::prompt::PromptError;
use rehearsal_engine::{
    LockError, Moments, Policy, QueuePolicy, SetupError, StopSwitch, WorkEvent, WorkOptions, WorkReporter,
    WorkSummary, Worker, Workspace, open_patiently,
};
use rehearsal_store::Store;

use crate::outlet::{Destination, OutletError};
use crate::places::{WorktreesError, open_worktrees};
use crate::project::{Project, ProjectError};
use crate::sessions::SessionError;
pub(crate) use roles::ConfiguredRoles;

pub use document::{EndName, WorkDocument, WorkedTask};

/// What a worker is to do.
#[derive(Debug, Clone, Default)]
pub struct WorkRequest {
    /// Maximum concurrent tasks, instead of what is set.
    pub workers: Option<u32>,
    /// Only tasks that these agents work on next; none: all.
    pub agents: Vec<AgentName>,
    /// Only tasks of this session.
    pub session: Option<SessionName>,
    /// End when nothing more can be done, or only by a person.
    pub until_idle: bool,
    /// End after one task.
    pub once: bool,
    /// What its runs may cost together, in dollars.
    pub max_cost: Option<f64>,
    /// Whether agents may do everything without being asked.
    pub trust: bool,
}

/// How a worker is watched and stopped.
pub struct Control {
    /// Receives what happens.
    pub reporter: WorkReporter,
    /// Stops it.
    pub stop: StopSwitch,
    /// Sees the moments of its work.
    pub moments: Arc<dyn Moments>,
}

/// Why a worker cannot work.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum WorkerError {
    #[error("`permission: trust` in {0} needs your word")]
    NoTrust(Origin),
    #[error("`work.workers` is 0 ({0}): nothing would be done")]
    NoWorkers(Origin),
    #[error("session `{0}` has no task that could be worked on now")]
    NoTask(SessionName),
    #[error("{file}: {error}")]
    Template { file: String, error: PromptError },
    #[error("{error}")]
    Agent { driver: DriverKind, error: SetupError },
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Outlet(#[from] OutletError),
    #[error(transparent)]
    Worktrees(#[from] WorktreesError),
    #[error(transparent)]
    Locked(#[from] LockError),
    #[error(transparent)]
    Work(#[from] rehearsal_engine::WorkError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for WorkerError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// How often a worker looks for what other processes changed: promptly for a person, and a small read.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a worker came to, and where the work went.
pub struct Worked {
    /// What it did.
    pub summary: WorkSummary,
    store: Arc<dyn Store>,
    project: Project,
    settings: Settings,
    request: WorkRequest,
    destination: Destination,
}

/// Works until there is nothing more to do, or it is stopped. A database that is away is waited for: a worker that is started
/// with the machine may be earlier.
pub async fn work(request: WorkRequest, project: &Project, control: Control) -> Result<Worked, WorkerError> {
    project.caller.may_change()?;
    let settings = project.settings_with(Overrides::default().set("work.workers", request.workers))?;
    let location = project.prepare_store()?;
    let store = open_patiently(&location, &control.stop, &control.reporter).await?;
    project.note_store(&location)?;
    check(&request, &settings, project, &*store).await?;
    let names: Vec<AgentName> = settings.agent_names().collect();
    let roles = ConfiguredRoles::new(settings.clone(), &names, request.trust, project)?;
    let destination = Destination::choose(&settings, project).await?;
    let (outlet, note) = destination.open().await?;
    if let Some(notice) = note {
        (control.reporter)(WorkEvent::Warning { notice });
    }
    let worktrees = Arc::new(open_worktrees(&settings, project).await?);
    let worker = Worker {
        store: Arc::clone(&store),
        clock: Arc::clone(&project.caller.clock),
        roles: Arc::new(roles),
        workspace: Workspace::Worktrees { worktrees, outlet },
        state_dir: project.state_dir()?,
        testing: settings.testing.clone(),
        quality: settings.quality.rules(),
        variables: project.caller.environment.clone(),
        options: options(&request, &settings),
        reporter: control.reporter,
        stop: control.stop,
        moments: control.moments,
    };
    // Should a supervisor be killed, what it supervised comes to us and not to the init process.
    rehearsal_process::become_subreaper()?;
    let summary = Box::pin(worker.run()).await?;
    Ok(Worked { summary, store, project: project.clone(), settings, request, destination })
}

/// A name that nobody has would be waited for without end.
async fn check(
    request: &WorkRequest,
    settings: &Settings,
    project: &Project,
    store: &dyn Store,
) -> Result<(), WorkerError> {
    if settings.work.workers == 0 {
        return Err(WorkerError::NoWorkers(settings.origins.get("work.workers").clone()));
    }
    for name in &request.agents {
        project.check_agent(name)?;
    }
    if let Some(session) = &request.session {
        store.session(session).await?;
    }
    Ok(())
}

/// A profile that asks for trust needs the word of whoever starts the worker.
pub(crate) fn check_permission(profile: &Profile, trust: bool) -> Result<(), WorkerError> {
    if profile.permission == PermissionMode::Trust && !trust {
        return Err(WorkerError::NoTrust(profile.origins.get("permission").clone()));
    }
    Ok(())
}

fn options(request: &WorkRequest, settings: &Settings) -> WorkOptions {
    let agents = request.agents.iter().cloned().collect();
    WorkOptions {
        policy: Policy::Queue(QueuePolicy {
            at_once: settings.work.workers,
            agents: (!request.agents.is_empty()).then_some(agents),
            session: request.session.clone(),
            until_idle: request.until_idle,
            once: request.once,
        }),
        max_cost: request.max_cost,
        lease: settings.work.lease.0,
        limits: settings.limits(),
        look_every: Some(LOOK_EVERY),
        seed: None,
    }
}
