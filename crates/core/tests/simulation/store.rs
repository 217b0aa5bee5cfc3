//! The store: rows, one log, leases, and the record of steps that were begun. What moves a row is the real
//! `transition`; who may claim it is the real `guard`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{Limits, Situation, Working, lane_hindrance, task_hindrance};
use rehearsal_core::transition::{Refusal, TaskInput, transition};
use rehearsal_core::{Claim, Fence, Hold, Lane, RunId, Standing, StateName, Task, Timestamp, Wait, WorkerId};

use crate::check;
use crate::defect::Defect;
use crate::forge::Key;
use crate::invariant::{
    Invariant::{I2, I5},
    Violation, ensure,
};
use crate::repository::id_of;

/// For how long a claim holds without a word from its worker.
pub(crate) const LEASE: i64 = 90_000;

pub(crate) struct Row {
    pub(crate) task: Task,
    pub(crate) flow: &'static Flow,
    pub(crate) lease_until: Option<i64>,
    /// Until when an agent may still work that does not know yet that a person took its task away.
    held_back_until: i64,
    /// How often its steps were begun from the first.
    pub(crate) pass: u32,
    /// What its events add up to.
    folded: Task,
    /// Who held it under which fence.
    owners: BTreeMap<Fence, RunId>,
}

/// Who writes: what only the model can know, to judge what the store let through.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Writer {
    Person,
    /// A process that writes for a run of its own.
    Run(RunId),
    /// One that looks after what others left, and saw this fence.
    Sweeper(Fence),
    /// One that found its predecessor dead.
    Successor,
}

/// Why nothing was written.
pub(crate) enum Denied {
    Refused(Refusal),
    Broken(Violation),
}

impl From<Violation> for Denied {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

pub(crate) struct Store {
    defect: Option<Defect>,
    pub(crate) rows: Vec<Row>,
    pub(crate) events: u32,
    pub(crate) stale_writes: u32,
    pub(crate) holds: Vec<(Lane, Hold)>,
    pub(crate) limits: Limits,
    runs: BTreeSet<RunId>,
    intents: BTreeSet<Key>,
}

/// A worker's wish.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) worker: WorkerId,
    pub(crate) run: RunId,
    pub(crate) may_take_over: bool,
    /// How far the worker's clock is off.
    pub(crate) skew: i64,
}

