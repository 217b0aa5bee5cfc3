//! The worker's loop: claims tasks, gives each a slot, waits, and ends when its policy says so.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rehearsal_agent::BootInstant;
use rehearsal_core::{RunId, Timestamp, Turn};
use rehearsal_store::{Change, ClaimRequest, Claimed, CommitError, Committed};
use tokio::task::JoinSet;

use super::heartbeat::ClaimGuard;
use super::slot::Finished;
use super::wakeup::Wakeup;
use super::{Policy, WorkEnd, WorkError, WorkEvent, WorkerState, adopt, slot};

/// Tasks in work. What a slot gives back is how its agent's run ended, if there was one.
type Slots = JoinSet<Result<Option<Finished>, WorkError>>;

impl WorkerState {
    pub(super) async fn work(self: &Arc<Self>) -> Result<WorkEnd, WorkError> {
        let mut slots = Slots::new();
        let mut changes = self.worker.store.changes();
        let (mut began_one, mut told_to_wait, mut looked) = (false, None, self.now());
        loop {
            changes.mark_unchanged();
            self.look_after_claims(&mut looked).await;
            if self.unsure.swap(false, Ordering::SeqCst) {
                self.recover().await?;
            }
            began_one |= self.go_on_with_adopted(&mut slots).await;
            if slots.is_empty()
                && let Some(end) = self.end_before_claim(began_one).await?
            {
                return Ok(end);
            }
            let wakeup = self.fill(&mut slots, &mut began_one).await?;
            if slots.is_empty() {
                if let Some(end) = self.end_when_idle(wakeup.as_ref()).await? {
                    return Ok(end);
                }
                let until = wakeup.as_ref().map(|wakeup| wakeup.at);
                if told_to_wait.replace(until) != Some(until) {
                    let reason = wakeup.as_ref().and_then(|wakeup| wakeup.reason.clone());
                    self.tell(WorkEvent::Waiting { until, reason });
                }
            }
            let stopping = self.worker.stop.is_thrown();
            tokio::select! {
                biased;
                Some(ended) = slots.join_next() => {
                    if let Some(end) = self.end_after_run(ended.map_err(std::io::Error::other)??).await? {
                        return Ok(end);
                    }
                }
                () = self.worker.stop.thrown(), if !stopping => {}
                () = self.woken(wakeup.map(|wakeup| wakeup.at)) => {}
                changed = changes.changed(), if !stopping => changed.map_err(std::io::Error::other)?,
            }
        }
    }

    /// Claims tasks until all slots are taken or nothing more can be claimed; then, when to try again.
    async fn fill(
        self: &Arc<Self>,
        slots: &mut Slots,
        began_one: &mut bool,
    ) -> Result<Option<Wakeup>, WorkError> {
        while self.wants_more(slots.len(), *began_one) {
            let turn = self.worker.clock.turn().await;
            let (asked_at, looked_at) = (BootInstant::now(), self.now());
            let Some(claimed) = self.claim().await? else {
                // What a worker that died here has left is claimable as soon as it is known to be dead.
                if self.recover().await? > 0 {
                    drop(turn);
                    *began_one |= self.go_on_with_adopted(slots).await;
                    continue;
                }
                return self.next_wakeup(looked_at).await;
            };
            *began_one = true;
            // Before anything else happens: a claim of ours that is not held counts as left behind.
            let guard = self.claims.keep(&claimed.task, asked_at, self.worker.options.lease);
            slots.spawn(Arc::clone(self).work_on(claimed, guard, turn));
        }
        Ok(None)
    }

    async fn work_on(
        self: Arc<Self>,
        claimed: Claimed,
        guard: ClaimGuard,
        turn: Turn,
    ) -> Result<Option<Finished>, WorkError> {
        let worked = slot::work(&self, claimed, guard).await;
        drop(turn);
        worked
    }

    /// Whether it is over, while nothing is in work.
    async fn end_before_claim(&self, began_one: bool) -> Result<Option<WorkEnd>, WorkError> {
        if self.worker.stop.is_thrown() {
            return Ok(Some(WorkEnd::Interrupted));
        }
        let end = match &self.worker.options.policy {
            Policy::Queue(queue) => (queue.once && began_one).then_some(WorkEnd::Once),
            Policy::Session(session) => self.session_end(session).await?,
        };
        let spent = || WorkEnd::BudgetReached { spent_usd: self.tally(|tally| tally.spent()) };
        Ok(end.or_else(|| self.is_spent().then(spent)))
    }

