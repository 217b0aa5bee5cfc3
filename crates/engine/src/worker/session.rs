//! The session policy: which iteration it is, what the next prompt must say, and when it is over.

use rehearsal_core::guard::Hindrance;
use rehearsal_core::{Blame, Outcome, Promise, Standing, Task, Timestamp, WaitFor};
use rehearsal_store::{Counts, StatusFilter, TaskQuery};

use super::slot::Finished;
use super::wakeup::Wakeup;
use super::{SessionPolicy, WorkEnd, WorkError, WorkEvent, Worker, WorkerState};
use crate::agents::own_program;
use crate::prompt::{Iteration, PROGRESS_LINES, TASKS_SHOWN};

/// How many tasks are named that cannot go on.
const TASKS_NAMED: u32 = 1_000;

/// What is carried from one iteration to the next.
#[derive(Debug, Default)]
pub(super) struct Iterations {
    pub(super) count: u32,
    /// What the next prompt must say because of what happened before.
    pub(super) notes: Vec<String>,
    failures_in_a_row: u32,
    /// How many of them failed.
    failures: u32,
    last_failure: Option<Outcome>,
}

impl Iterations {
    /// How the last one ended, if every one of them failed.
    pub(super) fn all_failed(&self) -> Option<Outcome> {
        self.last_failure.clone().filter(|_| self.failures == self.count)
    }
}

impl Worker {
    /// A session that does not exist, a task that is not for a loop and a template that cannot be used are found before
    /// anything is begun.
    pub(super) async fn check_session(&self, policy: &SessionPolicy) -> Result<(), WorkError> {
        self.store.session(&policy.session).await?;
        if let Some(task) = self.store.next_task(Some(&policy.session), self.clock.now()).await? {
            self.check_flow(&task).await?;
            self.preview(&task).await?;
        }
        Ok(())
    }

    pub(super) async fn check_flow(&self, task: &Task) -> Result<(), WorkError> {
        let flow = self.store.flow(&task.flow_version).await?;
        let (task, flow_name) = (task.id.clone(), task.flow.clone());
        flow.fits_a_loop().map_err(|why| WorkError::OtherFlow { task, flow: flow_name, why })
    }

    /// What the prompt of an iteration says beside its task.
    pub(super) async fn iteration(
        &self,
        policy: &SessionPolicy,
        task: &Task,
        number: u32,
        notes: Vec<String>,
    ) -> Result<Iteration, WorkError> {
        let open = TaskQuery {
            session: Some(policy.session.clone()),
            status: StatusFilter::Open,
            limit: Some(TASKS_SHOWN),
            ..TaskQuery::default()
        };
        let (counts, progress, mut tasks) = tokio::try_join!(
            self.store.count_tasks(Some(&policy.session)),
            self.store.progress(&policy.session, PROGRESS_LINES),
            self.store.tasks(&open),
        )?;
        // The present one first, in the state in which it was picked.
        tasks.retain(|other| other.id != task.id);
        tasks.insert(0, task.clone());
        tasks.truncate(TASKS_SHOWN as usize);
        Ok(Iteration {
            number,
            most: policy.iterations,
            progress,
            tasks,
            open_tasks: counts.open,
            done_tasks: counts.done,
            all_tasks: counts.total,
            notes,
            message: policy.message.clone(),
            program: own_program(),
        })
    }
}

impl WorkerState {
    pub(super) fn begin_iteration(&self) -> u32 {
        self.iterations(|iterations| {
            iterations.count += 1;
            iterations.count
        })
    }

    /// Looks at the session as it is now: people edit it while the loop runs.
    pub(super) async fn session_end(&self, policy: &SessionPolicy) -> Result<Option<WorkEnd>, WorkError> {
        let counts = self.worker.store.count_tasks(Some(&policy.session)).await?;
        let iteration = self.iterations(|iterations| iterations.count);
        if counts.open == 0 {
            return Ok(Some(match (iteration, failed(&counts)) {
                (0, _) => WorkEnd::NothingToDo,
                (_, 0) => WorkEnd::AllDone,
                (_, failed) => WorkEnd::SomeFailed { failed },
            }));
        }
        if iteration < policy.iterations {
            return Ok(None);
        }
        // What only a person can continue is not a matter of iterations.
        let open = self.open_tasks(policy).await?;
        let waits = |task: &Task| matches!(&task.standing, Standing::Waiting(wait) if wait.wait_for == WaitFor::Human);
        if open.iter().all(waits) {
            return Ok(Some(WorkEnd::NeedsHuman { waiting: self.what_waits(policy).await? }));
        }
        Ok(Some(WorkEnd::MaxIterations))
    }

    /// Nothing can be claimed: either that passes, or a person is needed.
    pub(super) async fn idle_session_end(
        &self,
        policy: &SessionPolicy,
        wakeup: Option<&Wakeup>,
    ) -> Result<Option<WorkEnd>, WorkError> {
        match wakeup {
            None => Ok(Some(WorkEnd::NeedsHuman { waiting: self.what_waits(policy).await? })),
            Some(Wakeup { at, reason }) if at.since(self.now()) > policy.max_wait => {
                Ok(Some(WorkEnd::WaitTooLong { wait: reason.clone().unwrap_or_default(), until: *at }))
            }
            Some(_) => Ok(None),
        }
    }

