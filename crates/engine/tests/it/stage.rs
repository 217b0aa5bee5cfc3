//! Where the stories play: a session named `work`, a clock that jumps, and an ear for what the loop tells.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::{RunRequest, ScriptedAgent};
use rehearsal_core::config::{Overrides, Profile, resolve};
use rehearsal_core::flow::Flow;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, AgentName, Clock, NewSession, NewTask, Run, SessionName, Task, TaskId, Timestamp, VirtualClock,
};
use rehearsal_engine::{LoopError, LoopEvent, LoopOptions, LoopSummary, SessionLoop, StopSwitch, prompt};
use rehearsal_store::{Change, RunQuery, SqliteStore, Store};

/// A moment without meaning, in milliseconds.
pub(crate) const BEGINNING: Timestamp = Timestamp(1_000_000);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// Plays a story. However it goes, the store must be sound at its end.
pub(crate) fn play(story: impl AsyncFnOnce(&mut Stage)) {
    block_on(async {
        let mut stage = Stage::new().await;
        story(&mut stage).await;
        assert_eq!(stage.store.verify().await.unwrap(), Vec::<String>::new());
    });
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) struct Stage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) options: LoopOptions,
    pub(crate) profile: Profile,
    pub(crate) agent_name: AgentName,
    pub(crate) template: String,
    pub(crate) stop: StopSwitch,
    pub(crate) events: Arc<Mutex<Vec<LoopEvent>>>,
    directory: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = resolve(&[], Overrides::default(), Overrides::default()).unwrap();
        let stage = Self {
            store: Arc::new(SqliteStore::open(directory.path()).await.unwrap()),
            clock: Arc::new(VirtualClock::starting_at(BEGINNING)),
            options: LoopOptions {
                session: session("work"),
                iterations: 10,
                max_failures: 3,
                max_cost: None,
                max_wait: 6 * HOUR,
                accept_complete: false,
                message: None,
                test_command: None,
            },
            profile: settings.profile().unwrap().clone(),
            agent_name: AgentName::new("implementer").unwrap(),
            template: prompt::SHIPPED_TEMPLATE.to_owned(),
            stop: StopSwitch::default(),
            events: Arc::default(),
            directory,
        };
        stage.commit(vec![new_session("work")]).await;
        stage
    }

    pub(crate) fn directory(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.directory.path()).unwrap().to_owned()
    }

    pub(crate) fn session_loop(&self, agent: &Arc<ScriptedAgent>) -> SessionLoop {
        let events = Arc::clone(&self.events);
        SessionLoop {
            store: Arc::clone(&self.store),
            agent: Arc::clone(agent) as _,
            agent_name: self.agent_name.clone(),
            profile: self.profile.clone(),
            clock: Arc::clone(&self.clock) as _,
            working_dir: self.directory(),
            runs_dir: self.directory().join("runs"),
            template: self.template.clone(),
            options: self.options.clone(),
            reporter: Arc::new(move |event| events.lock().unwrap().push(event)),
            stop: self.stop.clone(),
        }
    }

    pub(crate) async fn run(&self, agent: &Arc<ScriptedAgent>) -> LoopSummary {
        self.try_run(agent).await.unwrap()
    }

    pub(crate) async fn try_run(&self, agent: &Arc<ScriptedAgent>) -> Result<LoopSummary, LoopError> {
        // The deadline is for a loop that never ends; no story comes near it.
        let session_loop = self.session_loop(agent);
        tokio::time::timeout(MINUTE, session_loop.run()).await.unwrap()
    }

    pub(crate) async fn commit(&self, changes: Vec<Change>) {
        self.store.commit(Actor::User, self.clock.now(), changes).await.unwrap();
    }

    pub(crate) async fn add(&self, id: &str, task: NewTask) {
        self.commit(vec![add(id, task)]).await;
    }

    /// Adds tasks that say no more than their names.
    pub(crate) async fn tasks(&self, ids: &[&str]) {
        for id in ids {
            self.add(id, titled(id)).await;
        }
    }

    pub(crate) async fn task(&self, id: &str) -> Task {
        self.store.task(&task_id(id)).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, id: &str) -> String {
        self.task(id).await.status().to_owned()
    }

    /// All runs, oldest first.
    pub(crate) async fn runs(&self) -> Vec<Run> {
        let mut runs = self.store.runs(&RunQuery::default()).await.unwrap();
        runs.reverse();
        runs
    }

    pub(crate) fn told(&self) -> Vec<LoopEvent> {
        self.events.lock().unwrap().clone()
    }

    /// The warnings so far, with the runs numbered in the order in which they began.
    pub(crate) async fn warnings(&self) -> Vec<String> {
        let runs = self.runs().await;
        let warnings = self.told().into_iter().filter_map(|event| match event {
            LoopEvent::Warning { message } => Some(numbered(&runs, message)),
            _ => None,
        });
        warnings.collect()
    }

    /// The waits that the loop told of: why, and how long after the beginning they are over.
    pub(crate) fn waits(&self) -> Vec<(String, Duration)> {
        let waits = self.told().into_iter().filter_map(|event| match event {
            LoopEvent::Waiting { reason, until, .. } => Some((reason, until.since(BEGINNING))),
            _ => None,
        });
        waits.collect()
    }

    /// What a person in another terminal does meanwhile: an effect for a scripted run.
    pub(crate) fn person(
        &self,
        changes: impl Fn() -> Vec<Change> + Send + Sync + 'static,
    ) -> impl Fn(&RunRequest) + Send + Sync + 'static {
        let directory = self.directory();
        let clock = Arc::clone(&self.clock);
        move |_: &RunRequest| {
            let (directory, changes, now) = (directory.clone(), changes(), clock.now());
            let terminal = std::thread::spawn(move || {
                block_on(async {
                    let store = SqliteStore::open(directory.as_std_path()).await.unwrap();
                    store.commit(Actor::User, now, changes).await.unwrap();
                });
            });
            terminal.join().unwrap();
        }
    }
}

/// Run ids are random: a story names them by their order.
pub(crate) fn numbered(runs: &[Run], text: String) -> String {
    runs.iter()
        .enumerate()
        .fold(text, |text, (at, run)| text.replace(run.start.id.as_str(), &format!("#{}", at + 1)))
}

pub(crate) fn session(name: &str) -> SessionName {
    SessionName::new(name).unwrap()
}

pub(crate) fn new_session(name: &str) -> Change {
    Change::AddSession(NewSession {
        name: session(name),
        description: format!("The {name}"),
        context: String::new(),
        criteria: Vec::new(),
    })
}

pub(crate) fn task_id(id: &str) -> TaskId {
    TaskId::new(id).unwrap()
}

pub(crate) fn titled(title: &str) -> NewTask {
    NewTask { session: Some(session("work")), title: title.into(), ..NewTask::default() }
}

pub(crate) fn after(title: &str, others: &[&str]) -> NewTask {
    NewTask { depends_on: others.iter().map(|id| task_id(id)).collect(), ..titled(title) }
}

pub(crate) fn add(id: &str, task: NewTask) -> Change {
    let flow = Arc::new(Flow::shipped("loop").unwrap());
    Change::AddTask { task: Box::new(task), id: task_id(id), flow }
}

pub(crate) fn change(id: &str, input: TaskInput) -> Change {
    Change::ChangeTask { id: task_id(id), input }
}
