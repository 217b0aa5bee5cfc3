//! What a worker that died has left: put in order before the loop begins, each run exactly once.

use rehearsal_agent::release_git_locks;
use rehearsal_core::{Actor, Run, RunEnd, Standing, WorkerId};

use super::{LoopError, LoopEvent, SessionLoop};
use crate::kept::{self, end_of};
use crate::ledger::Reported;

impl SessionLoop {
    /// Finishes the runs that have no end. The lock of the checkout is held, so no other loop works on them; what
    /// runs under a lease is a worker's.
    pub(super) async fn recover(&self, worker: &WorkerId) -> Result<(), LoopError> {
        let leases = self.store.leases().await?;
        let is_leased = |run: &Run| {
            leases.iter().any(
                |(task, _)| matches!(&task.standing, Standing::Claimed(claim) if claim.run == run.start.id),
            )
        };
        for run in self.store.unfinished_runs().await?.into_iter().filter(|run| !is_leased(run)) {
            let left = rehearsal_process::kill_processes_of_run(&run.start.id);
            if left.count > 0 {
                let message =
                    format!("processes of run {} were still alive and were ended: {left}", run.start.id);
                self.tell(LoopEvent::Warning { message });
            }
            let released = release_git_locks(&self.working_dir, &self.run_dir(&run.start.id)).await;
            if let Some(message) = released {
                self.tell(LoopEvent::Warning { message });
            }
            self.finish_left_run(run, worker).await?;
        }
        Ok(())
    }

    async fn finish_left_run(&self, run: Run, worker: &WorkerId) -> Result<(), LoopError> {
        let start = run.start;
        // The agent may have come to its end before its worker died: then its result counts.
        let report = kept::find(&self.run_dir(&start.id));
        let (end, reported) = match report {
            Some(report) => (end_of(&report, self.now()), Reported::of(&report, &start.task)),
            None => {
                let because = "the process that ran it died before it ended".to_owned();
                (RunEnd::without_blame(because, self.now()), Reported::default())
            }
        };
        let outcome = end.verdict.outcome.clone();
        self.take_over(Actor::Worker(worker.clone()), &start, &end, reported).await?;
        self.tell(LoopEvent::Recovered { run: start.id, task: start.task, outcome });
        Ok(())
    }
}
