//! The gate: the repository's tests, on exactly one tree.

use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_core::{Delivery, OutcomeName, RedVerdict, StepFailure};
use rehearsal_forge::tree_of;
use rehearsal_git::Oid;
use rehearsal_testing::{AgentBudget, RunWatcher, Verdict, agent_report};

use tokio_util::sync::CancellationToken;

use super::{StepContext, of_git, red};
use crate::tester::{Tested, Tester, Wanted};
use crate::worker::WorkerState;

impl StepContext<'_> {
    /// Runs the tests, unless this very tree has passed them.
    pub(super) async fn run_tests(&self) -> Result<Delivery, StepFailure> {
        let tree = self.tree(&self.head().await?).await?;
        if self.task.delivery.tested_tree.as_ref() != Some(&tree) {
            self.test_in(self.worktree).await?;
        }
        Ok(Delivery { tested_tree: Some(tree), ..self.delivery() })
    }

    pub(super) async fn tree(&self, commit: &Oid) -> Result<Oid, StepFailure> {
        tree_of(&self.git(), commit).await.map_err(|error| of_git(&error))
    }

    /// Runs the tests of a checkout. Green is the only way to `Ok`.
    pub(super) async fn test_in(&self, directory: &Utf8Path) -> Result<(), StepFailure> {
        let tester = tester(self.state, directory, Some(self.outlet.base.clone()));
        judged(&tested(&tester, &Wanted::default(), self.cancel).await?)
    }
}

/// The tests of a checkout, as the configuration says.
pub(super) fn tester(state: &WorkerState, directory: &Utf8Path, base_branch: Option<String>) -> Tester {
    let worker = &state.worker;
    Tester {
        root: directory.to_owned(),
        settings: worker.testing.clone(),
        base_branch,
        keep: worker.state_dir.join("tests"),
        variables: worker.variables.clone(),
        store: Arc::clone(&worker.store),
        clock: Arc::clone(&worker.clock),
        draws: crate::Draws::of_seed(state.draw()),
    }
}

pub(super) async fn tested(
    tester: &Tester,
    wanted: &Wanted,
    cancel: &CancellationToken,
) -> Result<Tested, StepFailure> {
    let tested = tester.test(wanted, &RunWatcher::none(), cancel).await;
    tested.map_err(|error| StepFailure::Systemic {
        outcome: OutcomeName::SandboxUnavailable,
        reason: error.to_string(),
    })
}

/// Green is the only way to `Ok`.
pub(super) fn judged(tested: &Tested) -> Result<(), StepFailure> {
    match tested.verdict {
        Verdict::Passed | Verdict::Unaffected => Ok(()),
        // No test is no proof; and no agent can be told to mend it.
        Verdict::NoTests => Err(StepFailure::Unknown {
            reason: "no tests were found; name a command with `testing.command` in the configuration, \
                     or leave `run_tests` out of the flow"
                .into(),
        }),
        Verdict::RunnerMissing => Err(StepFailure::Systemic {
            outcome: OutcomeName::AgentMissing,
            reason: tested
                .notes
                .first()
                .cloned()
                .unwrap_or_else(|| "the test runner is not installed".into()),
        }),
        _ => Err(red(RedVerdict::TestsFailed, told(tested))),
    }
}

/// What an agent needs to know of it.
fn told(tested: &Tested) -> String {
    let red = tested.projects.iter().filter(|project| !project.report.success);
    let reports = red.map(|project| agent_report(&project.report, &project.analysis, AgentBudget::default()));
    reports.collect::<Vec<_>>().join("\n")
}
