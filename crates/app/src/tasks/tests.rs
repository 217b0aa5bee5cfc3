//! Who may change a task, and what becomes of it.

use std::sync::Arc;

use camino::Utf8PathBuf;
use rehearsal_agent::environment::Variables;
use rehearsal_agent::result_file::read_report;
use rehearsal_core::{NewSession, Person, SessionName, Timestamp, Via, VirtualClock};

use super::*;
use crate::caller::Caller;
use crate::places::WorktreesError;
use crate::project::Project;
use crate::sessions::{self, SessionError};
use crate::{gc, init, lanes, scenarios};

/// A repository, and a person in it.
struct Scene {
    person: Caller,
    _directory: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        fs_err::create_dir_all(root.join(".rehearsal")).unwrap();
        let clock = Arc::new(VirtualClock::starting_at(Timestamp(1_000)));
        let data = ("XDG_DATA_HOME".to_owned(), root.join("data").into_string());
        let environment = Variables::from([data]);
        let person = Caller {
            directory: root,
            environment,
            clock,
            person: Person { name: "ada".into(), host: "engine".into(), via: Via::NoTerminal },
            is_below_agent: false,
        };
        Self { person, _directory: directory }
    }

    fn project(&self) -> Project {
        Project::open(&self.person).unwrap()
    }

    async fn with_session(self, name: &str) -> Self {
        let session = NewSession {
            name: SessionName::new(name).unwrap(),
            description: String::new(),
            context: String::new(),
            criteria: Vec::new(),
        };
        sessions::create(&self.project(), session).await.unwrap();
        self
    }

    async fn task(&self, title: &str) -> String {
        let request = TaskRequest { title: title.into(), ..TaskRequest::default() };
        add(&self.project(), request).await.unwrap().task.id.to_string()
    }

    /// An agent in a run of this repository.
    fn agent(&self) -> Caller {
        let run = self.project().runs_dir().unwrap().join("7qm");
        fs_err::create_dir_all(&run).unwrap();
        let environment = [("REHEARSAL_RUN_ID", "7qm"), ("REHEARSAL_TASK_DIR", run.as_str())];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = self.person.environment.clone().into_iter().chain(environment).collect();
        Caller { environment, ..self.person.clone() }
    }
}

#[tokio::test]
async fn an_agent_cannot_decide_for_a_person() {
    let scene = Scene::new().with_session("hello").await;
    let task = scene.task("Say hello").await;
    let project = Project::open(&scene.agent()).unwrap();
    let is_refused = |error: TaskError| matches!(error, TaskError::Project(ProjectError::InsideRun(_)));
    for refused in [
        approve(&project, &task, String::new()).await,
        reject(&project, &task, "no".into()).await,
        unblock(&project, std::slice::from_ref(&task), None).await.map(|mut tasks| tasks.remove(0)),
        cancel(&project, &task).await,
        retry(&project, &task).await,
        edit(&project, &task, EditRequest::default()).await,
    ] {
        assert!(is_refused(refused.unwrap_err()));
    }
    assert!(is_refused(add(&project, TaskRequest::default()).await.unwrap_err()));
    let lane = rehearsal_core::Lane::All;
    let paused = lanes::pause(&project, lane.clone(), String::new(), None).await;
    assert!(matches!(paused, Err(ProjectError::InsideRun(_))));
    assert!(matches!(lanes::resume(&project, lane).await, Err(ProjectError::InsideRun(_))));
    assert!(matches!(scenarios::write_starter(&project), Err(ProjectError::InsideRun(_))));
    let mode = rehearsal_forge::GcMode::DryRun;
    assert!(matches!(gc::gc(&project, mode).await, Err(WorktreesError::Project(ProjectError::InsideRun(_)))));
    assert!(init::init(&project, init::Existing::Replace).await.is_err());
    assert!(!project.config_path().exists());
    assert_eq!(show(&project, &task).await.unwrap().status, "todo");
}

#[tokio::test]
async fn an_agent_reports_and_the_task_stays_as_it_is() {
    let scene = Scene::new().with_session("hello").await;
    let task = scene.task("Say hello").await;
    let agent = scene.agent();
    let noted = finish(&agent, &task, None).await.unwrap();
    assert!(matches!(noted, Noted::Reported(document) if document.reported && document.status == "todo"));
    assert!(finish(&agent, "nothing", None).await.is_err(), "an agent learns at once of a wrong id");
    let written = sessions::add_progress(&agent, None, "half done".into()).await.unwrap();
    assert!(written.reported);
    let report = read_report(agent.inside_run().unwrap().directory());
    assert_eq!((report.tasks.len(), report.progress.as_slice()), (1, ["half done".to_owned()].as_slice()));
    assert_eq!(show(&scene.project(), &task).await.unwrap().status, "todo");
}

#[tokio::test]
async fn a_person_finishes_a_task_at_once() {
    let scene = Scene::new().with_session("hello").await;
    let task = scene.task("Say hello").await;
    let noted = finish(&scene.person, &task, None).await.unwrap();
    assert!(matches!(noted, Noted::Changed(changed) if changed.document.status == "done"));
}

#[tokio::test]
async fn a_rejection_says_what_has_to_change() {
    let scene = Scene::new().with_session("hello").await;
    let task = scene.task("Say hello").await;
    let rejected = reject(&scene.project(), &task, "  ".into()).await;
    assert!(matches!(rejected, Err(TaskError::NoComment)));
}

#[tokio::test]
async fn the_session_can_be_left_out_if_there_is_only_one() {
    let scene = Scene::new();
    let request = || TaskRequest { title: "Say hello".into(), ..TaskRequest::default() };
    let refused = add(&scene.project(), request()).await;
    assert!(matches!(refused, Err(TaskError::Session(SessionError::NoSession))));
    let scene = scene.with_session("hello").await;
    let added = add(&scene.project(), request()).await.unwrap();
    assert_eq!(added.task.session.unwrap().as_str(), "hello");
    let scene = scene.with_session("other").await;
    let refused = add(&scene.project(), request()).await;
    let Err(TaskError::Session(SessionError::SeveralSessions { names })) = refused else {
        panic!("one of two sessions was chosen");
    };
    assert_eq!(names, ["hello", "other"]);
}

#[tokio::test]
async fn a_status_that_no_task_can_have_is_refused_with_a_suggestion() {
    let scene = Scene::new();
    let filter = TaskFilter {
        session: None,
        statuses: vec!["blokced".into()],
        state: None,
        label: None,
        text: None,
        all: false,
        limit: 10,
        after: None,
    };
    let Err(TaskError::UnknownWord { near, .. }) = list(&scene.project(), filter).await else {
        panic!("nobody noticed");
    };
    assert_eq!(near.as_deref(), Some("blocked"));
}
