//! What one statement can do, without a transaction around it: to change a task that this process works on, and to claim one
//! that nobody else is about to claim. Each is made only if the task is as it is believed to be.

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, Task, TaskId, Timestamp};

use super::foresight::Next;
use super::server::Turn;
use super::{PostgresStore, TimeSource};
use crate::tables::commit::{AtOnce, Foreseen, Writing};
use crate::{Change, ClaimRequest, Claimed, CommitError, Committed, StoreError};

/// How often others may be quicker, before a claim waits for its turn in a transaction.
const TRIES: usize = 3;

/// What came of it.
pub(super) enum Tried {
    Made(Committed),
    /// Nothing was changed.
    NotMade,
    Unknown(Doubt),
}

/// What was sent, and whose answer was lost.
pub(super) struct Doubt {
    planned: Box<AtOnce>,
    told: fn(Task) -> Committed,
}

impl PostgresStore {
    pub(super) async fn try_at_once(
        &self,
        actor: &Actor,
        given: Timestamp,
        changes: &[Change],
    ) -> Result<Tried, StoreError> {
        let at = match self.time {
            TimeSource::Given => Some(given),
            TimeSource::Server => self.known.time(),
        };
        match (at, changes) {
            (Some(at), [Change::ChangeTask { id, input }]) => self.try_change(actor, at, id, input).await,
            (Some(at), [Change::ClaimNext(request)]) if !request.counts() => {
                self.try_claim(actor, at, request).await
            }
            _ => Ok(Tried::NotMade),
        }
    }

    async fn try_change(
        &self,
        actor: &Actor,
        at: Timestamp,
        id: &TaskId,
        input: &TaskInput,
    ) -> Result<Tried, StoreError> {
        let Some(believed) = self.known.task(id) else { return Ok(Tried::NotMade) };
        let mut turn = self.server.turn().await?;
        let mut writing = Writing::new(turn.link(), &self.flows, actor, at, None);
        let planned = writing.plan_change(&believed, input).await?;
        let tried = match planned {
            Some(planned) => self.make(turn, planned, changed).await,
            None => turn.kept(Tried::NotMade),
        };
        if matches!(tried, Tried::NotMade) {
            self.known.forget(id);
        }
        Ok(tried)
    }

    async fn try_claim(
        &self,
        actor: &Actor,
        at: Timestamp,
        request: &ClaimRequest,
    ) -> Result<Tried, StoreError> {
        for _ in 0..TRIES {
            let mut turn = self.server.turn().await?;
            let mut writing = Writing::new(turn.link(), &self.flows, actor, at, None);
            let (planned, _held) = match self.foresight.next().await {
                Next::Claim { task, held, in_hand } => {
                    let planned = writing.plan_ahead(request, task, &in_hand).await?;
                    (planned, held)
                }
                Next::Look(looking) => {
                    let (past, ahead) = looking.past();
                    match writing.foresee_claim(request, &past, ahead).await? {
                        Foreseen::Claim { num, planned, ahead } => (Some(planned), looking.take(num, ahead)),
                        Foreseen::Nothing => {
                            return Ok(turn.kept(Tried::Made(Committed::Claimed(None))));
                        }
                        Foreseen::Unclear => return Ok(turn.kept(Tried::NotMade)),
                    }
                }
            };
            let tried = match planned {
                Some(planned) => self.make(turn, planned, claimed).await,
                None => turn.kept(Tried::NotMade),
            };
            if !matches!(tried, Tried::NotMade) {
                return Ok(tried);
            }
            self.foresight.forget();
        }
        Ok(Tried::NotMade)
    }

    async fn make(&self, mut turn: Turn<'_>, planned: Box<AtOnce>, told: fn(Task) -> Committed) -> Tried {
        match planned.make(&mut turn.link()).await {
            Ok(true) => {
                // What was committed is committed, whether others hear of it or not.
                if self.hints.tell(&mut turn).await.is_ok() {
                    turn.keep();
                }
                Tried::Made(told(planned.after))
            }
            Ok(false) => {
                turn.keep();
                Tried::NotMade
            }
            Err(error) => {
                self.server.heed(&error);
                Tried::Unknown(Doubt { planned, told })
            }
        }
    }
}

impl Doubt {
    /// What the task as it is now says about it; nothing if it was not made. One that somebody changed since may have been
    /// changed by us before. It stays as it is until the transaction ends: what was sent cannot be done late.
    pub(super) async fn settle(
        &self,
        writing: &mut Writing<'_>,
    ) -> Result<Option<Vec<Committed>>, CommitError> {
        let AtOnce { after, was, is, .. } = &*self.planned;
        match writing.doc_to_change(&after.id).await? {
            Some(doc) if doc == *is => Ok(Some(vec![(self.told)(after.clone())])),
            Some(doc) if doc == *was => Ok(None),
            _ => Err(CommitError::OutcomeUnknown),
        }
    }
}

fn changed(task: Task) -> Committed {
    Committed::Task(Box::new(task))
}

fn claimed(task: Task) -> Committed {
    Committed::Claimed(Some(Box::new(Claimed { task, taken_from: None })))
}
