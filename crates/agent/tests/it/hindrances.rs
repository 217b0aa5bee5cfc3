//! Runs that cannot be carried out: each is an outcome with advice.

use rehearsal_core::{Blame, Notice, Outcome};

use crate::support::Bench;

#[tokio::test]
async fn a_missing_program_is_the_systems_fault_and_says_what_to_do() {
    let bench = Bench::new();
    let report = bench.program("no-such-agent", &[]).await;
    assert_eq!(report.verdict.outcome, Outcome::AgentMissing { program: "no-such-agent".into() });
    assert_eq!(report.verdict.outcome.blame(), Blame::System);
    assert_eq!(report.warnings, [Notice::ProgramMissing { program: "no-such-agent".into() }]);
}

#[tokio::test]
async fn a_missing_working_directory_is_named() {
    let bench = Bench::new();
    std::fs::remove_dir(bench.work()).unwrap();
    let report = bench.sh("echo hi").await;
    let reason = format!("the working directory `{}` does not exist", bench.work());
    assert_eq!(report.verdict.outcome, Outcome::Failed { reason });
    assert_eq!(report.warnings.len(), 1);
}

#[tokio::test]
async fn a_working_directory_deleted_by_the_agent_is_named() {
    let bench = Bench::new();
    let report = bench.sh("rmdir \"$TASK_WORKTREE\"; echo bye").await;
    let reason = format!("the working directory `{}` was deleted while the agent ran", bench.work());
    assert_eq!(report.verdict.outcome, Outcome::Failed { reason });
    assert_eq!(report.evidence.wire.final_text, "bye\n");
}

#[tokio::test]
async fn a_run_directory_that_cannot_be_made_is_named() {
    let mut bench = Bench::new();
    std::fs::write(bench.root.join("file"), "").unwrap();
    bench.request.run_dir = bench.root.join("file/run");
    let report = bench.sh("echo hi").await;
    let Outcome::Failed { reason } = &report.verdict.outcome else { panic!("{:?}", report.verdict) };
    assert_eq!(*reason, format!("cannot write `{}`: Not a directory (os error 20)", bench.request.run_dir));
    assert_eq!(report.warnings.len(), 1, "the advice: {:?}", report.warnings);
}
