//! The gate: the repository's tests, on exactly one tree.

use camino::Utf8Path;
use rehearsal_core::{Delivery, OutcomeName, RedVerdict, StepFailure};
use rehearsal_forge::tree_of;
use rehearsal_git::Oid;
use rehearsal_testing::{AgentBudget, RunWatcher, Verdict, agent_report};

use super::{StepContext, of_git, red};
use crate::tester::{Tested, Tester, Wanted};

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
        let worker = &self.state.worker;
        let tester = Tester {
            root: directory.to_owned(),
            settings: worker.testing.clone(),
            base_branch: Some(self.outlet.base.clone()),
            keep: worker.state_dir.join("tests"),
            variables: worker.variables.clone(),
            store: std::sync::Arc::clone(&worker.store),
            clock: std::sync::Arc::clone(&worker.clock),
            draws: crate::Draws::of_seed(self.state.draw()),
        };
        let tested = tester.test(&Wanted::default(), &RunWatcher::none(), self.cancel).await;
        let tested = tested.map_err(|error| StepFailure::Systemic {
            outcome: OutcomeName::SandboxUnavailable,
            reason: error.to_string(),
        })?;
        judged(&tested)
    }
}

fn judged(tested: &Tested) -> Result<(), StepFailure> {
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
