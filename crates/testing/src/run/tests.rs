use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio_util::sync::CancellationToken;

use super::spawn::{Launch, Spawned};
use super::*;
use crate::TestStatus;

/// A repository in which commands of the tests' own run, unconfined.
struct World {
    _keep: tempfile::TempDir,
    root: Utf8PathBuf,
    told: Arc<Mutex<Vec<String>>>,
}

fn world() -> World {
    let keep = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
    World { _keep: keep, root, told: Arc::default() }
}

/// What `go test -json` would print for one test.
fn event(action: &str, test: &str) -> String {
    format!(r#"{{"Action":"{action}","Package":"shop","Test":"{test}"}}"#)
}

/// The last event of a package.
fn end(action: &str) -> String {
    format!(r#"{{"Action":"{action}","Package":"shop","Elapsed":0.1}}"#)
}

impl World {
    fn request(&self, command: &str) -> TestRequest {
        let path = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        TestRequest {
            command: Some(command.to_owned()),
            framework: Some(Framework::Go),
            keep: Some(self.root.clone()),
            ..TestRequest::new(&self.root, Machine::new(path))
        }
    }

    /// A request for a script that prints these lines and then does something.
    fn printing(&self, lines: &[String], then: &str) -> TestRequest {
        fs_err::write(
            self.root.join("lines"),
            lines.iter().map(|line| format!("{line}\n")).collect::<String>(),
        )
        .unwrap();
        self.request(&format!("cat lines; {then}"))
    }

    async fn run(&self, request: &TestRequest) -> TestReport {
        self.run_with(request, &SandboxSpawner::unconfined(), &CancellationToken::new()).await
    }

    async fn run_with(
        &self,
        request: &TestRequest,
        spawner: &dyn Spawner,
        cancel: &CancellationToken,
    ) -> TestReport {
        let told = Arc::clone(&self.told);
        let watcher = RunWatcher::new(move |event| {
            let line = match event {
                RunEvent::Started(plan) => format!("started {}", plan.command),
                RunEvent::Progress(Progress::Started(test)) => format!("test {} began", test.name),
                RunEvent::Progress(Progress::Finished(test)) => {
                    format!("test {} {:?}", test.name, test.status)
                }
                RunEvent::Progress(_) | RunEvent::Printed(..) => return,
                RunEvent::Retrying(tests) => format!("retrying {}", tests.len()),
                RunEvent::Ended(report) => format!("ended {}", report.verdict),
            };
            told.lock().unwrap().push(line);
        });
        let mut run = run(request, spawner, &watcher, cancel).await;
        assert_eq!(run.projects.len(), 1);
        run.projects.remove(0)
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

fn statuses(report: &TestReport) -> Vec<(&str, TestStatus)> {
    report.tests.iter().map(|test| (test.name.as_str(), test.status)).collect()
}

#[tokio::test]
async fn results_come_while_the_run_goes_on_and_all_is_in_the_report() {
    let world = world();
    let lines = [event("run", "TestA"), event("pass", "TestA"), end("pass")];
    let report = world.run(&world.printing(&lines, "echo noise >&2")).await;
    assert_eq!(report.verdict, Verdict::Passed, "{:?}", report.reasons);
    let told = world.told();
    assert!(told[0].ends_with("sh -c 'cat lines; echo noise >&2'"), "{told:?}");
    assert_eq!(told[1..], ["test TestA began", "test TestA Pass", "ended passed"]);
    let raw = fs_err::read_to_string(report.raw_output_file.unwrap()).unwrap();
    assert!(raw.contains("TestA") && raw.contains("noise"));
    let tests = fs_err::read_to_string(report.tests_file.unwrap()).unwrap();
    assert!(tests.contains(r#""name":"TestA""#), "{tests}");
    assert_eq!((report.exit_code, report.root.as_deref()), (Some(0), Some(world.root.as_str())));
}

#[tokio::test]
async fn what_had_ended_before_the_time_limit_is_kept_and_what_ran_is_named() {
    let world = world();
    let lines = [event("run", "TestA"), event("pass", "TestA"), event("run", "TestHangs")];
    // Neither the first signals nor a session of its own saves it.
    let stubborn = "trap '' QUIT TERM INT; setsid sleep 600 & while :; do sleep 600; done";
    let request = TestRequest { timeout: Duration::from_millis(300), ..world.printing(&lines, stubborn) };
    let report = world.run(&request).await;
    assert_eq!(report.verdict, Verdict::TimedOut);
    assert!(report.timed_out && report.partial);
    assert_eq!(statuses(&report), [("TestA", TestStatus::Pass), ("TestHangs", TestStatus::Timeout)]);
}

#[tokio::test]
async fn a_run_that_is_cancelled_ends_and_reports() {
    let world = world();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let report = world.run_with(&world.request("sleep 600"), &SandboxSpawner::unconfined(), &cancel).await;
    assert_eq!(report.reasons[0], "the run was cancelled");
}

#[tokio::test]
async fn a_daemon_that_keeps_the_output_open_does_not_keep_us() {
    let world = world();
    let lines = [event("run", "TestA"), event("pass", "TestA"), end("pass")];
    let report = world.run(&world.printing(&lines, "setsid sleep 600 &")).await;
    assert_eq!(report.verdict, Verdict::Passed, "{:?}", report.reasons);
    assert!(
        report.notes.iter().any(|note| note.contains("1 process was still running")),
        "{:?}",
        report.notes
    );
}

#[tokio::test]
async fn a_test_that_was_running_when_the_process_died_has_crashed() {
    let world = world();
    let lines = [event("run", "TestA"), event("pass", "TestA"), event("run", "TestDies")];
    let report = world.run(&world.printing(&lines, "kill -SEGV $$")).await;
    assert_eq!((report.verdict, report.signal), (Verdict::Crashed, Some(11)));
    assert_eq!(statuses(&report), [("TestA", TestStatus::Pass), ("TestDies", TestStatus::Crash)]);
}

#[tokio::test]
async fn a_runner_that_is_not_there_is_missing_and_not_red() {
    let world = world();
    let report = world.run(&world.request("no-such-runner --all")).await;
    assert_eq!(report.verdict, Verdict::RunnerMissing);
    assert!(report.reasons[0].contains("no-such-runner"), "{:?}", report.reasons);
    let report = world.run(&TestRequest { command: None, ..world.request("") }).await;
    assert_eq!(report.verdict, Verdict::RunnerMissing, "{:?}", report.reasons);
}

struct Refusing;

impl Spawner for Refusing {
    fn spawn(&self, _: Launch) -> Result<Box<dyn Spawned>, SpawnError> {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        Err(SpawnError::Program { program: "sh".to_owned(), source })
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_started_comes_back_as_a_report() {
    let world = world();
    let report = world.run_with(&world.request("true"), &Refusing, &CancellationToken::new()).await;
    assert_eq!(report.verdict, Verdict::RunnerMissing);
    assert_eq!(report.reasons, ["cannot execute `sh`: permission denied"]);
}

#[tokio::test]
async fn a_test_that_passes_when_run_again_is_flaky_and_never_silently_good() {
    let world = world();
    for (name, first, second) in [("first", "fail", "fail"), ("second", "pass", "fail")] {
        let lines = [
            event("run", "TestFlaky"),
            event(first, "TestFlaky"),
            event("run", "TestBad"),
            event(second, "TestBad"),
            end("fail"),
        ];
        fs_err::write(world.root.join(name), lines.join("\n")).unwrap();
    }
    let command = "if [ -e ran ]; then cat second; else touch ran; cat first; fi; exit 1";
    let report = world.run(&TestRequest { retries: 2, ..world.request(command) }).await;
    assert_eq!(statuses(&report), [("TestFlaky", TestStatus::Flaky), ("TestBad", TestStatus::Fail)]);
    assert_eq!((report.summary.flaky, report.summary.failed), (1, 1));
    assert_eq!((report.tests[0].attempts, report.tests[1].attempts), (Some(2), Some(3)));
    assert_eq!(report.verdict, Verdict::Failed);
    assert!(
        report.notes.contains(&"1 test failed and passed when run again: flaky".to_owned()),
        "{:?}",
        report.notes
    );
}

#[tokio::test]
async fn when_all_that_failed_was_flaky_the_run_is_good_and_says_so() {
    let world = world();
    for (name, action) in [("first", "fail"), ("second", "pass")] {
        let lines = [event("run", "TestFlaky"), event(action, "TestFlaky"), end(action)];
        fs_err::write(world.root.join(name), lines.join("\n")).unwrap();
    }
    let command = "if [ -e ran ]; then cat second; else touch ran; cat first; exit 1; fi";
    let report = world.run(&TestRequest { retries: 1, ..world.request(command) }).await;
    assert_eq!((report.verdict, report.summary.flaky), (Verdict::Passed, 1), "{:?}", report.reasons);
    assert_eq!(
        report.notes,
        [
            "a command cannot be told which tests to run: it runs all",
            "1 test failed and passed when run again: flaky"
        ][1..]
    );
}

#[tokio::test]
async fn a_flood_of_output_is_kept_in_a_file_and_not_in_memory() {
    let world = world();
    let request = TestRequest { framework: None, ..world.request("yes | head -c 20000000") };
    let report = world.run(&request).await;
    assert!(report.raw_output.len() < 20_000, "{}", report.raw_output.len());
    assert_eq!(fs_err::metadata(report.raw_output_file.unwrap()).unwrap().len(), 20_000_000);
}

#[tokio::test]
async fn a_repository_without_tests_is_not_green() {
    let world = world();
    let request = TestRequest { command: None, framework: None, ..world.request("") };
    let run =
        run(&request, &SandboxSpawner::unconfined(), &RunWatcher::none(), &CancellationToken::new()).await;
    assert_eq!(
        (run.success, run.verdict, run.reasons),
        (false, Verdict::NoTests, vec!["no tests were found".to_owned()])
    );
}

#[test]
fn the_worst_project_decides() {
    let report = |verdict| {
        let mut report =
            conclude(Framework::Go, crate::Collected::default(), &crate::Ending::default(), String::new());
        report.verdict = verdict;
        report.summary.add(TestStatus::Pass);
        report
    };
    let all = together(vec![report(Verdict::Passed), report(Verdict::Failed), report(Verdict::NoTests)], 7);
    assert_eq!((all.success, all.verdict, all.summary.total), (false, Verdict::Failed, 3));
}
