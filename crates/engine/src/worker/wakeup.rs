//! When there may be something to do again, without anyone doing anything.

use rehearsal_core::guard::Hindrance;
use rehearsal_core::{AgentName, Lane, SessionName, Standing, Task, Timestamp};
use rehearsal_store::{StatusFilter, TaskQuery};

use super::{WorkError, WorkerState};

/// When to look again.
#[derive(Debug)]
pub(super) struct Wakeup {
    pub(super) at: Timestamp,
    /// What ends then, where it is known.
    pub(super) reason: Option<String>,
}

impl Wakeup {
    fn new(at: Timestamp, reason: impl Into<String>) -> Self {
        Self { at, reason: Some(reason.into()) }
    }
}

impl WorkerState {
    /// When something becomes claimable by itself: a wait is over then, an agent may begin its next run, or what ran out
    /// may be taken over. `now` is from before the claim that found nothing: what has ended since then is worth another look.
    pub(super) async fn next_wakeup(&self, now: Timestamp) -> Result<Option<Wakeup>, WorkError> {
        let (store, options) = (&self.worker.store, &self.worker.options);
        let wake = self.next_wake(now).await?;
        let hindrance = match store.next_task(options.session(), now).await? {
            Some(task) => store.hindrance(&self.with_stand_in(task), &options.limits, now).await?,
            None => None,
        };
        let is_ours = |name: &AgentName| options.agents().is_none_or(|agents| agents.contains(name));
        let soon = match &hindrance {
            Some(too_soon @ Hindrance::TooSoon { agent, until }) if is_ours(agent) => {
                Some(Wakeup::new(*until, too_soon.to_string()))
            }
            _ => None,
        };
        let leases = store.leases().await?;
        // Others work on as much as may be: a loop waits for them, whatever their session.
        let busy = match &hindrance {
            Some(busy @ (Hindrance::AllBusy { .. } | Hindrance::AgentBusy { .. }))
                if options.stand_in().is_some() =>
            {
                let until = leases.iter().map(|(_, until)| *until).filter(|until| *until > now).min();
                until.map(|until| Wakeup::new(until, busy.to_string()))
            }
            _ => None,
        };
        let allowed = self.began.plus(options.lease);
        let ran_out =
            allowed > now && leases.iter().any(|(task, until)| self.is_of_our_session(task) && *until <= now);
        let ran_out = ran_out.then(|| Wakeup::new(allowed, "another worker let its lease run out"));
        Ok(wake.into_iter().chain(soon).chain(busy).chain(ran_out).min_by_key(|wakeup| wakeup.at))
    }

    /// A task with the agent that would work on it here.
    pub(super) fn with_stand_in(&self, task: Task) -> Task {
        match self.worker.options.stand_in() {
            Some(agent) => Task { agent: Some(agent.clone()), ..task },
            None => task,
        }
    }

    /// When the first wait, lease or hold ends that this worker has to do with.
    async fn next_wake(&self, now: Timestamp) -> Result<Option<Wakeup>, WorkError> {
        match self.worker.options.session() {
            None => {
                let at = self.worker.store.next_wake(now).await?;
                Ok(at.map(|at| Wakeup { at, reason: None }))
            }
            Some(session) => self.next_wake_of(session, now).await,
        }
    }

    /// What other sessions wait for is not waited for.
    async fn next_wake_of(&self, session: &SessionName, now: Timestamp) -> Result<Option<Wakeup>, WorkError> {
        let (store, options) = (&self.worker.store, &self.worker.options);
        let waiting = TaskQuery {
            session: Some(session.clone()),
            status: StatusFilter::Words(vec!["waiting".to_owned()]),
            ..TaskQuery::default()
        };
        let waits = store.tasks(&waiting).await?;
        let leases = store.leases().await?;
        let holds = store.situation(&options.limits, now).await?.holds;
        let concerns_us = |lane: &Lane| match lane {
            Lane::All => true,
            Lane::Session(other) => other == session,
            Lane::Agent(agent) => options.stand_in().is_none_or(|ours| ours == agent),
        };
        let waits = waits.iter().filter_map(|task| match &task.standing {
            Standing::Waiting(wait) => Some(Wakeup::new(wait.until?, &wait.reason)),
            _ => None,
        });
        let leases = leases
            .iter()
            .filter(|(task, _)| self.is_of_our_session(task))
            .map(|(task, until)| Wakeup::new(*until, format!("another worker has task {}", task.id)));
        let holds = holds
            .iter()
            .filter(|(lane, _)| concerns_us(lane))
            .filter_map(|(_, hold)| Some(Wakeup::new(hold.until?, &hold.reason)));
        Ok(waits.chain(leases).chain(holds).filter(|wakeup| wakeup.at > now).min_by_key(|wakeup| wakeup.at))
    }

    fn is_of_our_session(&self, task: &Task) -> bool {
        let wanted = self.worker.options.session();
        wanted.is_none_or(|session| task.session.as_ref() == Some(session))
    }
}
