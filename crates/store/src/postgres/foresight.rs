//! What this process is about to claim, and what comes next.
//!
//! Those who claim at once look one after the other, each past what the others have in hand: they would all find the same task
//! otherwise, and all but one in vain. Who claims often looks ahead.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use tokio::sync::MutexGuard;
use tokio::time::Instant;

use crate::policy::{AHEAD, AHEAD_FOR};
use crate::tables::commit::Ahead;

#[derive(Debug, Default)]
pub(super) struct Foresight {
    looking: tokio::sync::Mutex<()>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    in_hand: BTreeSet<i64>,
    ahead: VecDeque<Ahead>,
    looked_at: Option<Instant>,
}

/// What to do for a claim.
pub(super) enum Next<'a> {
    /// To claim this one, which is likely next. Others have those in hand.
    Claim { task: Ahead, held: Held<'a>, in_hand: String },
    /// To look.
    Look(Looking<'a>),
}

/// Nobody else looks meanwhile.
pub(super) struct Looking<'a> {
    foresight: &'a Foresight,
    _turn: MutexGuard<'a, ()>,
}

/// A task that others look past.
pub(super) struct Held<'a> {
    foresight: &'a Foresight,
    num: i64,
}

impl Foresight {
    pub(super) async fn next(&self) -> Next<'_> {
        if let Some(next) = self.ahead() {
            return next;
        }
        let turn = self.looking.lock().await;
        // The one before us may have looked far enough.
        self.ahead().unwrap_or(Next::Look(Looking { foresight: self, _turn: turn }))
    }

    fn ahead(&self) -> Option<Next<'_>> {
        self.seen(|seen| {
            if !seen.is_fresh() {
                seen.ahead.clear();
            }
            let task = seen.ahead.pop_front()?;
            let (in_hand, num) = (seen.in_hand(), task.num);
            seen.in_hand.insert(num);
            Some(Next::Claim { task, held: Held { foresight: self, num }, in_hand })
        })
    }

    /// It was not so.
    pub(super) fn forget(&self) {
        self.seen(|seen| seen.ahead.clear());
    }

    fn seen<T>(&self, use_it: impl FnOnce(&mut Seen) -> T) -> T {
        // Whatever is in there is only believed.
        use_it(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Seen {
    fn is_fresh(&self) -> bool {
        self.looked_at.is_some_and(|at| at.elapsed() < AHEAD_FOR)
    }

    /// As PostgreSQL writes a list.
    fn in_hand(&self) -> String {
        let numbers: Vec<String> = self.in_hand.iter().map(i64::to_string).collect();
        format!("{{{}}}", numbers.join(","))
    }
}

impl<'a> Looking<'a> {
    /// The tasks to look past, and how far to look ahead.
    pub(super) fn past(&self) -> (String, i64) {
        self.foresight.seen(|seen| (seen.in_hand(), if seen.is_fresh() { AHEAD } else { 0 }))
    }

    /// Takes what was found, and lets the next one look.
    pub(super) fn take(self, num: i64, ahead: Vec<Ahead>) -> Held<'a> {
        self.foresight.seen(|seen| {
            seen.in_hand.insert(num);
            seen.ahead = ahead.into();
            seen.looked_at = Some(Instant::now());
        });
        Held { foresight: self.foresight, num }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.foresight.seen(|seen| seen.in_hand.remove(&self.num));
    }
}