impl Store {
    pub(crate) fn new(tasks: Vec<(Task, &'static Flow)>, limits: Limits, defect: Option<Defect>) -> Self {
        let row = |(task, flow): (Task, &'static Flow)| Row {
            folded: task.clone(),
            pass: u32::from(task.pending.is_some()),
            task,
            flow,
            lease_until: None,
            held_back_until: 0,
            owners: BTreeMap::new(),
        };
        Self {
            defect,
            rows: tasks.into_iter().map(row).collect(),
            events: 0,
            stale_writes: 0,
            holds: Vec::new(),
            limits,
            runs: BTreeSet::new(),
            intents: BTreeSet::new(),
        }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// One transaction: a row, its event, its lease.
    pub(crate) fn commit(
        &mut self,
        index: usize,
        input: TaskInput,
        writer: &Writer,
        now: i64,
    ) -> Result<(), Denied> {
        let input = self.as_taken(input, index);
        let row = &self.rows[index];
        let result = transition(&row.task, &input, row.flow, Timestamp(now));
        let mut next = result.map_err(|refusal| {
            self.stale_writes += u32::from(matches!(refusal, Refusal::Stale { .. }));
            Denied::Refused(refusal)
        })?;
        if self.has(Defect::FenceStaysOnTakeOver) && matches!(input, TaskInput::TakeOver { .. }) {
            next.fence = self.rows[index].task.fence;
        }
        let forgets = self.has(Defect::EventForgotten) && matches!(writer, Writer::Sweeper(_));
        let keeps_lease = self.has(Defect::LeaseSurvivesItsClaim);
        let row = &mut self.rows[index];
        check::writer(&row.task, row.lease_until, &input, writer, now)?;
        check::movement(&row.task, &next, &input, row.flow)?;
        if let Standing::Claimed(claim) = &next.standing {
            let owner = row.owners.entry(next.fence).or_insert_with(|| claim.run.clone());
            ensure(*owner == claim.run, I2, || format!("fence {} has two owners", next.fence))?;
        } else {
            if *writer == Writer::Person {
                row.held_back_until = row.lease_until.unwrap_or(row.held_back_until);
            }
            row.lease_until = row.lease_until.filter(|_| keeps_lease);
        }
        if begins_steps(&row.task, &next) {
            row.pass += 1;
        }
        row.task = next;
        if !forgets {
            self.events += 1;
            let folded = transition(&row.folded, &input, row.flow, Timestamp(now));
            row.folded = folded.map_err(|refusal| Violation { invariant: I5, what: refusal.to_string() })?;
        }
        ensure(row.task == row.folded, I5, || format!("t{index} is not what its events say"))?;
        let leased = row.lease_until.is_none() || matches!(row.task.standing, Standing::Claimed(_));
        ensure(leased, I2, || format!("the lease of t{index} outlives its claim"))?;
        Ok(())
    }

    fn as_taken(&self, mut input: TaskInput, index: usize) -> TaskInput {
        if let TaskInput::EndRun { fence, .. }
        | TaskInput::StepDone { fence, .. }
        | TaskInput::StepFailed { fence, .. }
        | TaskInput::Release { fence } = &mut input
            && self.has(Defect::WritesWithoutFence)
        {
            *fence = self.rows[index].task.fence;
        }
        if let TaskInput::Adopt { from, .. } = &mut input
            && self.has(Defect::AdoptsFromWhomever)
            && let Standing::Claimed(claim) = &self.rows[index].task.standing
        {
            from.clone_from(&claim.worker);
        }
        input
    }

    /// The next task, oldest first, and the run that it was taken from.
    pub(crate) fn claim(
        &mut self,
        wish: &Wish,
        now: i64,
    ) -> Result<Option<(usize, Option<RunId>)>, Violation> {
        // A run claims once: a request that comes twice is heard once.
        if self.runs.contains(&wish.run) {
            return Ok(None);
        }
        let judged_at = if self.has(Defect::ExpiryByTheThiefsClock) { now + wish.skew } else { now };
        for index in 0..self.rows.len() {
            if !self.is_free(index, wish, judged_at, now)
                || self.hindrance(index, &self.situation(now), now).is_some()
            {
                continue;
            }
            let task = &self.rows[index].task;
            let (worker, run) = (wish.worker.clone(), wish.run.clone());
            let (input, writer, lost) = match &task.standing {
                Standing::Claimed(Claim { run: lost, .. }) => {
                    let stale = task.fence;
                    (TaskInput::TakeOver { worker, run, stale }, Writer::Sweeper(stale), Some(lost.clone()))
                }
                _ => (TaskInput::Claim { worker, run }, Writer::Successor, None),
            };
            match self.commit(index, input, &writer, now) {
                Ok(()) if matches!(self.rows[index].task.standing, Standing::Claimed(_)) => {
                    self.runs.insert(wish.run.clone());
                    self.rows[index].lease_until = Some(now + LEASE);
                    return Ok(Some((index, lost)));
                }
                Ok(()) | Err(Denied::Refused(_)) => {}
                Err(Denied::Broken(violation)) => return Err(violation),
            }
        }
        Ok(None)
    }

    /// Whether nobody works on it, or nobody any more.
    fn is_free(&self, index: usize, wish: &Wish, judged_at: i64, now: i64) -> bool {
        let Row { task, lease_until, held_back_until, .. } = &self.rows[index];
        if *held_back_until > now && !self.has(Defect::ClaimsWhatWasJustTakenAway) {
            return false;
        }
        match &task.standing {
            Standing::Ready => true,
            Standing::Waiting(Wait { until, .. }) => until.is_some_and(|until| until.0 <= now),
            Standing::Claimed(_) => wish.may_take_over && lease_until.is_some_and(|until| until <= judged_at),
            Standing::Ended { .. } => false,
        }
    }

    /// What keeps a task from being claimed, in words.
    pub(crate) fn hindrance(&self, index: usize, situation: &Situation, now: i64) -> Option<String> {
        let Row { task, flow, .. } = &self.rows[index];
        if let Some(open) = task
            .depends_on
            .iter()
            .find(|id| self.rows.iter().any(|row| row.task.id == **id && !row.task.is_done()))
        {
            return Some(format!("`{open}` is not done"));
        }
        let now = Timestamp(now);
        lane_hindrance(task.next_agent(), task.session.as_ref(), &self.limits, situation, now)
            .or_else(|| task_hindrance(task, flow, situation, &self.counts(task), 0.0))
            .map(|hindrance| hindrance.to_string())
    }

    pub(crate) fn situation(&self, now: i64) -> Situation {
        let in_work = self.rows.iter().filter(|row| {
            matches!(row.task.standing, Standing::Claimed(_))
                && row.lease_until.is_some_and(|until| until > now)
        });
        let working = in_work.map(|Row { task, .. }| Working {
            task: task.id.clone(),
            session: task.session.clone(),
            agent: task.next_agent().cloned(),
            touches: task.touches.clone(),
        });
        Situation { working: working.collect(), holds: self.holds.clone(), last_starts: BTreeMap::new() }
    }

    fn counts(&self, task: &Task) -> BTreeMap<StateName, u32> {
        let mut counts = BTreeMap::new();
        let alike = |row: &&Row| row.task.flow_version == task.flow_version && !row.task.is_ended();
        for row in self.rows.iter().filter(alike) {
            *counts.entry(row.task.state.clone()).or_default() += 1;
        }
        counts
    }

    /// Lengthens the leases of claims that still stand; the rest are lost.
    pub(crate) fn renew(
        &mut self,
        claims: &[(usize, Fence, RunId)],
        now: i64,
    ) -> Result<Vec<usize>, Violation> {
        let by_id = self.has(Defect::HeartbeatByIdOnly);
        let mut held = Vec::new();
        for (index, fence, run) in claims {
            let row = &mut self.rows[*index];
            let Standing::Claimed(Claim { run: owner, .. }) = &row.task.standing else { continue };
            if row.task.fence == *fence || by_id {
                row.lease_until = Some(now + LEASE);
                held.push(*index);
            } else {
                ensure(owner != run, I2, || format!("t{index} was lost though nobody took it"))?;
            }
        }
        Ok(held)
    }

    /// Claims that ran out, for whoever sweeps.
    pub(crate) fn run_out(&mut self, now: i64) -> Vec<(usize, Fence)> {
        let moves_fence = self.has(Defect::ExpiryMovesTheFence);
        let over = |row: &Row| row.lease_until.is_some_and(|until| until <= now);
        let mut found = Vec::new();
        for (index, row) in self.rows.iter_mut().enumerate().filter(|(_, row)| over(row)) {
            found.push((index, row.task.fence));
            if moves_fence {
                row.task.fence = row.task.fence.next();
                row.folded.fence = row.task.fence;
            }
        }
        found
    }

    /// Requeues a claim that ran out: if it is still the one that was seen, and still over.
    pub(crate) fn sweep(&mut self, index: usize, seen: Fence, now: i64) -> Result<(), Violation> {
        let row = &self.rows[index];
        let trusts = self.has(Defect::SweeperTrustsWhatItSaw);
        if !trusts && (row.task.fence != seen || row.lease_until.is_none_or(|until| until > now)) {
            return Ok(());
        }
        let (stale, Standing::Claimed(Claim { worker, .. })) = (row.task.fence, &row.task.standing) else {
            return Ok(());
        };
        let input = TaskInput::Lose { stale, of: worker.clone() };
        match self.commit(index, input, &Writer::Sweeper(seen), now) {
            Ok(()) | Err(Denied::Refused(_)) => Ok(()),
            Err(Denied::Broken(violation)) => Err(violation),
        }
    }

    /// Records that a step begins; none if the claim is lost, else whether it was begun before.
    pub(crate) fn intend(
        &mut self,
        index: usize,
        fence: Fence,
        step: u32,
        head: Option<usize>,
        now: i64,
    ) -> Result<Option<bool>, Violation> {
        let row = &self.rows[index];
        let (pass, Standing::Claimed(claim)) = (row.pass, &row.task.standing) else { return Ok(None) };
        if row.task.fence != fence {
            return Ok(None);
        }
        if self.has(Defect::NoIntent) {
            return Ok(Some(false));
        }
        // Whatever becomes of it, what is about to be pushed is ours.
        if let Some(head) = head {
            let (writer, commit) = (Writer::Run(claim.run.clone()), id_of(head));
            match self.commit(index, TaskInput::Offer { fence, step, commit }, &writer, now) {
                Ok(()) => {}
                Err(Denied::Refused(_)) => return Ok(None),
                Err(Denied::Broken(violation)) => return Err(violation),
            }
        }
        Ok(Some(!self.intents.insert(Key { task: index, pass, step })))
    }

    /// A lane rests for a while.
    pub(crate) fn hold(&mut self, lane: Lane, hold: Hold) {
        self.holds.retain(|(held, _)| *held != lane);
        self.holds.push((lane, hold));
    }
}

/// Whether the steps of a state begin from the first with this change.
fn begins_steps(before: &Task, after: &Task) -> bool {
    let Some(pending) = &after.pending else { return false };
    let was = before.pending.as_ref().filter(|_| before.state == after.state);
    pending.next == 0 && was.is_none_or(|was| was.next > 0 || after.edges_taken != before.edges_taken)
}

/// How long a wait after a failure that a hand mends.
pub(crate) const MENDED_AFTER: Duration = Duration::from_secs(300);
