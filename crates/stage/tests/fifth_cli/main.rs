//! A new agent CLI is one description: a made-up one goes all the way without a change anywhere else.
#![expect(clippy::unwrap_used, reason = "a test stops where something goes wrong")]
#![expect(clippy::disallowed_methods, reason = "a test prepares its repository with git")]

#[path = "../../examples/parrot.rs"]
#[expect(dead_code, reason = "the example is a program too")]
mod parrot;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::Utf8PathBuf;
use parrot::{CLIS, PARROT};
use rehearsal_agent::clis::{Endpoint, Retries, StageModel};
use rehearsal_agent::driver::Program;
use rehearsal_agent::environment::Variables;
use rehearsal_agent::probe::probe;
use rehearsal_agent::{Agent as _, Driver, Permission, ProcessAgent, RunReport, RunRequest};
use rehearsal_core::{Budget, Outcome, RunId, TaskId, Timestamp, VirtualClock};
use rehearsal_llm::cassette::{Cassette, Matching, Normaliser, Place, Player, Recorder, Rule, Secrets};
use rehearsal_process::{Launcher, SHIM_ARGUMENT};
use rehearsal_stage::{
    Answered, Play, RecordingPlay, ReplaySpeed, ReplayingPlay, Script, ScriptedPlay, Stage, Upstreams,
};
use tokio_util::sync::CancellationToken;

const SCRIPT: &str =
    "turns:\n  - do:\n      - write_file: { path: hello.txt, content: hi }\n  - say: Done.\n";

/// A repository and a home.
struct Cage {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl Cage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        for name in ["work", "home", "run"] {
            fs_err::create_dir(root.join(name)).unwrap();
        }
        let status = std::process::Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(root.join("work"))
            .env("HOME", &root)
            .status();
        assert!(status.unwrap().success());
        Self { _dir: dir, root }
    }

    fn ours(&self) -> Variables {
        let path = std::env::var("PATH").unwrap();
        BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), self.root.join("home").to_string())])
    }

    fn place(&self) -> Place {
        let named = |name: &str| vec![self.root.join(name).to_string()];
        Place { work_dir: named("work"), home: named("home"), temp: Vec::new() }
    }

    async fn run(&self, program: Program, env: Variables) -> RunReport {
        let request = RunRequest {
            run: RunId::new(format!("parrot{}", std::process::id())).unwrap(),
            task: TaskId::new("task1").unwrap(),
            prompt: "Write hello.txt".to_owned(),
            working_dir: self.root.join("work"),
            run_dir: self.root.join("run"),
            model: None,
            system_prompt: None,
            permission: Permission::default(),
            allow: Vec::new(),
            timeout: None,
            idle_timeout: None,
            calls: rehearsal_agent::CallLimits::default(),
            budget: Budget::default(),
            env_grants: Vec::new(),
            env,
            resume: None,
            lease: None,
            rendezvous: None,
        };
        let clock = Arc::new(VirtualClock::starting_at(Timestamp(0)));
        let agent =
            ProcessAgent::new(Driver::new(&PARROT, program), self.ours(), clock).with_launcher(launcher());
        agent.run(request, Arc::new(|_| {}), CancellationToken::new()).await
    }

    /// The CLI itself, asking a stage where this is played.
    async fn perform(&self, play: Arc<dyn Play>) -> RunReport {
        let stage = Stage::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), play).unwrap();
        let url = format!("http://{}", stage.address());
        let setup =
            PARROT.on_stage(Endpoint { url: &url, model: StageModel::Any, retries: Retries::Default });
        setup.write_files(&self.root.join("home")).unwrap();
        let report = self.run(Program::from(program()), setup.environment()).await;
        stage.close().await;
        report
    }

    fn assert_done(&self, report: &RunReport) {
        assert_eq!(report.verdict.outcome, Outcome::Done, "{report:#?}");
        assert_eq!(fs_err::read_to_string(self.root.join("work/hello.txt")).unwrap(), "hi");
    }
}

/// Examples are beside `deps`, in which the tests are.
fn program() -> Utf8PathBuf {
    let test = Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/parrot");
    assert!(path.is_file(), "`{path}` is not built: `cargo test -p rehearsal-stage` builds examples");
    path
}

fn launcher() -> Launcher {
    Launcher::new(program(), [SHIM_ARGUMENT.to_owned()])
}

fn scripted() -> Arc<ScriptedPlay> {
    Arc::new(ScriptedPlay::new(Script::parse(SCRIPT).unwrap(), &CLIS.model_clients()))
}

#[tokio::test]
async fn its_driver_runs_its_stand_in() {
    let cage = Cage::new();
    let script = cage.root.join("script.yaml");
    let args: Vec<String> =
        ["mock-agent", "--as", "parrot", "--script", script.as_str()].map(str::to_owned).to_vec();
    let asked =
        probe(&PARROT, program().as_str(), &args, &cage.ours(), &launcher(), &cage.root).await.unwrap();
    let capabilities = asked.capabilities.unwrap();
    assert_eq!((capabilities.version.as_deref(), capabilities.has("--json")), (Some("1.2.3"), true));
    let program = Program::from(program()).with_args(args).with_capabilities(capabilities);

    fs_err::write(&script, "run:\n- write: { path: hello.txt, content: hi }\n- say: Done.\n").unwrap();
    cage.assert_done(&cage.run(program.clone(), Variables::new()).await);
    fs_err::write(&script, "run:\n- error: { kind: quota }\n").unwrap();
    let spent = cage.run(program, Variables::new()).await;
    assert_eq!(spent.verdict.outcome, Outcome::QuotaExhausted { until: None });
}

#[tokio::test]
async fn it_works_on_a_stage() {
    let cage = Cage::new();
    let play = scripted();
    cage.assert_done(&cage.perform(play.clone()).await);
    let report = play.report();
    assert!(report.is_clean(), "{report:#?}");
    let first = report.exchanges.first().unwrap();
    assert_eq!(first.answered, Answered::Side, "it asks for a name before it begins");
    assert_eq!(fs_err::read_to_string(cage.root.join("home/.parrot/settings")).unwrap(), "updates = never\n");
}

#[tokio::test]
async fn what_it_asked_is_recorded_and_played_in_another_place() {
    let first = Cage::new();
    let path = first.root.join("cassette.jsonl");
    let rules = Rule::for_client(PARROT.requests.as_ref());
    let secrets = Secrets::default();
    let normaliser = Normaliser::new(&rules, &first.place(), &secrets).unwrap();
    let recorder =
        Recorder::create(path.as_std_path(), PARROT.name, Some("1.2.3"), normaliser, &secrets).unwrap();
    let vendor = Stage::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), scripted()).unwrap();
    let upstreams = Upstreams::one(&format!("http://{}", vendor.address()));
    let recording = Arc::new(RecordingPlay::new(recorder, upstreams).unwrap());
    first.assert_done(&first.perform(recording.clone()).await);
    recording.finish().await.unwrap();
    vendor.close().await;

    let another = Cage::new();
    let open = || Cassette::open(path.as_std_path()).unwrap();
    let player =
        Player::new(open(), Matching::Strict, &CLIS.model_clients(), &another.place(), &secrets).unwrap();
    let play = Arc::new(ReplayingPlay::new(player, ReplaySpeed::Instant));
    another.assert_done(&another.perform(play.clone()).await);
    assert!(play.report().is_faithful(), "{:#?}", play.report());

    let unknown = Player::new(open(), Matching::Strict, &[], &another.place(), &secrets).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no normaliser `parrot`");
}
