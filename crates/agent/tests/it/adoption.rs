//! A worker is killed; its agent goes on, and the next worker goes on with it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_agent::{Agent, BootInstant, Lease, LeaseKeeper, Orphan, RunReport};
use rehearsal_core::{Activity, Exit, Notice, Outcome};
use rehearsal_process::{AdoptError, ProcessId, processes_of_run};

use crate::git_facts::git_in;
use crate::support::{Bench, FOR_EVER, RUNAWAYS, eventually, example, runaways};

/// Takes all of its input, and waits for a file before it goes on.
const WAITS: &str = "cat > input; echo $$ > agent.pid; until [ -e go ]; do sleep 0.01; done";

impl Bench {
    fn socket(&self) -> Utf8PathBuf {
        self.root.join("shims").join(self.run.as_str())
    }

    /// Another process that runs a script as its agent, under a lease.
    fn worker(&self, lease: Duration, script: &str) -> Child {
        self.worker_with(lease, &[], script)
    }

    fn worker_with(&self, lease: Duration, options: &[&str], script: &str) -> Child {
        let millis = lease.as_millis().to_string();
        Command::new(example())
            .args(["--lease", &millis, self.socket().as_str()])
            .args(options)
            .args([self.request.run_dir.as_str(), self.work().as_str(), "/bin/sh", "-c", script])
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// The agent that such a process has started, once it can do without it.
    fn agent_of(&self, worker: &Child) -> ProcessId {
        eventually("the agent runs", || self.noted("agent").is_some());
        let agent = self.noted("agent").unwrap();
        assert_ne!(i32::try_from(worker.id()).unwrap(), agent.pid);
        agent
    }

    fn noted(&self, name: &str) -> Option<ProcessId> {
        let pid = std::fs::read_to_string(self.work().join(format!("{name}.pid"))).ok()?;
        ProcessId::of(pid.trim().parse().ok()?)
    }

    fn let_go_on(&self) {
        std::fs::write(self.work().join("go"), "").unwrap();
    }

    async fn found(&self) -> Orphan {
        Orphan::find(&self.socket(), &self.run).await.unwrap()
    }

    async fn adopt(&self, orphan: Orphan) -> RunReport {
        let (_keeper, lease) = lease();
        let agent = self.agent("/bin/false", &[]);
        agent.adopt(orphan, lease, self.watch(), self.cancel.clone()).await.unwrap()
    }

    fn told(&self) -> Vec<String> {
        let text = |activity: &Activity| match activity {
            Activity::Text { text } => text.clone(),
            other => format!("{other:?}"),
        };
        self.seen.lock().unwrap().iter().map(text).collect()
    }
}

fn lease() -> (LeaseKeeper, Lease) {
    Lease::new(BootInstant::now(), FOR_EVER)
}

fn kill(worker: &mut Child) {
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[tokio::test]
async fn the_next_worker_hears_every_line_once_and_all_that_the_agent_did() {
    let bench = Bench::new();
    git_in(bench.work(), &["init", "--quiet"]);
    let script = format!(
        "for n in $(seq 1000); do echo before $n; done; echo oops >&2; printf 'half of '; {WAITS}; \
         echo a line; echo new > new.txt; for n in $(seq 1000); do echo after $n; done; exit 3"
    );
    let mut worker = bench.worker(FOR_EVER, &script);
    let agent = bench.agent_of(&worker);
    eventually("all is written", || bench.file("stdout.log").contains("before 1000"));
    eventually("all is written", || bench.file("stderr.log").contains("oops"));
    kill(&mut worker);
    assert!(agent.is_alive());
    let orphan = bench.found().await;
    assert_eq!(orphan.pid(), agent.pid);
    bench.let_go_on();
    let report = bench.adopt(orphan).await;
    assert_eq!(report.verdict.outcome, Outcome::crashed(Exit::Code(3)));
    let mut lines: Vec<String> = (1..=1000).map(|n| format!("before {n}")).collect();
    lines.push("half of a line".to_owned());
    lines.extend((1..=1000).map(|n| format!("after {n}")));
    assert_eq!(bench.file("stdout.log").lines().collect::<Vec<_>>(), lines);
    let activities: Vec<Activity> = lines.iter().map(|line| Activity::Text { text: line.clone() }).collect();
    assert_eq!(bench.logged(), activities);
    assert_eq!(bench.told(), lines[1000..], "what was told before is not told again");
    let text = &report.evidence.wire.final_text;
    assert_eq!(text.lines().collect::<Vec<_>>(), lines, "the report has all of it");
    assert_eq!(report.evidence.git.unwrap().files_changed, ["agent.pid", "go", "input", "new.txt"]);
    assert_eq!(bench.file("stderr.log"), "oops\n");
    assert_eq!(report.warnings, [] as [Notice; 0]);
    assert!(!bench.socket().exists(), "nobody is to call there any more");
    assert_eq!(processes_of_run(&bench.run), []);
}

#[tokio::test]
async fn a_confined_agent_is_adopted_in_its_sandbox_alive_or_ended() {
    for ends_alone in [false, true] {
        let bench = Bench::new();
        // Its process number is another one inside.
        let script =
            "cat > input; touch begun; until [ -e go ]; do sleep 0.01; done; echo done; echo > over; exit 4";
        let mut worker = bench.worker_with(FOR_EVER, &["--confined"], script);
        eventually("it has its input", || bench.work().join("begun").exists());
        kill(&mut worker);
        if ends_alone {
            bench.let_go_on();
            eventually("it is over", || bench.work().join("over").exists());
        }
        let orphan = bench.found().await;
        bench.let_go_on();
        let report = bench.adopt(orphan).await;
        assert_eq!(
            (report.evidence.exit, report.evidence.wire.final_text.as_str()),
            (Some(Exit::Code(4)), "done\n")
        );
        assert!(report.sandbox.is_some(), "the sandbox is in the report");
        assert_eq!(processes_of_run(&bench.run), []);
    }
}

#[tokio::test]
async fn an_agent_that_writes_and_writes_loses_nothing_to_worker_after_worker() {
    const LINES: usize = 200_000;
    let bench = Bench::new();
    let script = format!("cat > input; echo $$ > agent.pid; seq {LINES}; {WAITS}");
    let mut worker = bench.worker(FOR_EVER, &script);
    let agent = bench.agent_of(&worker);
    let written = || std::fs::metadata(bench.request.run_dir.join("stdout.log")).unwrap().len();
    for _ in 0..8 {
        let before = written();
        eventually("more is written", || written() > before || before > 1_200_000);
        kill(&mut worker);
        worker = Command::new(example())
            .args(["--adopt", bench.socket().as_str(), bench.run.as_str()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
    }
    kill(&mut worker);
    assert!(agent.is_alive());
    bench.let_go_on();
    let report = bench.adopt(bench.found().await).await;
    assert_eq!(report.evidence.exit, Some(Exit::Code(0)));
    let lines: Vec<String> = (1..=LINES).map(|n| n.to_string()).collect();
    assert!(bench.file("stdout.log").lines().eq(&lines), "every line, once");
    assert_eq!(bench.file("activity.jsonl").lines().count(), LINES);
}

#[tokio::test]
async fn an_agent_that_ended_meanwhile_is_reported_by_the_next_worker() {
    let bench = Bench::new();
    let script = format!(
        "{WAITS}; echo last words; echo '{{\"outcome\":\"blocked\",\"reason\":\"no key\"}}' > $TASK_DIR/result.json; exit 5"
    );
    let mut worker = bench.worker(FOR_EVER, &script);
    let agent = bench.agent_of(&worker);
    kill(&mut worker);
    bench.let_go_on();
    eventually("it ends", || !agent.is_alive());
    let report = bench.adopt(bench.found().await).await;
    assert_eq!(report.evidence.exit, Some(Exit::Code(5)));
    assert_eq!(report.evidence.wire.final_text, "last words\n");
    assert_eq!(report.evidence.result_file.unwrap().unwrap().reason.as_deref(), Some("no key"));
    assert_eq!(bench.told(), ["last words"]);
}

#[tokio::test]
async fn an_agent_that_nobody_adopts_is_frozen_and_then_ended_with_all_that_it_started() {
    let bench = Bench::new();
    let mut worker =
        bench.worker(Duration::from_secs(2), &runaways("cat > input; echo $$ > agent.pid; sleep 1000"));
    bench.agent_of(&worker);
    let noted = bench.noted_processes();
    assert_eq!(noted.len(), RUNAWAYS + 1);
    kill(&mut worker);
    let is_stopped = |process: &ProcessId| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
        stat.contains(") T ")
    };
    eventually("they are frozen", || noted.iter().any(is_stopped));
    eventually("they are gone", || noted.iter().all(|process| !process.is_alive()));
    eventually("nothing of the run is left", || processes_of_run(&bench.run).is_empty());
    eventually("the socket is removed", || !bench.socket().exists());
    let found = Orphan::find(&bench.socket(), &bench.run).await;
    assert_eq!(found.err().unwrap().to_string(), "there is nothing to adopt");
}

#[tokio::test]
async fn a_worker_that_lives_is_not_robbed_and_of_two_adopters_one_is_turned_away() {
    let bench = Bench::new();
    let mut worker = bench.worker(FOR_EVER, WAITS);
    bench.agent_of(&worker);
    let early = Orphan::find(&bench.socket(), &bench.run).await;
    assert!(matches!(early, Err(AdoptError::HasWorker)));
    kill(&mut worker);
    let orphan = bench.found().await;
    let second = Orphan::find(&bench.socket(), &bench.run).await;
    assert_eq!(second.err().unwrap().to_string(), "it has a worker");
    bench.let_go_on();
    assert_eq!(bench.adopt(orphan).await.evidence.exit, Some(Exit::Code(0)));
}

#[tokio::test]
async fn an_adopter_that_dies_leaves_the_agent_to_the_next_and_one_that_drops_it_ends_it() {
    let bench = Bench::new();
    let mut worker = bench.worker(FOR_EVER, WAITS);
    let agent = bench.agent_of(&worker);
    kill(&mut worker);
    // Says what an adopter says, is greeted, and is gone.
    eventually("it is greeted", || {
        let mut caller = UnixStream::connect(bench.socket()).unwrap();
        caller.write_all(b"adopt\0\0\x01").is_ok() && caller.read_exact(&mut [0; 16]).is_ok()
    });
    let orphan = bench.found().await;
    assert!(agent.is_alive());
    drop(orphan);
    eventually("it is ended", || !agent.is_alive());
}

#[tokio::test]
async fn strangers_at_the_socket_change_nothing() {
    let bench = Bench::new();
    // The agent itself calls, too: it must not become its own worker.
    let script = format!("{WAITS}; {} --adopt {} {} 2>&1", example(), bench.socket(), bench.run);
    let mut worker = bench.worker(FOR_EVER, &script);
    let agent = bench.agent_of(&worker);
    kill(&mut worker);
    for said in [b"K\0\0\0\0\0\0\0\0".as_slice(), b"adopt\0\0\x63", b"", &[b'x'; 4096]] {
        let mut caller = UnixStream::connect(bench.socket()).unwrap();
        caller.write_all(said).unwrap();
        let mut answer = Vec::new();
        let _ = caller.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{said:?}");
    }
    assert!(agent.is_alive());
    bench.let_go_on();
    eventually("it has called", || !agent.is_alive());
    let report = bench.adopt(bench.found().await).await;
    assert_eq!(report.evidence.wire.final_text, "Error: HasWorker\n");
}

#[tokio::test]
async fn a_secret_that_the_death_of_a_worker_cuts_in_two_is_not_shown() {
    let mut bench = Bench::new();
    let script = format!("printf 'the key is correct-horse'; {WAITS}; echo -battery, or so");
    let mut worker = bench.worker(FOR_EVER, &script);
    bench.agent_of(&worker);
    kill(&mut worker);
    bench.let_go_on();
    bench.ours.insert("DEPLOY_TOKEN".into(), "correct-horse-battery".into());
    bench.adopt(bench.found().await).await;
    assert_eq!(bench.file("stdout.log"), "the key is [redacted:DEPLOY_TOKEN], or so\n");
}

#[tokio::test]
async fn an_adopted_agent_is_ended_when_it_is_cancelled() {
    let bench = Bench::new();
    let mut worker = bench.worker(FOR_EVER, WAITS);
    bench.agent_of(&worker);
    kill(&mut worker);
    let orphan = bench.found().await;
    bench.cancel.cancel();
    let report = bench.adopt(orphan).await;
    assert_eq!(report.verdict.outcome, Outcome::Cancelled);
    assert_eq!(processes_of_run(&bench.run), []);
}
