//! Steps: record the intent, look at the world, act, look again, tell.

use rehearsal_core::flow::Step;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Delivery, OutcomeName, PullRequestRef, RedVerdict, StepFailure, Timestamp};

use crate::agent::MARGIN;
use crate::defect::Defect;
use crate::forge::{Act, Checks, Key};
use crate::invariant::{Invariant::I7, Violation, ensure};
use crate::network::{Answer, Ask, Caller, Process};
use crate::repository::{Oid, id_of, id_of_tree, number_of};
use crate::rng::Rng;
use crate::simulation::{Event, Simulation};
use crate::slot::Stage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepStage {
    Intending,
    Looking,
    Acting,
    Telling,
    /// Until a renewal says that it may act.
    Holding,
}

/// A step that is to be done.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    task: usize,
    number: u32,
    step: Step,
    pass: u32,
    delivery: Delivery,
    /// Whether someone began it before.
    begun: bool,
    acted: bool,
}

/// How the world looks to whoever wants to do a step.
#[derive(Debug, Clone)]
pub(crate) enum Outlook {
    Done(Box<Delivery>),
    ToDo(Act),
    Failed(StepFailure),
}

/// So often a step looks, or acts, in vain before it is left for later.
const MOST_TRIES: u32 = 4;

impl Job {
    /// How long a look takes: tests are slow.
    pub(crate) fn takes(&self, rng: &mut Rng) -> i64 {
        match self.step {
            Step::RunTests | Step::MergePr | Step::Land => rng.between(1_000, 14_000),
            _ => 0,
        }
    }

    fn key(&self) -> Key {
        Key { task: self.task, pass: self.pass, step: self.number }
    }

    fn head(&self) -> Option<Oid> {
        self.delivery.head.as_ref().map(number_of)
    }

    fn done(&self, change: impl FnOnce(&mut Delivery)) -> Outlook {
        let mut delivery = self.delivery.clone();
        change(&mut delivery);
        Outlook::Done(Box::new(delivery))
    }
}

fn red(verdict: RedVerdict) -> Outlook {
    Outlook::Failed(StepFailure::Red { verdict, reason: "red".into() })
}

impl Simulation {
    pub(crate) fn begin_step(&mut self, process: Process, number: usize) {
        let Some(job) = self.job(process, number) else { return };
        let Some(slot) = self.slot(process, number) else { return };
        slot.step_begun = None;
        slot.acted = false;
        let fence = slot.fence;
        let head = job.head().filter(|_| job.step == Step::PushBranch);
        let ask = Ask::Intend { task: job.task, fence, step: job.number, head };
        let id = self.send(Caller::Slot(process, number), ask);
        self.wait(process, number, Stage::Step(StepStage::Intending), id);
    }

    fn job(&self, process: Process, number: usize) -> Option<Job> {
        let slot = self.workers[process.worker].slots[number].as_ref()?;
        let (begun, acted) = (slot.step_begun.unwrap_or(false), slot.acted);
        let view = slot.view.as_ref()?;
        let (task, next, pass) = (view.index, view.next_step?, view.pass);
        let delivery = view.delivery.clone();
        let steps = self.store.rows[task].flow.steps_of(&view.state);
        let step = steps.get(next as usize)?.clone();
        Some(Job { task, number: next, step, pass, delivery, begun, acted })
    }

    pub(crate) fn step_hears(&mut self, process: Process, number: usize, stage: StepStage, answer: Answer) {
        let Some(slot) = self.slot(process, number) else { return };
        match (stage, answer) {
            (StepStage::Intending, Answer::Intended(None)) => self.drop_slot(process, number),
            (StepStage::Intending, Answer::Intended(Some(begun))) => {
                // Begun by ourselves a moment ago, where only the answer was lost, counts as well: nobody can tell.
                slot.step_begun = Some(begun);
                self.look_again(process, number);
            }
            (StepStage::Intending, _) => self.begin_step(process, number),
            (StepStage::Looking, Answer::Outlook(outlook)) => self.see(process, number, *outlook),
            (StepStage::Acting, Answer::Acted) => {
                slot.acted = true;
                self.look_again(process, number);
            }
            (StepStage::Looking | StepStage::Acting, _) => self.look_again(process, number),
            (StepStage::Telling | StepStage::Holding, _) => {}
        }
    }

    pub(crate) fn look_again(&mut self, process: Process, number: usize) {
        let Some(job) = self.job(process, number) else { return };
        let Some(slot) = self.slot(process, number) else { return };
        slot.tries += 1;
        if slot.tries > MOST_TRIES * 2 {
            let failure = StepFailure::Transient { reason: "the forge does not answer".into() };
            return self.fail_step(process, number, failure);
        }
        let id = self.send(Caller::Slot(process, number), Ask::Look(Box::new(job)));
        self.wait(process, number, Stage::Step(StepStage::Looking), id);
    }

