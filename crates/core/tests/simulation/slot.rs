//! The way of one claim through its worker: claim, renew, agent, result, steps.

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Blame, Fence, Outcome, RunId};

use crate::agent::{Finished, MARGIN};
use crate::defect::Defect;
use crate::network::{Answer, Ask, Caller, Process, Tell, View};
use crate::simulation::{Event, Simulation};
use crate::steps::StepStage;
use crate::store::{LEASE, Writer};

/// What one task is worked on in.
pub(crate) struct Slot {
    pub(crate) run: RunId,
    /// The task as it was last seen; none before the claim is answered.
    pub(crate) view: Option<View>,
    pub(crate) fence: Fence,
    pub(crate) stage: Stage,
    /// The question whose answer is awaited; any other answer comes too late.
    pub(crate) waiting: Option<u64>,
    pub(crate) tries: u32,
    pub(crate) claimed_at: i64,
    /// Until when it may act, on its machine's clock.
    pub(crate) deadline: i64,
    pub(crate) agent: Option<usize>,
    /// Whether its run was begun by a process that died.
    adopted: bool,
    /// Whether the step at hand had been begun before, and whether it was done by this very process.
    pub(crate) step_begun: Option<bool>,
    pub(crate) acted: bool,
    /// What it tells until it is heard.
    telling: Option<Box<Tell>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    Claiming,
    /// The first renewal must succeed before an agent is started.
    Renewing,
    Working,
    Adopting,
    Ending,
    Releasing,
    Step(StepStage),
}

impl Slot {
    pub(crate) fn new(run: RunId, now: i64) -> Self {
        Self {
            run,
            view: None,
            fence: Fence(0),
            stage: Stage::Claiming,
            waiting: None,
            tries: 0,
            claimed_at: now,
            deadline: now,
            agent: None,
            adopted: false,
            step_begun: None,
            acted: false,
            telling: None,
        }
    }

    pub(crate) fn claims(&mut self, view: View) {
        self.fence = view.fence;
        self.view = Some(view);
    }

    /// What it holds, to be renewed.
    pub(crate) fn claim(&self) -> Option<(usize, Fence, RunId)> {
        self.view.as_ref().map(|view| (view.index, self.fence, self.run.clone()))
    }
}

impl Simulation {
    pub(crate) fn slot(&mut self, process: Process, number: usize) -> Option<&mut Slot> {
        self.workers[process.worker].slots[number].as_mut()
    }

    /// The claim is lost, or over: nothing more is done for it.
    pub(crate) fn drop_slot(&mut self, process: Process, number: usize) {
        if let Some(slot) = self.workers[process.worker].slots[number].take()
            && let Some(agent) = self.agent_of(process, &slot)
        {
            self.kill(agent);
        }
    }

    /// Its agent, or the one whose shim it is connected with and has not adopted yet.
    fn agent_of(&self, process: Process, slot: &Slot) -> Option<usize> {
        let (task, fence, _) = slot.claim()?;
        let orphan = || self.orphan(self.workers[process.worker].host, task, fence);
        slot.agent.or_else(|| orphan().filter(|_| slot.adopted))
    }

    pub(crate) fn slot_hears(
        &mut self,
        process: Process,
        number: usize,
        id: u64,
        sent_at: i64,
        answer: Answer,
    ) {
        let Some(slot) = self.slot(process, number) else { return };
        if slot.waiting != Some(id) {
            return;
        }
        slot.waiting = None;
        match (slot.stage.clone(), answer) {
            (Stage::Claiming, Answer::Claimed(Some(view))) => self.claimed(process, number, *view, sent_at),
            (Stage::Claiming, _) => self.drop_slot(process, number),
            (Stage::Renewing, Answer::Renewed(held)) if held.is_empty() => self.drop_slot(process, number),
            (Stage::Renewing, Answer::Renewed(_)) => {
                self.renewed(process, number, sent_at);
                self.work(process, number);
            }
            (Stage::Renewing, _) => self.renew_first(process, number),
            (Stage::Step(stage), answer @ (Answer::Outlook(_) | Answer::Intended(_) | Answer::Acted)) => {
                self.step_hears(process, number, stage, answer);
            }
            (_, Answer::Told { taken, view }) => self.told(process, number, taken, *view),
            (Stage::Step(stage), Answer::None) if stage != StepStage::Telling => {
                self.step_hears(process, number, stage, Answer::None);
            }
            _ => self.tell_again(process, number),
        }
        self.stumble(process);
    }

    fn claimed(&mut self, process: Process, number: usize, view: View, sent_at: i64) {
        let Some(slot) = self.slot(process, number) else { return };
        slot.claims(view);
        slot.claimed_at = sent_at;
        slot.deadline = sent_at + LEASE;
        self.go_on(process, number);
    }

    /// The next thing to do for a task that is held.
    fn go_on(&mut self, process: Process, number: usize) {
        let Some(slot) = self.slot(process, number) else { return };
        let Some(view) = &slot.view else { return };
        let (task, fence) = (view.index, slot.fence);
        if view.next_step.is_some() {
            self.begin_step(process, number);
        } else if let Some(finished) = self.result(task, fence) {
            self.end(process, number, finished);
        } else {
            self.renew_first(process, number);
        }
    }

    /// The result of this claim, if its agent wrote one.
    fn result(&self, task: usize, fence: Fence) -> Option<Finished> {
        if self.has(Defect::SharedResultPath) {
            return self.newest_results[task].clone();
        }
        self.results.get(&(task, fence)).cloned()
    }

