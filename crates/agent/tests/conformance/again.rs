//! A failure of the moment is tried again, through the whole way from the process to the outcome.

use std::sync::Arc;

use rehearsal_agent::Retrying;
use rehearsal_core::{Activity, Clock, Outcome};
use rstest::rstest;

use crate::stage::{NOW, Stage};

#[rstest]
#[case("claude")]
#[case("codex")]
#[case("gemini")]
#[case("opencode")]
#[case("crew")]
#[tokio::test]
async fn an_overload_of_a_moment_is_tried_again(#[case] kind: &str) {
    let stage = Stage::new();
    let script = "runs:
  - - error: { kind: overloaded }
  - - expect_prompt: { contains: Add a greeting. }
    - write: { path: hello.txt, content: hi }
    - commit: { message: Say hi }
    - task_done: current
    - say: Done. <promise>COMPLETE</promise>";
    let agent = Retrying::new(stage.agent(kind, script).await, stage.clock.clone(), 1);
    let report = stage.run(&agent).await;
    assert_eq!((report.verdict.outcome, report.tries), (Outcome::Done, 2), "{:?}", report.warnings);
    assert_eq!(report.evidence.git.unwrap().commits.len(), 1);
    assert_eq!(report.tasks.len(), 1);
    let waited = stage.clock.now().since(NOW).as_millis();
    assert!((1000..=1500).contains(&waited), "one second and some jitter: {waited}");
    let seen = stage.seen.lock().unwrap();
    assert!(seen.iter().any(|activity| matches!(activity, Activity::Retrying { .. })), "{seen:?}");
}

#[rstest]
#[case("claude")]
#[case("codex")]
#[case("gemini")]
#[case("opencode")]
#[case("crew")]
#[tokio::test]
async fn a_run_that_changed_the_tree_is_gone_on_with(#[case] kind: &str) {
    let stage = Stage::new();
    let script = "runs:
  - - write: { path: hello.txt, content: hi }
    - error: { kind: overloaded }
  - - expect_prompt: { contains: not begin anew. }
    - commit: { message: Say hi }
    - say: Done. <promise>COMPLETE</promise>";
    let agent = Retrying::new(stage.agent(kind, script).await, stage.clock.clone(), 1);
    let report = stage.run(&agent).await;
    assert_eq!((report.verdict.outcome, report.tries), (Outcome::Done, 2), "{:?}", report.warnings);
}

#[tokio::test]
async fn three_overloads_are_one_for_the_caller_to_wait_for() {
    let stage = Stage::new();
    let script = "run: [{ error: { kind: overloaded } }]";
    let agent = Arc::new(Retrying::new(stage.agent("claude", script).await, stage.clock.clone(), 1));
    let report = stage.run(&agent).await;
    assert_eq!((report.verdict.outcome, report.tries), (Outcome::Overloaded, 3));
}
