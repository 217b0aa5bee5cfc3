//! When there may be something to do again, without anyone doing anything.

use rehearsal_core::guard::Hindrance;
use rehearsal_core::{AgentName, Lane, SessionName, Standing, Task, Timestamp};
use rehearsal_store::{StatusFilter, TaskQuery};

use super::{WorkError, WorkerState};

impl WorkerState {
    /// When something becomes claimable by itself: a wait is over then, an agent may begin its next run, or what ran out
    /// may be taken over.
    pub(super) async fn next_chance(&self) -> Result<Option<Timestamp>, WorkError> {
        let (store, options, now) = (&self.worker.store, &self.worker.options, self.now());
        let wake = self.next_wake(now).await?;
        let hindrance = match store.next_task(options.session.as_ref(), now).await? {
            Some(task) => store.hindrance(&task, &options.limits, now).await?,
            None => None,
        };
        let is_ours = |name: &AgentName| options.agents.as_ref().is_none_or(|agents| agents.contains(name));
        let soon = match hindrance {
            Some(Hindrance::TooSoon { agent, until }) if is_ours(&agent) => Some(until),
            _ => None,
        };
        let allowed = self.began.plus(options.lease);
        let ran_out = allowed > now
            && store
                .leases()
                .await?
                .iter()
                .any(|(task, until)| self.is_of_our_session(task) && *until <= now);
        Ok(wake.into_iter().chain(soon).chain(ran_out.then_some(allowed)).min())
    }

    /// When the first wait, lease or hold ends that this worker has to do with.
    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, WorkError> {
        let store = &self.worker.store;
        match &self.worker.options.session {
            None => Ok(store.next_wake(now).await?),
            Some(session) => self.next_wake_of(session, now).await,
        }
    }

    /// What other sessions wait for is not waited for.
    async fn next_wake_of(
        &self,
        session: &SessionName,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, WorkError> {
        let (store, limits) = (&self.worker.store, &self.worker.options.limits);
        let waiting = TaskQuery {
            session: Some(session.clone()),
            status: StatusFilter::Words(vec!["waiting".to_owned()]),
            ..TaskQuery::default()
        };
        let waits = store.tasks(&waiting).await?;
        let leases = store.leases().await?;
        let holds = store.situation(limits, now).await?.holds;
        let concerns_us = |lane: &Lane| !matches!(lane, Lane::Session(other) if other != session);
        let waits = waits.iter().filter_map(|task| match &task.standing {
            Standing::Waiting(wait) => wait.until,
            _ => None,
        });
        let leases = leases.iter().filter(|(task, _)| self.is_of_our_session(task)).map(|(_, until)| *until);
        let holds = holds.iter().filter(|(lane, _)| concerns_us(lane)).filter_map(|(_, hold)| hold.until);
        Ok(waits.chain(leases).chain(holds).filter(|at| *at > now).min())
    }

    fn is_of_our_session(&self, task: &Task) -> bool {
        let wanted = self.worker.options.session.as_ref();
        wanted.is_none_or(|session| task.session.as_ref() == Some(session))
    }
}