    fn renew_first(&mut self, process: Process, number: usize) {
        let Some(claim) = self.slot(process, number).and_then(|slot| slot.claim()) else { return };
        let id = self.send(Caller::Slot(process, number), Ask::Renew(vec![claim]));
        self.wait(process, number, Stage::Renewing, id);
    }

    pub(crate) fn wait(&mut self, process: Process, number: usize, stage: Stage, id: u64) {
        if let Some(slot) = self.slot(process, number) {
            (slot.stage, slot.waiting) = (stage, Some(id));
        }
    }

    fn work(&mut self, process: Process, number: usize) {
        let (now, careless) = (self.now, self.has(Defect::SpawnsOnOldNews));
        let Some(slot) = self.slot(process, number) else { return };
        // Whoever stood still since the answer was sent may hold nothing any more.
        if now >= slot.deadline - MARGIN && !careless {
            return self.renew_first(process, number);
        }
        let (Some((task, fence, run)), deadline, adopted) = (slot.claim(), slot.deadline, slot.adopted)
        else {
            return;
        };
        let orphan = self.orphan(self.workers[process.worker].host, task, fence);
        if adopted && orphan.is_none() {
            return self.without_its_agent(process, number);
        }
        let agent = orphan.unwrap_or(self.agents.len());
        if let Some(slot) = self.slot(process, number) {
            (slot.stage, slot.agent) = (Stage::Working, Some(agent));
        }
        if orphan.is_some() {
            self.adopt(agent, (process, number), deadline);
        } else {
            self.spawn((process, number), task, fence, run, deadline);
        }
    }

    /// The agent that was to be adopted has ended since: what it left decides.
    fn without_its_agent(&mut self, process: Process, number: usize) {
        let Some((task, fence, _)) = self.slot(process, number).and_then(|slot| slot.claim()) else { return };
        match self.result(task, fence) {
            Some(finished) => self.end(process, number, finished),
            None => self.tell(process, number, TaskInput::Release { fence }, Stage::Releasing, None),
        }
    }

    /// The agent's process is gone: what it left decides.
    pub(crate) fn exited(&mut self, (process, number): (Process, usize), agent: usize) {
        let Some(slot) = self.slot(process, number).filter(|slot| slot.agent == Some(agent)) else { return };
        slot.agent = None;
        let Some((task, fence, _)) = slot.claim() else { return };
        if let Some(finished) = self.result(task, fence) {
            self.end(process, number, finished);
        }
        self.stumble(process);
    }

    fn end(&mut self, process: Process, number: usize, finished: Finished) {
        let Some(slot) = self.slot(process, number) else { return };
        let fence = slot.fence;
        let systemic = finished.outcome.blame() == Blame::System;
        let outcome = if systemic && self.has(Defect::SystemBlamesTheTask) {
            Outcome::Failed { reason: finished.outcome.to_string() }
        } else {
            finished.outcome
        };
        let input = TaskInput::EndRun { fence, outcome };
        self.tell(process, number, input, Stage::Ending, Some((finished.fence, systemic)));
    }

    /// Tells the store something about the task, again and again until it is heard or the claim is lost.
    pub(crate) fn tell(
        &mut self,
        process: Process,
        number: usize,
        input: TaskInput,
        stage: Stage,
        result: Option<(Fence, bool)>,
    ) {
        let Some(slot) = self.slot(process, number) else { return };
        let Some((task, _, run)) = slot.claim() else { return };
        slot.adopted |= stage == Stage::Adopting;
        let writer = if stage == Stage::Adopting { Writer::Successor } else { Writer::Run(run) };
        slot.stage = stage;
        slot.telling = Some(Box::new(Tell { task, input, writer, result }));
        self.tell_again(process, number);
    }

    fn tell_again(&mut self, process: Process, number: usize) {
        let Some(slot) = self.slot(process, number) else { return };
        let Some(tell) = slot.telling.clone() else { return };
        let stage = slot.stage.clone();
        let id = self.send(Caller::Slot(process, number), Ask::Tell(tell));
        self.wait(process, number, stage, id);
    }

    /// The store has taken it or not; the row says whether there is more to do.
    fn told(&mut self, process: Process, number: usize, taken: bool, view: View) {
        let refreshes = self.has(Defect::RefreshesItsFence);
        let me = self.workers[process.worker].id.clone();
        let Some(slot) = self.slot(process, number) else { return };
        let is_ours = view.holder == Some((me, slot.run.clone())) && view.fence == slot.fence;
        if is_ours && slot.stage != Stage::Releasing {
            slot.telling = None;
            slot.view = Some(view);
            slot.tries = 0;
            self.go_on(process, number);
        } else if refreshes && !taken && slot.tries < 3 {
            slot.tries += 1;
            slot.fence = view.fence;
            if let Some(tell) = &mut slot.telling
                && let TaskInput::EndRun { fence, .. } = &mut tell.input
            {
                *fence = view.fence;
            }
            self.tell_again(process, number);
        } else {
            self.drop_slot(process, number);
        }
    }

    /// It shuts down in good order: what it holds is given back, and nobody is blamed.
    pub(crate) fn drain(&mut self, worker: usize) {
        let process = self.process(worker);
        for number in 0..self.workers[worker].slots.len() {
            let Some(slot) = &self.workers[worker].slots[number] else { continue };
            if slot.claim().is_none() {
                continue;
            }
            let fence = slot.fence;
            if let Some(agent) = self.agent_of(process, slot) {
                self.kill(agent);
            }
            if let Some(slot) = self.slot(process, number) {
                slot.agent = None;
            }
            self.tell(process, number, TaskInput::Release { fence }, Stage::Releasing, None);
        }
        self.schedule(self.now + 40_000, Event::Quit(process));
    }
}
