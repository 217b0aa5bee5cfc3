//! Where the stories play: a session named `work`, a clock that jumps, and an ear for what the loop tells.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::{RunRequest, ScriptedAgent};
use rehearsal_core::config::{Overrides, Profile, resolve};
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::Limits;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, AgentName, Clock, NewSession, NewTask, Notice, Run, RunId, SessionName, Task, TaskId, Timestamp,
    VirtualClock, WorkerId,
};
use rehearsal_engine::{
    Policy, Role, Roles, SessionPolicy, SetupError, StopSwitch, Undisturbed, WorkError, WorkEvent,
    WorkOptions, WorkSummary, Worker, Workspace, prompt,
};
use rehearsal_store::{Change, ClaimRequest, Committed, RunQuery, SqliteStore, Store};

/// A moment without meaning, in milliseconds.
pub(crate) const BEGINNING: Timestamp = Timestamp(1_000_000);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// So long that no story comes near its heartbeats.
const LEASE: Duration = Duration::from_secs(3600 * 24 * 365 * 30);

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
    pub(crate) options: SessionPolicy,
    pub(crate) max_cost: Option<f64>,
    pub(crate) limits: Limits,
    pub(crate) profile: Profile,
    pub(crate) template: String,
    pub(crate) stop: StopSwitch,
    pub(crate) events: Arc<Mutex<Vec<WorkEvent>>>,
    directory: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = resolve(&[], Overrides::default(), Overrides::default()).unwrap();
        let stage = Self {
            store: Arc::new(SqliteStore::open(directory.path()).await.unwrap()),
            clock: Arc::new(VirtualClock::starting_at(BEGINNING)),
            options: SessionPolicy {
                session: session("work"),
                agent: AgentName::new("implementer").unwrap(),
                iterations: 10,
                max_failures: 3,
                max_wait: 6 * HOUR,
                accept_complete: false,
                message: None,
                test_command: None,
            },
            max_cost: None,
            limits: Limits::default(),
            profile: settings.profile().unwrap().clone(),
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

    pub(crate) fn worker(&self, agent: &Arc<ScriptedAgent>) -> Worker {
        let events = Arc::clone(&self.events);
        let settings = resolve(&[], Overrides::default(), Overrides::default()).unwrap();
        let role = Role {
            agent: Arc::clone(agent) as _,
            profile: self.profile.clone(),
            template: Some(self.template.clone()),
        };
        Worker {
            store: Arc::clone(&self.store),
            clock: Arc::new(Stopped(Arc::clone(&self.clock) as _)),
            roles: Arc::new(Cast(role)),
            workspace: Workspace::Checkout(self.directory()),
            state_dir: self.directory(),
            testing: settings.testing.clone(),
            quality: settings.quality.rules(),
            variables: std::env::vars().collect(),
            options: WorkOptions {
                policy: Policy::Session(self.options.clone()),
                max_cost: self.max_cost,
                lease: LEASE,
                limits: self.limits.clone(),
                look_every: None,
                seed: None,
            },
            reporter: Arc::new(move |event| events.lock().unwrap().push(event)),
            stop: self.stop.clone(),
            moments: Arc::new(Undisturbed),
        }
    }

    pub(crate) async fn run(&self, agent: &Arc<ScriptedAgent>) -> WorkSummary {
        self.try_run(agent).await.unwrap()
    }

    pub(crate) async fn try_run(&self, agent: &Arc<ScriptedAgent>) -> Result<WorkSummary, WorkError> {
        // The deadline is for a loop that never ends; no story comes near it.
        tokio::time::timeout(MINUTE, self.worker(agent).run()).await.unwrap()
    }

    pub(crate) async fn commit(&self, changes: Vec<Change>) {
        self.store.commit(Actor::User, self.clock.now(), changes).await.unwrap();
    }

    /// Another worker claims the next task of a session, for an hour.
    pub(crate) async fn claim(&self, worker: &str, run: &str, session: Option<SessionName>) -> Task {
        let worker = WorkerId::new(worker).unwrap();
        let request = ClaimRequest {
            worker: worker.clone(),
            run: RunId::new(run).unwrap(),
            lease: HOUR,
            agents: None,
            stand_in: None,
            session,
            limits: Limits::default(),
            may_take_over: false,
        };
        let changes = vec![Change::ClaimNext(Box::new(request))];
        let claimed = self.store.commit(Actor::Worker(worker), self.clock.now(), changes).await.unwrap();
        claimed.into_iter().find_map(Committed::task).unwrap()
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

    pub(crate) fn told(&self) -> Vec<WorkEvent> {
        self.events.lock().unwrap().clone()
    }

    /// The warnings so far, with the runs numbered in the order in which they began.
    pub(crate) async fn warnings(&self) -> Vec<String> {
        let runs = self.runs().await;
        let warnings = self.told().into_iter().filter_map(|event| match event {
            // The stage has no tests.
            WorkEvent::Warning { notice: Notice::NothingTested } => None,
            WorkEvent::Warning { notice } => Some(numbered(&runs, notice.to_string())),
            _ => None,
        });
        warnings.collect()
    }

    /// The waits that the loop told of: why, and how long after the beginning they are over.
    pub(crate) fn waits(&self) -> Vec<(String, Duration)> {
        let waits = self.told().into_iter().filter_map(|event| match event {
            WorkEvent::Waiting { reason, until } => Some((reason?, until?.since(BEGINNING))),
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

/// A clock that jumps to where someone waits for, but not to the next heartbeat.
pub(crate) struct Stopped(pub(crate) Arc<dyn Clock>);

#[async_trait::async_trait]
impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    async fn sleep_until(&self, until: Timestamp) {
        if until.since(self.now()) >= LEASE / 3 {
            return std::future::pending().await;
        }
        self.0.sleep_until(until).await;
    }
}

/// The one agent of a story.
struct Cast(Role);

#[async_trait::async_trait]
impl Roles for Cast {
    async fn role(&self, _name: &AgentName) -> Option<Result<Role, SetupError>> {
        Some(Ok(self.0.clone()))
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