    /// The open tasks, with what each waits for.
    async fn what_waits(&self, policy: &SessionPolicy) -> Result<Vec<String>, WorkError> {
        let mut waiting = Vec::new();
        for task in self.open_tasks(policy).await? {
            let reason = self.what_holds(&task, self.now()).await?;
            waiting.push(format!("{} {}: {reason}", task.id, task.title));
        }
        Ok(waiting)
    }

    async fn open_tasks(&self, policy: &SessionPolicy) -> Result<Vec<Task>, WorkError> {
        let open = TaskQuery {
            session: Some(policy.session.clone()),
            status: StatusFilter::Open,
            limit: Some(TASKS_NAMED),
            ..TaskQuery::default()
        };
        Ok(self.worker.store.tasks(&open).await?)
    }

    /// Whether some task of the session has used up its budget, and no other waits for a person.
    pub(super) async fn is_all_spent(&self, policy: &SessionPolicy) -> Result<bool, WorkError> {
        let mut is_any = false;
        for task in self.open_tasks(policy).await? {
            match &task.standing {
                Standing::Waiting(wait) if wait.wait_for == WaitFor::Human => {
                    if !matches!(task.last_outcome, Some(Outcome::BudgetReached { .. })) {
                        return Ok(false);
                    }
                    is_any = true;
                }
                Standing::Ready => {
                    let task = self.with_stand_in(task);
                    let limits = &self.worker.options.limits;
                    let hindrance = self.worker.store.hindrance(&task, limits, self.now()).await?;
                    is_any |= matches!(hindrance, Some(Hindrance::Spent { .. }));
                }
                _ => {}
            }
        }
        Ok(is_any)
    }

    async fn what_holds(&self, task: &Task, now: Timestamp) -> Result<String, WorkError> {
        let worker = &self.worker;
        Ok(match &task.standing {
            Standing::Waiting(wait) if wait.until.is_none_or(|until| until > now) => wait.reason.clone(),
            Standing::Claimed(claim) => format!("run {} works on it", claim.run),
            Standing::Ended { .. } => task.status().to_owned(),
            Standing::Ready | Standing::Waiting(_) => {
                let task = self.with_stand_in(task.clone());
                match worker.store.hindrance(&task, &worker.options.limits, now).await? {
                    Some(hindrance) => hindrance.to_string(),
                    None => "it depends on tasks that are not done".to_owned(),
                }
            }
        })
    }

    /// Whether the loop is over after this run.
    pub(super) async fn end_after_iteration(
        &self,
        policy: &SessionPolicy,
        finished: Finished,
    ) -> Result<Option<WorkEnd>, WorkError> {
        let Finished { outcome, promise, was_capped, stops_the_line } = finished;
        if matches!(outcome, Outcome::BudgetReached { .. }) && was_capped {
            let spent_usd = self.tally(|tally| tally.spent());
            return Ok(Some(WorkEnd::BudgetReached { spent_usd }));
        }
        if outcome.blame() != Blame::System {
            self.iterations(|iterations| iterations.notes.clear());
        }
        if !matches!(outcome.blame(), Blame::Nobody | Blame::User) {
            self.iterations(|iterations| {
                iterations.failures += 1;
                iterations.last_failure = Some(outcome.clone());
            });
        }
        match &outcome {
            Outcome::Cancelled => return Ok(Some(WorkEnd::Interrupted)),
            Outcome::Blocked { reason } => return Ok(Some(WorkEnd::Blocked { why: reason.clone() })),
            Outcome::Continue { message } if !message.is_empty() => {
                self.note(format!("the last iteration says: {message}"));
            }
            Outcome::Done if promise == Some(Promise::Complete) => {
                let open_tasks = self.worker.store.count_tasks(Some(&policy.session)).await?.open;
                if open_tasks == 0 {
                    return Ok(None);
                }
                if policy.accept_complete {
                    return Ok(Some(WorkEnd::Complete { open_tasks }));
                }
                self.refuse_complete(open_tasks);
            }
            _ => {}
        }
        if self.is_one_failure_too_many(&outcome, policy.max_failures) {
            return Ok(Some(WorkEnd::TooManyFailures { last: outcome }));
        }
        Ok(stops_the_line.then_some(WorkEnd::LineStopped { cause: outcome }))
    }

    fn refuse_complete(&self, open_tasks: u64) {
        self.tell(WorkEvent::CompleteRefused { open_tasks });
        let open = if open_tasks == 1 { "1 task is".to_owned() } else { format!("{open_tasks} tasks are") };
        self.note(format!(
            "the last iteration said COMPLETE, which was refused: {open} not done. \
             A task counts as done only when it is reported with `rehearsal task done ID`."
        ));
    }

    fn note(&self, note: String) {
        self.iterations(|iterations| iterations.notes.push(note));
    }

    /// Failures of the system neither count nor begin the count again.
    fn is_one_failure_too_many(&self, outcome: &Outcome, max_failures: u32) -> bool {
        if outcome.blame() == Blame::System {
            return false;
        }
        let failed = outcome.blame() == Blame::Agent || matches!(outcome, Outcome::Failed { .. });
        let in_a_row = self.iterations(|iterations| {
            iterations.failures_in_a_row = if failed { iterations.failures_in_a_row + 1 } else { 0 };
            iterations.failures_in_a_row
        });
        failed && in_a_row >= max_failures
    }
}

/// Tasks that are over, and neither done nor cancelled.
fn failed(counts: &Counts) -> u64 {
    let cancelled = counts.by_status.get("cancelled").copied().unwrap_or(0);
    counts.total.saturating_sub(counts.open + counts.done + cancelled)
}
