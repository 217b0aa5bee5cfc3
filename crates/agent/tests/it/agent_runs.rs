//! Whole runs of an agent that is a shell script.

use std::time::Duration;

use rehearsal_core::{
    Activity, Budget, Exit, Notice, Outcome, Promise, ReportedTask, Stop, TimeLimit, WireShape,
};
use rehearsal_process::processes_of_run;

use crate::support::{Bench, runaways};

/// Short enough to be reached by a script that sleeps on.
const SOON: Duration = Duration::from_millis(150);

fn text(text: &str) -> Activity {
    Activity::Text { text: text.to_owned() }
}

#[tokio::test]
async fn a_run_is_written_down_from_prompt_to_outcome() {
    let bench = Bench::new();
    let report = bench
        .sh("read -r prompt; echo \"got: $prompt\"; echo oops >&2; echo '<promise>COMPLETE</promise>'")
        .await;
    assert_eq!(report.verdict.outcome, Outcome::Done);
    assert_eq!(report.promise, Some(Promise::Complete));
    assert_eq!(report.evidence.exit, Some(Exit::Code(0)));
    assert_eq!(report.warnings, [] as [Notice; 0]);
    assert_eq!(bench.file("prompt.md"), "do it");
    assert_eq!(bench.file("stdout.log"), "got: do it\n<promise>COMPLETE</promise>\n");
    assert_eq!(bench.file("stderr.log"), "oops\n");
    assert_eq!(bench.logged().first(), Some(&text("got: do it")));
    assert_eq!(*bench.seen.lock().unwrap(), [text("got: do it"), text("<promise>COMPLETE</promise>")]);
    let mut files: Vec<String> = std::fs::read_dir(&bench.request.run_dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["activity.jsonl", "prompt.md", "stderr.log", "stdout.log"]);
}

#[tokio::test]
async fn a_result_and_a_report_are_read_from_this_attempt_only() {
    let bench = Bench::new();
    let script = r#"echo '{"outcome":"blocked","reason":"no key","tasks":[{"status":"done","id":"b"}]}' > $TASK_DIR/result.json
        echo '{"type":"task_done","id":"a"}' >> $REHEARSAL_TASK_DIR/report.jsonl
        echo '{"type":"progress","text":"half way"}' >> $TASK_DIR/report.jsonl
        echo nonsense >> $TASK_DIR/report.jsonl"#;
    let report = bench.sh(script).await;
    assert_eq!(report.verdict.outcome, Outcome::Blocked { reason: "no key".into() });
    assert_eq!(
        report.tasks,
        [
            ReportedTask::Done { id: "a".into(), reason: None },
            ReportedTask::Done { id: "b".into(), reason: None }
        ]
    );
    assert_eq!(report.progress, ["half way"]);
    assert_eq!(
        report.warnings,
        [Notice::FileUnreadable {
            file: "report.jsonl".into(),
            line: Some(3),
            error: "expected ident at line 1 column 2".into()
        }]
    );

    let report = bench.sh("echo nothing").await;
    assert_eq!(report.verdict.outcome, Outcome::Done, "the old result must not count");
    assert!(report.tasks.is_empty() && report.progress.is_empty());
}

#[tokio::test]
async fn a_child_that_never_reads_a_huge_prompt_does_not_block() {
    let mut bench = Bench::new();
    bench.request.prompt = "x".repeat(10_000_000);
    assert_eq!(bench.sh("echo fine").await.verdict.outcome, Outcome::Done);
}

#[tokio::test]
async fn a_huge_prompt_is_echoed_while_it_is_written() {
    let mut bench = Bench::new();
    bench.request.prompt = "0123456789\n".repeat(200_000);
    let report = bench.sh("exec cat").await;
    assert_eq!(report.evidence.exit, Some(Exit::Code(0)));
    assert_eq!(bench.file("stdout.log"), bench.request.prompt);
}

#[tokio::test]
async fn broken_utf8_is_kept_in_the_log_and_readable_elsewhere() {
    let bench = Bench::new();
    let report = bench.sh("printf 'a\\377\\376b\\n'").await;
    assert_eq!(report.evidence.wire.final_text, "a\u{fffd}\u{fffd}b\n");
    assert_eq!(std::fs::read(bench.request.run_dir.join("stdout.log")).unwrap(), b"a\xff\xfeb\n");
}

#[tokio::test]
async fn a_crash_is_a_crash() {
    let report = Bench::new().sh("echo working; kill -ABRT $$").await;
    assert_eq!(report.verdict.outcome, Outcome::crashed(Exit::Signal(6)));
    let report = Bench::new().sh("exit 9").await;
    assert_eq!(report.verdict.outcome, Outcome::crashed(Exit::Code(9)));
}

