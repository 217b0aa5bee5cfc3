//! What a worker that died has left: put in order before the loop begins, each run exactly once.

use rehearsal_agent::{RunReport, process, release_git_locks};
use rehearsal_core::{Actor, Run, WorkerId};

use super::iteration::{REPORT_FILE, end_of};
use super::taking_over::Reported;
use super::{LoopError, LoopEvent, SessionLoop};

impl SessionLoop {
    /// Finishes the runs that have no end. The lock of the checkout is held, so nobody else works on them.
    pub(super) async fn recover(&self, worker: &WorkerId) -> Result<(), LoopError> {
        for run in self.store.unfinished_runs().await? {
            let left = process::kill_processes_of_run(&run.start.id);
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
        let report = fs_err::read(self.run_dir(&start.id).join(REPORT_FILE))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<RunReport>(&bytes).ok());
        let (end, reported) = match report {
            Some(report) => (end_of(&report, self.now()), Reported::of(&report, &start.task)),
            None => {
                let because = "the process that ran it died before it ended".to_owned();
                (self.end_without_blame(because), Reported::default())
            }
        };
        let outcome = end.verdict.outcome.clone();
        self.take_over(Actor::Worker(worker.clone()), &start, &end, reported).await?;
        self.tell(LoopEvent::Recovered { run: start.id, task: start.task, outcome });
        Ok(())
    }
}