    fn see(&mut self, process: Process, number: usize, outlook: Outlook) {
        let Some(job) = self.job(process, number) else { return };
        let now = self.now;
        let Some(slot) = self.slot(process, number) else { return };
        let may_act = now < slot.deadline - MARGIN;
        match outlook {
            Outlook::Done(delivery) => self.step_is_done(process, number, &job, delivery),
            Outlook::Failed(failure) => self.fail_step(process, number, failure),
            Outlook::ToDo(_) if !may_act => {
                slot.stage = Stage::Step(StepStage::Holding);
                self.schedule(now + 10_000, Event::Hold { process, slot: number });
            }
            Outlook::ToDo(act) => {
                let early = self.has(Defect::TellsBeforeItKnows).then(|| assumed(&job, &act));
                self.meddle(&act);
                let id = self.send(Caller::Slot(process, number), Ask::Act(act));
                self.wait(process, number, Stage::Step(StepStage::Acting), id);
                if let Some(delivery) = early {
                    self.step_is_done(process, number, &job, Box::new(delivery));
                }
            }
        }
    }

    /// Whoever could not act for want of a lease looks again, if it still stands there.
    pub(crate) fn hold(&mut self, process: Process, number: usize) {
        let Some(slot) = self.slot(process, number) else { return };
        if slot.stage == Stage::Step(StepStage::Holding) {
            slot.tries = slot.tries.saturating_sub(1);
            self.look_again(process, number);
        }
    }

    fn step_is_done(&mut self, process: Process, number: usize, job: &Job, delivery: Box<Delivery>) {
        let Some(slot) = self.slot(process, number) else { return };
        let input = TaskInput::StepDone { fence: slot.fence, step: job.number, delivery };
        self.tell(process, number, input, Stage::Step(StepStage::Telling), None);
    }

    fn fail_step(&mut self, process: Process, number: usize, failure: StepFailure) {
        let Some(job) = self.job(process, number) else { return };
        let Some(slot) = self.slot(process, number) else { return };
        let input = TaskInput::StepFailed { fence: slot.fence, step: job.number, failure };
        self.tell(process, number, input, Stage::Step(StepStage::Telling), None);
    }

    /// How the world looks for a step, at the moment the question arrives there.
    pub(crate) fn look(&mut self, job: &Job) -> Outlook {
        if self.forge_locked_until > self.now {
            let (outcome, reason) = (OutcomeName::AuthFailed, "the token has expired".into());
            return Outlook::Failed(StepFailure::Systemic { outcome, reason });
        }
        match &job.step {
            Step::CommitLeftovers => {
                let head = self.forge.git.worktrees[job.task].unwrap_or(self.forge.git.base);
                job.done(|delivery| delivery.head = Some(id_of(head)))
            }
            Step::Rebase => self.look_at_rebase(job),
            Step::RunTests => {
                let head = job.head().unwrap_or(self.forge.git.base);
                let tree = self.forge.git.commits[head].tree;
                if self.forge.git.test(tree) {
                    return job.done(|delivery| delivery.tested_tree = Some(id_of_tree(tree)));
                }
                red(RedVerdict::TestsFailed)
            }
            // Which changes are harmless does not matter here, only that the same one always is.
            Step::Assess if job.head().is_some_and(|head| head % 2 == 1) => red(RedVerdict::NeedsReview),
            Step::Assess => job.done(|_| {}),
            Step::PushBranch => self.look_at_branch(job),
            Step::CreatePr => self.look_at_request(job),
            Step::CheckConflicts => {
                let (base, head) = (self.forge.git.base, job.head().unwrap_or(self.forge.git.base));
                match self.forge.git.merged_tree(base, head) {
                    Some(_) => job.done(|_| {}),
                    None => red(RedVerdict::Conflict),
                }
            }
            Step::CheckCi => self.look_at_checks(job),
            Step::MergePr | Step::Land => self.look_at_merge(job),
            Step::PostComment(_) if self.forge.comments.contains(&job.key()) => job.done(|_| {}),
            Step::PostComment(_) => Outlook::ToDo(Act::Comment(job.key())),
            // Time passes by itself here.
            Step::Pause(_) => job.done(|_| {}),
            Step::Command(_) if job.acted => job.done(|_| {}),
            Step::Command(_) if job.begun => {
                Outlook::Failed(StepFailure::Unknown { reason: "begun, and no trace of its end".into() })
            }
            Step::Command(_) => Outlook::ToDo(Act::Command(job.key())),
        }
    }

    fn look_at_rebase(&mut self, job: &Job) -> Outlook {
        let head = job.head().unwrap_or(self.forge.git.base);
        let Some(rebased) = self.forge.git.onto_base(head) else { return red(RedVerdict::Conflict) };
        self.forge.git.worktrees[job.task] = Some(rebased);
        job.done(|delivery| {
            delivery.head = Some(id_of(rebased));
            delivery.needs_rebase = false;
        })
    }