#[tokio::test]
async fn the_whole_run_has_a_time_limit() {
    let mut bench = Bench::new();
    bench.request.timeout = Some(SOON);
    let report = bench.sh("while :; do echo busy; sleep 0.01; done").await;
    let Outcome::TimedOut { limit, .. } = report.verdict.outcome else { panic!("{:?}", report.verdict) };
    assert_eq!(limit, TimeLimit::Total);
    assert_eq!(report.evidence.exit, Some(Exit::Signal(15)));
    assert!(processes_of_run(&bench.run).is_empty());
}

#[tokio::test]
async fn silence_has_a_time_limit_of_its_own() {
    let mut bench = Bench::new();
    bench.request.idle_timeout = Some(SOON);
    let report = bench.sh("echo hello; exec sleep 1000").await;
    let Outcome::TimedOut { limit, .. } = report.verdict.outcome else { panic!("{:?}", report.verdict) };
    assert_eq!(limit, TimeLimit::Idle);
    assert_eq!(report.evidence.wire.final_text, "hello\n");
}

#[tokio::test]
async fn a_run_can_be_cancelled_and_keeps_what_it_said() {
    let bench = Bench::new();
    let (cancel, seen) = (bench.cancel.clone(), bench.seen.clone());
    let canceller = async move {
        while seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(bench.sh("echo begun; exec sleep 1000"), canceller);
    assert_eq!(report.verdict.outcome, Outcome::Cancelled);
    assert_eq!(report.evidence.wire.final_text, "begun\n");
    assert!(processes_of_run(&bench.run).is_empty());
}

#[tokio::test]
async fn a_run_cancelled_before_it_began_starts_nothing() {
    let bench = Bench::new();
    bench.cancel.cancel();
    let report = bench.sh("touch started").await;
    assert_eq!(report.verdict.outcome, Outcome::Cancelled);
    assert!(!bench.work().join("started").exists());
}

#[tokio::test]
async fn who_lingers_after_its_result_is_ended_and_the_result_counts() {
    let mut bench = Bench::new();
    bench.graces.linger = SOON;
    let report = bench.sh("echo '<promise>COMPLETE</promise>'; echo END; exec sleep 1000").await;
    assert_eq!(report.evidence.stop, Some(Stop::LingeredAfterResult));
    assert_eq!(report.verdict.outcome, Outcome::Done);
    assert!(processes_of_run(&bench.run).is_empty());
}

#[tokio::test]
async fn a_time_limit_does_not_spoil_a_result_that_is_there() {
    let mut bench = Bench::new();
    (bench.request.timeout, bench.graces.linger) = (Some(SOON), SOON * 4);
    let report = bench.sh("echo fine; echo END; exec sleep 1000").await;
    assert_eq!(report.evidence.stop, Some(Stop::LingeredAfterResult));
    assert_eq!(report.verdict.outcome, Outcome::Done);
}

#[tokio::test]
async fn a_token_budget_ends_an_agent_that_has_no_limit_of_its_own() {
    let mut bench = Bench::new();
    bench.request.budget = Budget { tokens: Some(1000), ..Budget::default() };
    let report = bench.sh("echo USAGE 999; echo USAGE 1001; exec sleep 1000").await;
    let reason = "it used 1001 tokens, and may use 1000".to_owned();
    assert_eq!(report.verdict.outcome, Outcome::BudgetReached { reason });
}

#[tokio::test]
async fn runaways_are_ended_and_told() {
    let bench = Bench::new();
    let report = bench.sh(&runaways("echo done")).await;
    assert_eq!(report.verdict.outcome, Outcome::Done);
    let [told] = report.warnings.as_slice() else { panic!("{:?}", report.warnings) };
    assert!(matches!(told, Notice::LeftoversKilled { .. }), "{told}");
    assert!(bench.noted_processes().iter().all(|process| !process.is_alive()));
}

#[tokio::test]
async fn the_agents_git_does_not_tidy_up_behind_its_back() {
    let bench = Bench::new();
    let report = bench.sh("git config gc.autoDetach; git config maintenance.autoDetach").await;
    assert_eq!(report.evidence.wire.final_text, "false\nfalse\n");
}

#[tokio::test]
async fn the_agent_knows_its_task_and_its_place() {
    let bench = Bench::new();
    let report = bench
        .sh("echo $TASK_ID $REHEARSAL_TASK_ID $REHEARSAL_RUN_ID; echo $TASK_WORKTREE; pwd; echo $TASK_DIR")
        .await;
    let (work, run) = (bench.work(), &bench.run);
    let expected = format!("task1 task1 {run}\n{work}\n{work}\n{}\n", bench.request.run_dir);
    assert_eq!(report.evidence.wire.final_text, expected);
    assert_eq!(report.evidence.wire.shape, WireShape::Unstructured);
}
