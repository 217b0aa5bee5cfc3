//! A failure of the system is not the task's: what passes with time holds the agent's lane until then; what only a
//! hand can mend holds it after the second time in a row, and says what to do.

use rehearsal_core::guard::{acting_agent, fallback_after};
use rehearsal_core::transition::{LONGEST_WAIT, system_wait};
use rehearsal_core::{AgentName, Hold, HoldCause, Lane, Outcome, OutcomeName, Standing, Task};
use rehearsal_store::{Change, CommitError, StoreError};

use super::slot::is_system;
use super::{Policy, WorkEvent, WorkerState};

/// The same failure of the system so often in a row stops the line.
const STOP_THE_LINE_AFTER: u32 = 2;

impl WorkerState {
    /// Who works on a task in its state: the agent that its flow or the session names, or a fallback of it.
    pub(super) async fn agent_for(&self, task: &Task) -> Result<Option<AgentName>, StoreError> {
        let options = &self.worker.options;
        let Some(named) = options.stand_in().or(task.next_agent()) else { return Ok(None) };
        if options.limits.fallbacks_of(named).is_empty() {
            return Ok(Some(named.clone()));
        }
        let situation = self.worker.store.situation(&options.limits, self.now()).await?;
        Ok(Some(acting_agent(named, &options.limits, &situation, self.now()).clone()))
    }

    /// Who takes a task over from an agent whose run ended like this.
    pub(super) async fn fallback_from(
        &self,
        failed: &AgentName,
        outcome: &Outcome,
        task: &Task,
    ) -> Result<Option<AgentName>, StoreError> {
        let options = &self.worker.options;
        let Some(named) = options.stand_in().or(task.next_agent()) else { return Ok(None) };
        if !outcome.name().is_of_one_agent() || options.limits.fallbacks_of(named).is_empty() {
            return Ok(None);
        }
        let situation = self.worker.store.situation(&options.limits, self.now()).await?;
        Ok(fallback_after(failed, named, &options.limits, &situation, self.now()).cloned())
    }

    /// What the end of a run means for others of the same agent; whether a session cannot be helped by going on.
    pub(super) async fn after_run(
        &self,
        agent: &AgentName,
        outcome: &Outcome,
        task: &Task,
    ) -> Result<bool, CommitError> {
        let name = outcome.name();
        if !is_system(outcome) {
            self.count_setback(agent.as_str(), None);
            return Ok(false);
        }
        let lane = Lane::Agent(agent.clone());
        let (cause, reason) = (HoldCause::System(name), outcome.to_string());
        if name.is_of_one_agent() && task.standing == Standing::Ready {
            // Another agent takes over. This one is tried again from time to time.
            let longest = self.now().plus(LONGEST_WAIT);
            let wait = system_wait(outcome, 1, self.now()).until;
            let until = wait.filter(|_| name.passes_with_time()).unwrap_or(longest);
            self.hold(lane, Hold { cause, reason, until: Some(until) }).await?;
            return Ok(false);
        }
        if name.passes_with_time() {
            if let Standing::Waiting(wait) = &task.standing {
                self.hold(lane, Hold { cause, reason, until: wait.until }).await?;
            }
            return Ok(false);
        }
        if self.count_setback(agent.as_str(), Some(name)) < STOP_THE_LINE_AFTER {
            return Ok(false);
        }
        // Whoever runs a session is there to fix it, and says so by the next `run`.
        if matches!(self.worker.options.policy, Policy::Session(_)) {
            return Ok(true);
        }
        self.hold(lane, Hold { cause, reason, until: None }).await?;
        Ok(true)
    }

    /// Steps that fail for everyone stop all work after the second time.
    pub(super) async fn stop_the_line_after_steps(
        &self,
        outcome: OutcomeName,
        reason: String,
    ) -> Result<(), CommitError> {
        if self.count_setback("steps", Some(outcome)) < STOP_THE_LINE_AFTER {
            return Ok(());
        }
        self.hold(Lane::All, Hold { cause: HoldCause::System(outcome), reason, until: None }).await
    }

    async fn hold(&self, lane: Lane, hold: Hold) -> Result<(), CommitError> {
        self.commit(vec![Change::HoldLane { lane: lane.clone(), hold: hold.clone() }]).await?;
        self.tell(WorkEvent::Held { lane, hold });
        Ok(())
    }

    /// Counts hard failures in a row; none begins anew.
    pub(super) fn count_setback(&self, whose: &str, failure: Option<OutcomeName>) -> u32 {
        self.tally(|tally| {
            let count = tally.hard_setbacks.entry(whose.to_owned()).or_default();
            *count = if failure.is_some() { *count + 1 } else { 0 };
            *count
        })
    }
}
