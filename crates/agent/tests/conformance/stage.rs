//! A repository, the stand-in as an agent's CLI, and its driver.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::clis::KNOWN;
use rehearsal_agent::driver::Program;
use rehearsal_agent::probe::probe;
use rehearsal_agent::{Agent, Driver, Graces, Permission, ProcessAgent, RunReport, RunRequest};
use rehearsal_core::{Activity, Budget, RunId, TaskId, Timestamp, VirtualClock};
use rehearsal_process::{Launcher, SHIM_ARGUMENT, processes_of_run};
use tokio_util::sync::CancellationToken;

/// The time that the stand-in takes for now.
pub(crate) const NOW: Timestamp = Timestamp(1_800_000_000_000);
/// Longer than anything takes; a test that reaches it has failed.
const FOR_EVER: Duration = Duration::from_mins(1);
/// Short enough to be reached by one that says nothing more.
const SOON: Duration = Duration::from_millis(200);

pub(crate) struct Stage {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
    pub(crate) request: RunRequest,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) seen: Arc<Mutex<Vec<Activity>>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let working_dir = root.join("work");
        std::fs::create_dir(&working_dir).unwrap();
        git(&root, &working_dir, &["init", "--quiet", "--initial-branch=main"]);
        let identity = ["-c", "user.name=T", "-c", "user.email=t@t"];
        let commit = ["commit", "--quiet", "--allow-empty", "-m", "init"];
        git(&root, &working_dir, &[&identity[..], &commit[..]].concat());
        let run = run_id();
        let request = RunRequest {
            run: run.clone(),
            task: TaskId::new("task1").unwrap(),
            prompt: "Add a greeting.".to_owned(),
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
        let clock = Arc::new(VirtualClock::starting_at(NOW));
        Self { _dir: dir, root, request, clock, seen: Arc::default() }
    }

    /// The agent, put together as for a real CLI: found, asked for its flags, driven.
    pub(crate) async fn agent(&self, kind: &str, script: &str) -> ProcessAgent {
        let path = self.root.join("script.yaml");
        std::fs::write(&path, script).unwrap();
        let cli = KNOWN.named(kind).unwrap();
        let args: Vec<String> = ["--as", kind, "--script", path.as_str()].map(str::to_owned).to_vec();
        let ours = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), self.root.to_string()),
        ]);
        let program = example("mock_agent");
        let launcher = Launcher::new(example("supervise"), [SHIM_ARGUMENT.to_owned()]);
        let asked = probe(cli, program.as_str(), &args, &ours, &launcher, &self.request.working_dir);
        let capabilities = asked.await.unwrap().capabilities;
        let program = Program::from(program).with_args(args).with_capabilities(capabilities);
        let driver = Driver::new(cli, program);
        ProcessAgent::new(driver, ours, self.clock.clone())
            .with_launcher(launcher)
            .with_graces(Graces { terminate: FOR_EVER, linger: SOON })
    }

    /// Plays one run to its end. No process may be left of it.
    pub(crate) async fn play(&mut self, kind: &str, actions: &str) -> RunReport {
        if actions.contains("hang") && !actions.contains("linger") {
            self.request.idle_timeout = Some(SOON);
        }
        let agent = self.agent(kind, &format!("run:\n{actions}")).await;
        self.run(&agent).await
    }

    pub(crate) async fn run(&self, agent: &dyn Agent) -> RunReport {
        let seen = self.seen.clone();
        let watch = Arc::new(move |activity| seen.lock().unwrap().push(activity));
        let report = agent.run(self.request.clone(), watch, CancellationToken::new()).await;
        assert_eq!(processes_of_run(&self.request.run), [], "a process outlived its run");
        report
    }
}

fn git(home: &Utf8Path, directory: &Utf8Path, args: &[&str]) {
    let status = std::process::Command::new("git")
        .args(args)
        .current_dir(directory)
        .env("HOME", home)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status();
    assert!(status.unwrap().success(), "git {args:?}");
}

/// A run id that no other test uses, also not in a test run side by side.
fn run_id() -> RunId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    RunId::new(format!("c{}-{next}", std::process::id())).unwrap()
}

/// An example of this crate; test binaries are in `deps`, next to `examples`.
fn example(name: &str) -> Utf8PathBuf {
    let test = Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        path.is_file(),
        "`{path}` is not built: run `cargo test -p rehearsal-agent`, which builds examples"
    );
    path
}
