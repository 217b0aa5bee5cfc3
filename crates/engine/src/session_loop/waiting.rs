//! Waiting is a state of tasks, stored: a loop finds it, keeps to it, and finds it again after a restart.

use std::time::Duration;

use rehearsal_core::{Standing, Task, TaskId, Timestamp, Wait, WaitFor};
use rehearsal_store::{RunQuery, Scope, StatusFilter, TaskQuery};

use super::{LoopEnd, LoopError, LoopEvent, NextStep, Progress, SessionLoop};

/// How many tasks a loop names that it cannot go on with.
const TASKS_NAMED: u32 = 1_000;

/// How often a loop that waits looks whether somebody changed something: promptly for a person, and a small read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl SessionLoop {
    /// A limit of the agent's vendor holds for the agent, not for one task: no other one is tried meanwhile.
    pub(super) async fn rest_of_the_agent(
        &self,
        progress: &Progress,
    ) -> Result<Option<(Wait, Timestamp)>, LoopError> {
        let Some(id) = &progress.rest_of else {
            return Ok(None);
        };
        Ok(self.store.task(id).await?.and_then(|task| rest_in(&task, self.now())))
    }

    /// The task by which an earlier loop learnt that this agent has to rest; of several, the longest rest.
    pub(super) async fn stored_rest(&self) -> Result<Option<TaskId>, LoopError> {
        let mut longest: Option<(Timestamp, TaskId)> = None;
        for task in self.waiting_tasks().await? {
            let Some((_, until)) = rest_in(&task, self.now()) else { continue };
            let last = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(1) };
            let of_this_agent =
                self.store.runs(&last).await?.iter().any(|run| run.start.agent == self.agent_name);
            if of_this_agent && longest.as_ref().is_none_or(|(longest, _)| until > *longest) {
                longest = Some((until, task.id));
            }
        }
        Ok(longest.map(|(_, task)| task))
    }

    /// What the open tasks wait for, when none can be worked on.
    pub(super) async fn what_it_waits_for(&self) -> Result<NextStep, LoopError> {
        let now = self.now();
        let waiting = self.waiting_tasks().await?;
        let timed = waiting.into_iter().filter_map(|task| timed_wait(&task, now));
        if let Some((wait, until)) = timed.min_by_key(|(_, until)| *until) {
            return Ok(NextStep::Wait(wait, until));
        }
        let open = TaskQuery {
            session: Some(self.options.session.clone()),
            status: StatusFilter::Open,
            limit: Some(TASKS_NAMED),
            ..TaskQuery::default()
        };
        let tasks = self.store.tasks(&open).await?;
        let waiting = tasks
            .iter()
            .map(|task| format!("{} {}: {}", task.id, task.title, crate::why::in_short(task, now)));
        Ok(NextStep::End(LoopEnd::NeedsHuman { waiting: waiting.collect() }))
    }

    /// Waits until the time has come, or somebody changed something: then there may be something else to do.
    pub(super) async fn wait(&self, progress: &mut Progress) -> Result<Option<LoopEnd>, LoopError> {
        let seen = self.store.last_event().await?;
        // Looked at again: what was changed before the line above would not be noticed below.
        let NextStep::Wait(wait, until) = self.next_step(progress).await? else {
            return Ok(None);
        };
        if until.since(self.now()) > self.options.max_wait {
            return Ok(Some(LoopEnd::WaitTooLong { wait: wait.reason, until }));
        }
        if progress.told_to_wait.replace(until) != Some(until) {
            self.tell(LoopEvent::Waiting { wait_for: wait.wait_for, reason: wait.reason, until });
        }
        tokio::select! {
            biased;
            () = self.stop.thrown() => Ok(Some(LoopEnd::Interrupted)),
            () = self.clock.sleep_until(until) => Ok(None),
            changed = self.changed_since(seen) => changed.map(|()| None),
        }
    }

    async fn changed_since(&self, seen: i64) -> Result<(), LoopError> {
        loop {
            self.clock.sleep_until(self.now().plus(LOOK_EVERY)).await;
            if self.store.last_event().await? > seen {
                return Ok(());
            }
        }
    }

    async fn waiting_tasks(&self) -> Result<Vec<Task>, LoopError> {
        let waiting = TaskQuery {
            session: Some(self.options.session.clone()),
            status: StatusFilter::Words(vec!["waiting".to_owned()]),
            ..TaskQuery::default()
        };
        Ok(self.store.tasks(&waiting).await?)
    }
}

fn timed_wait(task: &Task, now: Timestamp) -> Option<(Wait, Timestamp)> {
    match &task.standing {
        // A wait that is over holds nothing: then the task waits for others.
        Standing::Waiting(wait) => wait.until.filter(|until| *until > now).map(|until| (wait.clone(), until)),
        Standing::Ready | Standing::Claimed(_) | Standing::Ended { .. } => None,
    }
}

/// A wait that holds for whoever the agent's vendor serves.
fn rest_in(task: &Task, now: Timestamp) -> Option<(Wait, Timestamp)> {
    timed_wait(task, now)
        .filter(|(wait, _)| matches!(wait.wait_for, WaitFor::System(outcome) if outcome.passes_with_time()))
}
