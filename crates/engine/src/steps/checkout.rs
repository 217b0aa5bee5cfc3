//! The steps of a task that is worked on in the user's checkout. Its work is where it belongs as soon as it is committed and tested
//! there, so steps that carry work out of a worktree have nothing to do.

use std::sync::atomic::Ordering;

use camino::Utf8Path;
use rehearsal_core::flow::Step;
use rehearsal_core::{Delivery, Notice, RunEnd, StepFailure, Task};
use rehearsal_forge::{LeftoversError, Work};
use rehearsal_git::{Git, Oid, Repository};
use rehearsal_testing::Verdict;
use tokio_util::sync::CancellationToken;

use super::run_tests::{judged, tested, tester};
use super::{of_git, red};
use crate::tester::{Tested, Wanted};
use crate::worker::{CheckoutRecord, WorkerState};

/// Where a step is done, and after which run.
pub(crate) struct CheckoutContext<'a> {
    pub(crate) state: &'a WorkerState,
    pub(crate) task: &'a Task,
    pub(crate) root: &'a Utf8Path,
    /// The agent's run, if it is known how it ended.
    pub(crate) end: Option<&'a RunEnd>,
    /// What is known of the checkout around the run.
    pub(crate) record: Option<&'a CheckoutRecord>,
    pub(crate) cancel: &'a CancellationToken,
}

impl CheckoutContext<'_> {
    /// Does a step. What comes back is the work as it is now.
    pub(crate) async fn run(&self, step: &Step) -> Result<Delivery, StepFailure> {
        match step {
            Step::CommitLeftovers => self.commit_leftovers().await,
            Step::RunTests => self.run_tests().await,
            _ => Ok(self.task.delivery.clone()),
        }
    }

    /// Commits what the run left uncommitted, and nothing that the user had changed before.
    async fn commit_leftovers(&self) -> Result<Delivery, StepFailure> {
        if Repository::find(self.root).is_ok_and(|found| found.is_none()) {
            return Ok(self.task.delivery.clone());
        }
        let git = Git::at(self.root);
        let Some(head) = git.find_commit("HEAD").await.map_err(|error| of_git(&error))? else {
            return Ok(self.task.delivery.clone());
        };
        let base = match self.end.and_then(|end| end.commits.first()) {
            Some(first) => {
                let parent = git.find_commit(&format!("{}^", first.id)).await;
                parent.map_err(|error| of_git(&error))?.or_else(|| Some(head.clone()))
            }
            None => Some(head.clone()),
        };
        // Where it is not known what was there before, nothing is taken for the run's work.
        let Some(record) = self.record else {
            return Ok(Delivery { base, head: Some(head), ..self.task.delivery.clone() });
        };
        let mut changed = self.end.map(|end| end.files_changed.clone()).unwrap_or_default();
        changed.extend(record.own.iter().cloned());
        let others = record.others();
        let work = Work::at(self.root).dated(self.state.now());
        let dirty = work.dirty_files().await.map_err(|error| of_git(&error))?;
        changed.retain(|file| dirty.contains(file));
        let (theirs, left): (Vec<String>, Vec<String>) =
            changed.into_iter().partition(|file| others.contains(file));
        if !theirs.is_empty() {
            self.state.warn(Notice::NotCommitted { files: theirs });
        }
        let message = format!("{}\n\nLeft uncommitted by the agent.", self.task.title);
        let committed = match work.commit_files(&left, &message).await {
            Ok(()) => work.head().await.map_err(|error| of_git(&error))?,
            Err(error @ LeftoversError::Unmerged { .. }) => {
                return Err(red(rehearsal_core::RedVerdict::Conflict, error.to_string()));
            }
            Err(LeftoversError::Git(error)) => return Err(of_git(&error)),
        };
        if committed != head {
            self.state.note_skipped_hooks(self.root).await;
        }
        Ok(Delivery { base, head: Some(committed), ..self.task.delivery.clone() })
    }

    /// Runs the tests. They may fail as they did before the run, but no more.
    async fn run_tests(&self) -> Result<Delivery, StepFailure> {
        let tester = tester(self.state, self.root, None);
        let now = tested(&tester, &Wanted::default(), self.cancel).await?;
        if now.verdict == Verdict::NoTests {
            if !self.state.nothing_tested.swap(true, Ordering::SeqCst) {
                self.state.warn(Notice::NothingTested);
            }
            return Ok(self.task.delivery.clone());
        }
        let Err(failure) = judged(&now) else { return Ok(self.task.delivery.clone()) };
        let (StepFailure::Red { .. }, Some(base)) = (&failure, &self.task.delivery.base) else {
            return Err(failure);
        };
        match self.failed_before(base).await? {
            Some(tests) => {
                self.state.warn(Notice::FailedBefore { tests });
                Ok(self.task.delivery.clone())
            }
            None => Err(failure),
        }
    }

    /// The failing tests, if all of them failed at this commit as well.
    async fn failed_before(&self, base: &Oid) -> Result<Option<Vec<String>>, StepFailure> {
        let tester = tester(self.state, self.root, None);
        let wanted = Wanted { baseline: Some(base.to_string()), ..Wanted::default() };
        let Ok(compared) = tested(&tester, &wanted, self.cancel).await else { return Ok(None) };
        Ok(only_known_failures(&compared))
    }
}

/// The failing tests, if the base has every one of them and lost none.
fn only_known_failures(tested: &Tested) -> Option<Vec<String>> {
    let mut known = Vec::new();
    for project in tested.projects.iter().filter(|project| !project.report.success) {
        let comparison = project.comparison.as_ref()?;
        if comparison.base_is_green || !comparison.new.is_empty() || !comparison.gone.is_empty() {
            return None;
        }
        known.extend(comparison.known.iter().map(|test| test.name.clone()));
    }
    Some(known)
}
