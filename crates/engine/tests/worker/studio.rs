//! Where the stories play: a repository with a remote, a local forge, the real store, and agents that do as told.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::{RunRequest, ScriptedAgent, ScriptedRun};
use rehearsal_core::config::{Layer, Origin, Overrides, Settings, resolve};
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::Limits;
use rehearsal_core::{Actor, AgentName, Clock, NewTask, Outcome, Task, TaskId};
use rehearsal_engine::{
    Landing, Moments, Outlet, Policy, QueuePolicy, Role, Roles, SetupError, StopSwitch, SystemClock,
    Undisturbed, WorkError, WorkEvent, WorkOptions, WorkSummary, Worker, Workspace,
};
use rehearsal_forge::{Local, WorktreeSettings, Worktrees};
use rehearsal_store::{Change, SqliteStore, Store};

/// The tests of the little repository: every `*.txt` must be free of the word `broken`.
const CHECK: &str = "! grep -l broken *.txt";
const CONFIG: &str = "testing:\n  framework: generic\n  command: sh check.sh\n  sandbox: { level: 'off' }\n";

pub(crate) struct Studio {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) events: Arc<Mutex<Vec<WorkEvent>>>,
    pub(crate) stop: StopSwitch,
    pub(crate) moments: Arc<dyn Moments>,
    pub(crate) at_once: u32,
    /// Only one task, and once.
    pub(crate) once: bool,
    pub(crate) limits: Limits,
    /// Each has worktrees and run directories of its own; the store and the remote are everyone's.
    pub(crate) machine: &'static str,
    agents: BTreeMap<&'static str, Arc<ScriptedAgent>>,
    settings: Settings,
    directory: tempfile::TempDir,
}

/// Plays a story. However it goes, the store must be sound at its end, and nothing may be left over.
pub(crate) fn play(story: impl AsyncFnOnce(&mut Studio)) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let mut studio = Studio::new().await;
        story(&mut studio).await;
        assert_eq!(studio.store.verify().await.unwrap(), Vec::<String>::new());
        let left = git(&studio.root(), &["for-each-ref", "refs/rehearsal/fetch", "refs/rehearsal/staging"]);
        assert_eq!(left, "", "private references were left over");
    });
}

