//! Sessions: named groups of tasks with a context and a progress log.

use rehearsal_agent::result_file::ReportLine;
use rehearsal_core::{Lane, NewSession, ProgressEntry, Session, SessionEdit, SessionName};
use rehearsal_store::{Change, Counts, Store};
use serde::Serialize;

use crate::caller::{Caller, ReportError};
use crate::lanes::{HeldLane, held};
use crate::project::{Project, ProjectError};

/// How many tasks a session has.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskCounts {
    /// Tasks that are not over.
    pub open: u64,
    /// Tasks that are done.
    pub done: u64,
    /// All tasks.
    pub total: u64,
    /// By the word that listings show.
    pub by_status: std::collections::BTreeMap<String, u64>,
}

impl From<Counts> for TaskCounts {
    fn from(counts: Counts) -> Self {
        Self { open: counts.open, done: counts.done, total: counts.total, by_status: counts.by_status }
    }
}

/// A session with its counts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionView {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Its tasks, counted.
    pub tasks: TaskCounts,
}

/// `session list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// By name.
    pub sessions: Vec<SessionView>,
}

/// `session show --json`, and what `new` and `context` answer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionDocument {
    /// The session.
    pub session: SessionView,
    /// The last lines of the journal, oldest first.
    pub progress: Vec<ProgressEntry>,
    /// What keeps its tasks from being claimed.
    #[serde(skip)]
    pub held: Vec<HeldLane>,
}

/// `session progress --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressDocument {
    /// Oldest first.
    pub progress: Vec<ProgressEntry>,
    /// Whether the line was only reported, because an agent wrote it.
    pub reported: bool,
}

/// Why a session cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum SessionError {
    #[error("there is no session yet")]
    NoSession,
    #[error("there is more than one session")]
    SeveralSessions { names: Vec<String> },
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for SessionError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// The lines of the progress log that are shown with a session.
const LAST_PROGRESS: u32 = 10;

/// Creates a session.
pub async fn create(project: &Project, session: NewSession) -> Result<SessionDocument, ProjectError> {
    project.caller.may_change()?;
    let name = session.name.clone();
    project.commit(vec![Change::AddSession(session)]).await?;
    document(project, &name, 0).await
}

/// Lists all sessions.
pub async fn list(project: &Project) -> Result<SessionList, ProjectError> {
    let sessions = project.store().await?.sessions().await?.into_iter();
    let view = |summary: rehearsal_store::SessionSummary| SessionView {
        session: summary.session,
        tasks: summary.counts.into(),
    };
    Ok(SessionList { sessions: sessions.map(view).collect() })
}

/// Shows a session, its tasks in numbers, and the last lines of its progress log.
pub async fn show(project: &Project, name: &SessionName) -> Result<SessionDocument, ProjectError> {
    document(project, name, LAST_PROGRESS).await
}

/// Changes what every run of a session is told.
pub async fn edit(
    project: &Project,
    name: &SessionName,
    edit: SessionEdit,
) -> Result<SessionDocument, ProjectError> {
    project.caller.may_change()?;
    project.commit(vec![Change::EditSession { name: name.clone(), edit }]).await?;
    document(project, name, 0).await
}

async fn document(project: &Project, name: &SessionName, last: u32) -> Result<SessionDocument, ProjectError> {
    let store = project.store().await?;
    let session = store.session(name).await?;
    let counts = store.count_tasks(Some(name)).await?;
    let progress = store.progress(name, last).await?;
    let mut held = held(project).await?;
    held.retain(|held| match &held.lane {
        Lane::All => true,
        Lane::Session(session) => session == name,
        Lane::Agent(_) => false,
    });
    Ok(SessionDocument { session: SessionView { session, tasks: counts.into() }, progress, held })
}

/// The last lines of a session's progress log, oldest first.
pub async fn progress(
    project: &Project,
    session: Option<SessionName>,
    last: u32,
) -> Result<ProgressDocument, SessionError> {
    let store = project.store().await?;
    let session = the_session(&*store, session).await?;
    Ok(ProgressDocument { progress: store.progress(&session, last).await?, reported: false })
}

/// Adds a line to a session's progress log. An agent's line is reported, and added when its run ends.
pub async fn add_progress(
    caller: &Caller,
    session: Option<SessionName>,
    text: String,
) -> Result<ProgressDocument, SessionError> {
    if let Some(inside) = caller.inside_run() {
        inside.report(&ReportLine::Progress { text })?;
        return Ok(ProgressDocument { progress: Vec::new(), reported: true });
    }
    let project = Project::open(caller)?;
    let store = project.store().await?;
    let session = the_session(&*store, session).await?;
    project.commit(vec![Change::AddProgress { session: session.clone(), run: None, text }]).await?;
    Ok(ProgressDocument { progress: store.progress(&session, 1).await?, reported: false })
}

/// The session that is meant when none is named: the only one.
pub async fn the_session(store: &dyn Store, named: Option<SessionName>) -> Result<SessionName, SessionError> {
    if let Some(name) = named {
        return Ok(store.session(&name).await?.name);
    }
    let mut names: Vec<SessionName> =
        store.sessions().await?.into_iter().map(|summary| summary.session.name).collect();
    match (names.pop(), names.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(SessionError::NoSession),
        (Some(last), false) => {
            names.push(last);
            Err(SessionError::SeveralSessions { names: names.iter().map(ToString::to_string).collect() })
        }
    }
}
