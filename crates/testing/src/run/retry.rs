//! Running failed tests again. A test that passes then is flaky, and is called so.

use rehearsal_core::Exit;

use super::execute::{Outcome, execute};
use super::{RunEvent, Session};
use crate::{Candidate, Collected, RunPlan, Selection, TestCase, TestStatus, Wish, plan};

/// Runs what failed again, as often as was asked for, until nothing fails.
pub(super) async fn retry(
    session: &Session<'_>,
    candidate: &Candidate,
    first: &RunPlan,
    label: &str,
    outcome: &mut Outcome,
) {
    for number in 1..=session.request.retries {
        let failed = failed(&outcome.run);
        // What was not built, or was stopped, does not get better by itself.
        if failed.is_empty() || outcome.ending.stopped.is_some() || !outcome.run.problems.is_empty() {
            return;
        }
        session.watcher.tell(RunEvent::Retrying(&failed));
        let label = format!("{label}-retry-{number}");
        let Some(again) = run_again(session, candidate, first, &label, failed).await else { return };
        merge(outcome, &again);
    }
}

fn failed(run: &Collected) -> Vec<TestCase> {
    run.tests.iter().filter(|test| test.status.is_failure()).cloned().collect()
}

/// Selected by the runner's own means where it has them, else everything.
async fn run_again(
    session: &Session<'_>,
    candidate: &Candidate,
    first: &RunPlan,
    label: &str,
    tests: Vec<TestCase>,
) -> Option<Outcome> {
    let scratch = tempfile::Builder::new().prefix("rehearsal-test-").tempdir().ok()?;
    let directory = camino::Utf8Path::from_path(scratch.path())?;
    let selection = Selection { tests, exclude: session.request.exclude.clone(), ..Selection::default() };
    let wish = Wish { selection, parallel: session.request.parallel, coverage: false };
    let mut candidate = candidate.clone();
    candidate.framework = first.framework;
    let plans = plan(&candidate, &wish, &session.machine, &session.request.root, directory);
    let plan = plans.into_iter().find(|plan| plan.framework == first.framework)?;
    Some(execute(session, &plan, directory, label).await)
}

fn merge(outcome: &mut Outcome, again: &Outcome) {
    let mut became_flaky = 0;
    for test in outcome.run.tests.iter_mut().filter(|test| test.status.is_failure()) {
        let same = |it: &&TestCase| it.name == test.name && it.package == test.package;
        let Some(second) = again.run.tests.iter().find(same) else { continue };
        test.attempts = Some(test.attempts.unwrap_or(1) + 1);
        if second.status == TestStatus::Pass || second.status == TestStatus::Flaky {
            outcome.run.summary.remove(test.status);
            test.status = TestStatus::Flaky;
            outcome.run.summary.add(test.status);
            became_flaky += 1;
        }
    }
    if became_flaky > 0 {
        let tests = if became_flaky == 1 { "1 test" } else { &format!("{became_flaky} tests") };
        outcome.notes.push(format!("{tests} failed and passed when run again: flaky"));
    }
    // When nothing fails any more, the good end of the second run explains the bad one of the first.
    if outcome.run.summary.failed == 0 && again.ending.exit.is_some_and(Exit::is_success) {
        outcome.ending = again.ending.clone();
    }
}