impl Studio {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let layer = Layer::parse(CONFIG, Origin::file("config.yaml")).unwrap();
        let settings = resolve(&[layer], Overrides::default(), Overrides::default()).unwrap();
        let state = directory.path().join("state");
        let studio = Self {
            store: Arc::new(SqliteStore::open(&state).await.unwrap()),
            events: Arc::default(),
            stop: StopSwitch::default(),
            moments: Arc::new(Undisturbed),
            at_once: 1,
            once: false,
            limits: Limits::default(),
            machine: "here",
            agents: BTreeMap::new(),
            settings,
            directory,
        };
        let (root, remote) = (studio.root(), studio.remote());
        fs_err::create_dir_all(&root).unwrap();
        git(&studio.path(), &["init", "--quiet", "--bare", "--initial-branch=main", remote.as_str()]);
        git(&root, &["init", "--quiet", "--initial-branch=main"]);
        fs_err::write(root.join("check.sh"), CHECK).unwrap();
        fs_err::write(root.join("a.txt"), "one\n").unwrap();
        commit_all(&root, "begin");
        git(&root, &["remote", "add", "origin", remote.as_str()]);
        git(&root, &["push", "--quiet", "origin", "main"]);
        studio
    }

    fn path(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.directory.path()).unwrap().to_owned()
    }

    fn state_dir(&self) -> Utf8PathBuf {
        self.path().join(format!("state-{}", self.machine))
    }

    pub(crate) fn root(&self) -> Utf8PathBuf {
        self.path().join("repo")
    }

    pub(crate) fn remote(&self) -> Utf8PathBuf {
        self.path().join("remote.git")
    }

    /// An agent for a role, which keeps its script from worker to worker.
    pub(crate) fn agent(&mut self, role: &'static str, agent: ScriptedAgent) -> Arc<ScriptedAgent> {
        let agent = Arc::new(agent);
        self.agents.insert(role, Arc::clone(&agent));
        agent
    }

    /// A gatekeeper that lets everything in.
    pub(crate) fn approving(&mut self) {
        self.agent("gatekeeper", ScriptedAgent::new().with_handler(|_| ScriptedRun::of(Outcome::Approved)));
    }

    pub(crate) async fn add(&self, id: &str, flow: &str, task: NewTask) -> Task {
        self.add_to(id, Flow::shipped(flow).unwrap(), task).await
    }

    pub(crate) async fn add_to(&self, id: &str, flow: Flow, task: NewTask) -> Task {
        let flow = Arc::new(flow);
        let task = Box::new(NewTask { title: format!("task {id}"), ..task });
        let add = Change::AddTask { task, id: TaskId::new(id).unwrap(), flow };
        self.commit(vec![add]).await.into_iter().next().unwrap().task().unwrap()
    }

    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Vec<rehearsal_store::Committed> {
        self.store.commit(Actor::User, SystemClock.now(), changes).await.unwrap()
    }

    pub(crate) async fn task(&self, id: &str) -> Task {
        self.store.task(&TaskId::new(id).unwrap()).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, id: &str) -> String {
        self.task(id).await.status().to_owned()
    }

    pub(crate) async fn work(&self) -> WorkSummary {
        self.try_work().await.unwrap()
    }

    /// Works until nothing is left to do. The deadline is for a worker that never ends.
    pub(crate) async fn try_work(&self) -> Result<WorkSummary, WorkError> {
        let worker = self.worker().await;
        tokio::time::timeout(Duration::from_secs(120), worker.run()).await.unwrap()
    }

    pub(crate) async fn worker(&self) -> Worker {
        let settings = WorktreeSettings { setup: None, keep_warm: 2 };
        let worktrees =
            Worktrees::open(&self.root(), &self.path().join(format!("worktrees-{}", self.machine)), settings)
                .unwrap();
        let events = Arc::clone(&self.events);
        Worker {
            store: Arc::clone(&self.store),
            clock: Arc::new(SystemClock),
            roles: Arc::new(Cast { agents: self.agents.clone(), settings: self.settings.clone() }),
            workspace: Workspace::Worktrees {
                worktrees: Arc::new(worktrees),
                outlet: Outlet {
                    remote: "origin".into(),
                    base: "main".into(),
                    forge: Arc::new(Local::open(&self.remote()).await.unwrap()),
                    landing: Landing::Ours,
                },
            },
            state_dir: self.state_dir(),
            testing: self.settings.testing.clone(),
            quality: self.settings.quality.rules(),
            variables: std::env::vars().collect(),
            options: WorkOptions {
                policy: Policy::Queue(QueuePolicy {
                    at_once: self.at_once,
                    agents: None,
                    session: None,
                    until_idle: true,
                    once: self.once,
                }),
                lease: Duration::from_secs(90),
                limits: self.limits.clone(),
                max_cost: None,
                look_every: None,
                seed: None,
            },
            reporter: Arc::new(move |event| events.lock().unwrap().push(event)),
            stop: self.stop.clone(),
            moments: Arc::clone(&self.moments),
        }
    }

    pub(crate) fn told(&self) -> Vec<WorkEvent> {
        self.events.lock().unwrap().clone()
    }

    /// The states that a task came through, as told.
    pub(crate) fn way_of(&self, id: &str) -> Vec<String> {
        let moves = self.told().into_iter().filter_map(|event| match event {
            WorkEvent::Moved { task, from, status, .. } if task.as_str() == id => {
                Some(format!("{from} -> {status}"))
            }
            _ => None,
        });
        moves.collect()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self.told().into_iter().filter_map(|event| match event {
            WorkEvent::Warning { notice } => Some(notice.to_string()),
            _ => None,
        });
        warnings.collect()
    }

    /// A file as the remote's base has it.
    pub(crate) fn on_main(&self, file: &str) -> String {
        git(&self.remote(), &["show", &format!("main:{file}")])
    }

    /// The subjects of the remote's base, newest first, without merges.
    pub(crate) fn landed(&self) -> Vec<String> {
        let log = git(&self.remote(), &["log", "--no-merges", "--format=%s", "main"]);
        log.lines().map(str::to_owned).collect()
    }

    /// What someone else pushes to the base meanwhile.
    pub(crate) fn someone_pushes(&self, file: &str, text: &str) {
        push_to_main(&self.path(), file, text);
    }
}

/// What someone else pushes to the base of the studio in a directory.
pub(crate) fn push_to_main(studio: &Utf8Path, file: &str, text: &str) {
    let clone = tempfile::tempdir().unwrap();
    let clone = Utf8Path::from_path(clone.path()).unwrap();
    git(studio, &["clone", "--quiet", "--branch=main", "remote.git", clone.as_str()]);
    fs_err::write(clone.join(file), text).unwrap();
    commit_all(clone, &format!("someone writes {file}"));
    git(clone, &["push", "--quiet", "origin", "main"]);
}

/// The agents of a story, by role.
struct Cast {
    agents: BTreeMap<&'static str, Arc<ScriptedAgent>>,
    settings: Settings,
}

#[async_trait]
impl Roles for Cast {
    async fn role(&self, name: &AgentName) -> Option<Result<Role, SetupError>> {
        let agent = self.agents.get(name.as_str())?;
        let profile = self.settings.profile_of(name)?.clone();
        Some(Ok(Role { agent: Arc::clone(agent) as _, profile, template: None }))
    }
}

/// A run that writes a file and commits it.
pub(crate) fn writes(file: &'static str, text: &'static str) -> ScriptedRun {
    ScriptedRun::of(Outcome::Done).effect(move |request: &RunRequest| {
        fs_err::write(request.working_dir.join(file), text).unwrap();
        commit_all(&request.working_dir, &format!("write {file}"));
    })
}

pub(crate) fn commit_all(dir: &Utf8Path, message: &str) {
    git(dir, &["add", "--all"]);
    git(
        dir,
        &[
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.org",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            message,
        ],
    );
}

pub(crate) fn git(dir: &Utf8Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Studio {
    /// A worker that dies in this process cannot be told from one that ended: its lock is put back, without a holder.
    pub(crate) fn leave_traces_of_death(&self) {
        let workers = self.told().into_iter().filter_map(|event| match event {
            WorkEvent::WorkStarted { worker, .. } => Some(worker),
            _ => None,
        });
        for worker in workers {
            fs_err::write(self.state_dir().join("workers").join(worker.as_str()), "").unwrap();
        }
    }
}