    fn look_at_branch(&self, job: &Job) -> Outlook {
        let head = job.head().unwrap_or(self.forge.git.base);
        let found = self.forge.git.branches[job.task];
        if found == Some(head) {
            return job.done(|delivery| {
                delivery.pushed = Some(id_of(head));
                delivery.offered.clear();
            });
        }
        let recorded: Option<Oid> = job.delivery.pushed.as_ref().map(number_of);
        let known = &self.store.rows[job.task].task.delivery;
        let is_ours = |oid: Oid| known.may_have_pushed(&id_of(oid));
        match found {
            Some(oid) if !is_ours(oid) && !self.has(Defect::PushesByForce) => {
                Outlook::Failed(StepFailure::Unknown { reason: "someone else pushed to the branch".into() })
            }
            // By force, the worker believes what it recorded, whatever is there.
            _ if self.has(Defect::PushesByForce) => {
                Outlook::ToDo(Act::Push { task: job.task, head, expected: recorded })
            }
            expected => Outlook::ToDo(Act::Push { task: job.task, head, expected }),
        }
    }

    fn look_at_request(&self, job: &Job) -> Outlook {
        let merged = job.head().and_then(|head| self.forge.merged_request(job.task, head));
        let found = self.forge.open_request(job.task).or(merged);
        match found.filter(|_| job.acted || !self.has(Defect::OpensWithoutLooking)) {
            Some(number) => job.done(|delivery| {
                delivery.pull_request = Some(PullRequestRef { number: number as u64, url: String::new() });
            }),
            None => Outlook::ToDo(Act::Open { task: job.task }),
        }
    }

    fn look_at_checks(&self, job: &Job) -> Outlook {
        let checks = job.head().map_or(Checks::None, |head| self.forge.checks(head, self.now));
        match checks {
            Checks::None if self.has(Defect::NoChecksAreGreen) => job.done(|_| {}),
            Checks::None | Checks::Pending => {
                let until = Timestamp(self.now + 30_000);
                Outlook::Failed(StepFailure::Pending { reason: "checks run".into(), until })
            }
            Checks::Failed => red(RedVerdict::CiFailed),
            Checks::Passed => job.done(|_| {}),
        }
    }

    /// Merged already, or a candidate on the tip that was tested as it would land.
    fn look_at_merge(&mut self, job: &Job) -> Outlook {
        let git = &mut self.forge.git;
        let (base, head) = (git.base, job.head().unwrap_or(git.base));
        let blind = self.defect == Some(Defect::MergesAgain) && !job.acted;
        if !blind && let Some(number) = self.forge.merged_request(job.task, head) {
            let merged = self.forge.pull_requests[number].merged;
            return job.done(|delivery| delivery.merged = merged.map(id_of));
        }
        let git = &mut self.forge.git;
        let Some(tree) = git.merged_tree(base, head) else { return red(RedVerdict::Conflict) };
        if !git.test(tree) {
            return red(RedVerdict::TestsFailed);
        }
        if !blind
            && (self.forge.open_request(job.task).is_none()
                || self.forge.git.branches[job.task] != Some(head))
        {
            return red(RedVerdict::MergeFailed);
        }
        Outlook::ToDo(Act::Merge { task: job.task, head, base })
    }

    /// I7: what is told as done can be seen in the world.
    pub(crate) fn check_told(&self, task: usize, input: &TaskInput) -> Result<(), Violation> {
        let TaskInput::StepDone { step, delivery, fence } = input else { return Ok(()) };
        let row = &self.store.rows[task];
        if row.task.fence != *fence || row.task.pending.as_ref().is_none_or(|pending| pending.next != *step) {
            return Ok(());
        }
        let head: Option<Oid> = delivery.head.as_ref().map(number_of);
        let key = Key { task, pass: row.pass, step: *step };
        let seen = match (row.flow.steps_of(&row.task.state).get(*step as usize), head) {
            (Some(Step::PushBranch), Some(head)) => self.forge.pushed_ever.contains(&(task, head)),
            (Some(Step::CreatePr), _) => self.forge.pull_requests.iter().any(|it| it.task == task),
            (Some(Step::CheckCi), Some(head)) => self.forge.checks(head, self.now) == Checks::Passed,
            (Some(Step::MergePr | Step::Land), Some(head)) => self.forge.merged_request(task, head).is_some(),
            (Some(Step::PostComment(_)), _) => self.forge.comments.contains(&key),
            (Some(Step::Command(_)), _) => self.forge.commands.contains(&key),
            _ => true,
        };
        ensure(seen, I7, || format!("step {step} of t{task} in `{}` was not done", row.task.state))
    }
}

/// What a step would have brought about, had it been done.
fn assumed(job: &Job, act: &Act) -> Delivery {
    let mut delivery = job.delivery.clone();
    if let Act::Push { head, .. } = act {
        delivery.pushed = Some(id_of(*head));
    }
    delivery
}
