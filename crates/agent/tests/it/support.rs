//! A place to run agents in, and ways to wait for what they do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::{
    Agent, Confinement, Containment, Graces, Permission, ProcessAgent, RunReport, RunRequest, Watch,
};
use rehearsal_core::{Activity, ActivityLine, Budget, RunId, TaskId, Timestamp, VirtualClock};
use rehearsal_process::{Launcher, ProcessId, RUN_ID_VARIABLE, SHIM_ARGUMENT, SpawnSpec};
use tokio_util::sync::CancellationToken;

use crate::line_driver::line_driver;

/// Longer than anything takes; a test that reaches it has failed.
pub(crate) const FOR_EVER: Duration = Duration::from_mins(1);

/// The example binary, built by `cargo test` next to this one: it can be a shim, and a whole other process.
pub(crate) fn example() -> Utf8PathBuf {
    let test = Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/supervise");
    assert!(
        path.is_file(),
        "`{path}` is not built: run `cargo test -p rehearsal-agent`, which builds examples"
    );
    path
}

pub(crate) fn launcher() -> Launcher {
    Launcher::new(example(), [SHIM_ARGUMENT.to_owned()])
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + FOR_EVER;
    while !holds() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A run id that no other test uses, also not in a test run side by side.
pub(crate) fn run_id() -> RunId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    RunId::new(format!("t{}-{next}", std::process::id())).unwrap()
}

/// A run directory, a place to work in, and an id.
pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) run: RunId,
    pub(crate) request: RunRequest,
    pub(crate) ours: BTreeMap<String, String>,
    pub(crate) graces: Graces,
    pub(crate) confinement: Option<Confinement>,
    pub(crate) cancel: CancellationToken,
    pub(crate) seen: Arc<Mutex<Vec<Activity>>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let run = run_id();
        let working_dir = root.join("work");
        std::fs::create_dir(&working_dir).unwrap();
        let request = RunRequest {
            run: run.clone(),
            task: TaskId::new("task1").unwrap(),
            prompt: "do it".to_owned(),
            working_dir,
            run_dir: root.join("runs").join(run.as_str()),
            model: None,
            system_prompt: None,
            permission: Permission::default(),
            allow: Vec::new(),
            timeout: Some(FOR_EVER),
            idle_timeout: None,
            calls: rehearsal_agent::CallLimits::default(),
            budget: Budget::default(),
            env_grants: Vec::new(),
            env: BTreeMap::new(),
            resume: None,
            lease: None,
            rendezvous: None,
        };
        let ours = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        let graces = Graces { terminate: FOR_EVER, linger: FOR_EVER };
        let (cancel, seen) = (CancellationToken::new(), Arc::default());
        Self { _dir: dir, root, run, request, ours, graces, confinement: None, cancel, seen }
    }

    /// What is in the run's log of activities.
    pub(crate) fn logged(&self) -> Vec<Activity> {
        let text = self.file("activity.jsonl");
        let line = |line| serde_json::from_str::<ActivityLine>(line).unwrap().activity;
        text.lines().map(line).collect()
    }

    pub(crate) fn file(&self, name: &str) -> String {
        let bytes = std::fs::read(self.request.run_dir.join(name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn work(&self) -> &Utf8Path {
        &self.request.working_dir
    }

    /// Runs a shell script as the agent.
    pub(crate) async fn sh(&self, script: &str) -> RunReport {
        self.program("/bin/sh", &["-c", script]).await
    }

    pub(crate) async fn program(&self, program: &str, args: &[&str]) -> RunReport {
        self.agent(program, args).run(self.request.clone(), self.watch(), self.cancel.clone()).await
    }

    pub(crate) fn agent(&self, program: &str, args: &[&str]) -> ProcessAgent {
        let driver = line_driver(program, args.iter().map(|&arg| arg.to_owned()));
        let clock = Arc::new(VirtualClock::starting_at(Timestamp(1_000)));
        ProcessAgent::new(driver, self.ours.clone(), clock)
            .with_launcher(launcher())
            .with_graces(self.graces)
            .contained(self.confinement.clone().map_or_else(Containment::default, Containment::Sandbox))
    }

    pub(crate) fn watch(&self) -> Watch {
        let seen = self.seen.clone();
        Arc::new(move |activity| seen.lock().unwrap().push(activity))
    }

    /// The same below the agent: a script to be supervised.
    pub(crate) fn spec(&self, script: &str) -> SpawnSpec {
        SpawnSpec {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            cwd: self.work().to_owned(),
            env: BTreeMap::from([
                ("PATH".to_owned(), std::env::var("PATH").unwrap()),
                (RUN_ID_VARIABLE.to_owned(), self.run.to_string()),
            ]),
            sandbox: None,
        }
    }

    /// The processes whose numbers a script wrote to files `*.pid` in its working directory.
    pub(crate) fn noted_processes(&self) -> Vec<ProcessId> {
        let files = std::fs::read_dir(self.work()).unwrap().map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|extension| extension == "pid"))
            .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok())
            .filter_map(ProcessId::of)
            .collect()
    }
}

/// A script that starts every kind of runaway and then goes on with `then`: a child in the group, one in a
/// session of its own, a daemon forked twice, one that also cleared its environment, and one deaf to SIGTERM.
/// Each has noted its number before `then` begins.
pub(crate) fn runaways(then: &str) -> String {
    format!(
        r#"
        sh -c 'echo $$ > group.pid; exec sleep 1000' &
        setsid sh -c 'echo $$ > session.pid; exec sleep 1000' &
        setsid sh -c '(sh -c "echo \$\$ > daemon.pid; exec sleep 1000" &) ; exit 0' &
        setsid env -i "PATH=$PATH" sh -c '(setsid sh -c "echo \$\$ > nameless.pid; exec sleep 1000" &) ; exit 0' &
        setsid sh -c 'trap "" TERM HUP INT; echo $$ > deaf.pid; while :; do sleep 1000; done' &
        for name in group session daemon nameless deaf; do
            until [ -s $name.pid ]; do sleep 0.01; done
        done
        {then}
        "#
    )
}

/// How many processes [`runaways`] starts.
pub(crate) const RUNAWAYS: usize = 5;