    /// Whether it is over, now that nothing can be claimed.
    async fn end_when_idle(&self, wakeup: Option<&Wakeup>) -> Result<Option<WorkEnd>, WorkError> {
        match &self.worker.options.policy {
            Policy::Queue(queue) => {
                Ok((wakeup.is_none() && (queue.until_idle || queue.once)).then_some(WorkEnd::Idle))
            }
            Policy::Session(session) => self.idle_session_end(session, wakeup).await,
        }
    }

    /// Whether it is over after this run.
    async fn end_after_run(&self, finished: Option<Finished>) -> Result<Option<WorkEnd>, WorkError> {
        match (&self.worker.options.policy, finished) {
            (Policy::Session(session), Some(finished)) => self.end_after_iteration(session, finished).await,
            _ => Ok(None),
        }
    }

    /// Finds out what was taken from us since the last look, long before the heartbeat would: an agent whose task somebody
    /// cancels should stop soon.
    async fn look_after_claims(&self, last: &mut Timestamp) {
        let (now, claims) = (self.now(), self.claims.claims());
        let is_due = self.worker.options.look_every.is_some_and(|every| last.plus(every) <= now);
        if !is_due || claims.is_empty() {
            return;
        }
        *last = now;
        // A store that does not answer now is asked by the heartbeat as well, which tells.
        if let Ok(still_held) = self.worker.store.still_held(&claims).await {
            self.claims.seen(&claims, &still_held);
        }
    }

    /// Gives each run that was adopted a slot, also if there are more than may be begun at once; whether there was any.
    async fn go_on_with_adopted(self: &Arc<Self>, slots: &mut Slots) -> bool {
        let adopted = std::mem::take(&mut *self.adopted.lock().unwrap_or_else(PoisonError::into_inner));
        let is_any = !adopted.is_empty();
        for adopted in adopted {
            let turn = self.worker.clock.turn().await;
            let state = Arc::clone(self);
            slots.spawn(async move {
                let worked = adopt::work(&state, adopted).await;
                drop(turn);
                worked
            });
        }
        is_any
    }

    pub(super) fn wants_more(&self, busy: usize, began_one: bool) -> bool {
        let options = &self.worker.options;
        let was_once = matches!(&options.policy, Policy::Queue(queue) if queue.once) && began_one;
        let is_over = self.worker.stop.is_thrown() || self.is_spent() || was_once;
        !is_over && busy < options.at_once() as usize
    }

    /// Returns when something may have become claimable by itself, or others may have changed something.
    async fn woken(&self, until: Option<Timestamp>) {
        let look = self.worker.options.look_every.map(|every| self.now().plus(every));
        match (until, look) {
            (None, None) => std::future::pending().await,
            (Some(at), None) | (None, Some(at)) => self.worker.clock.sleep_until(at).await,
            (Some(until), Some(look)) => self.worker.clock.sleep_until(until.min(look)).await,
        }
    }

    async fn claim(&self) -> Result<Option<Claimed>, WorkError> {
        let options = &self.worker.options;
        loop {
            let request = ClaimRequest {
                worker: self.id.clone(),
                run: RunId::from_random(self.draw()),
                lease: options.lease,
                agents: options.agents().cloned(),
                stand_in: options.stand_in().cloned(),
                session: options.session().cloned(),
                limits: options.limits.clone(),
                may_take_over: self.may_take_over(),
            };
            match self.commit(vec![Change::ClaimNext(Box::new(request))]).await {
                Ok(committed) => {
                    return Ok(committed.into_iter().find_map(|committed| match committed {
                        Committed::Claimed(claimed) => claimed.map(|claimed| *claimed),
                        _ => None,
                    }));
                }
                // If there is a claim that we do not know of, it is given back.
                Err(CommitError::OutcomeUnknown) => self.recover().await?,
                Err(error) => return Err(error.into()),
            };
        }
    }

    /// A worker that slept prolongs its own claims before it takes anyone else's; and one that has just begun cannot know
    /// whether the whole machine slept, with others on it that are about to prolong theirs.
    fn may_take_over(&self) -> bool {
        let lease = self.worker.options.lease;
        let last_beat = Timestamp(self.last_beat.load(Ordering::SeqCst));
        self.now() >= self.began.plus(lease) && self.now().since(last_beat) <= lease
    }
}
