//! Everything that a process asks of another: it may be lost on the way there or on the way back, come late, or come
//! twice, and whoever asked cannot tell which.

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Claim, Delivery, Fence, RunId, Standing, StateName, WorkerId};

use crate::forge::Act;
use crate::invariant::Violation;
use crate::simulation::{Before, Event, Simulation};
use crate::steps::{Job, Outlook};
use crate::store::{Denied, Row, Wish, Writer};

/// A worker's process: which, and how often it was started before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) worker: usize,
    pub(crate) start: u32,
}

/// Who asks, and gets the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// What works on one task.
    Slot(Process, usize),
    /// The thread that only renews leases.
    Heart(Process),
    Sweeper(Process),
    /// A process that has just begun.
    Starter(Process),
    /// The shim of an agent.
    Shim(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) caller: Caller,
    pub(crate) sent_at: i64,
    pub(crate) ask: Ask,
}

#[derive(Debug, Clone)]
pub(crate) enum Ask {
    Claim(Wish),
    Renew(Vec<(usize, Fence, RunId)>),
    Tell(Box<Tell>),
    Intend { task: usize, fence: Fence, step: u32, head: Option<usize> },
    RunOut,
    Sweep { task: usize, seen: Fence },
    Inherit { from: WorkerId },
    Look(Box<Job>),
    Act(Act),
}

/// A change of a task.
#[derive(Debug, Clone)]
pub(crate) struct Tell {
    pub(crate) task: usize,
    pub(crate) input: TaskInput,
    pub(crate) writer: Writer,
    /// Under which fence the result that it tells was made, and whether the system was to blame for it.
    pub(crate) result: Option<(Fence, bool)>,
}

/// What a worker reads of a row.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) index: usize,
    pub(crate) fence: Fence,
    /// The process and the run that hold it.
    pub(crate) holder: Option<(WorkerId, RunId)>,
    pub(crate) state: StateName,
    pub(crate) next_step: Option<u32>,
    pub(crate) delivery: Delivery,
    pub(crate) pass: u32,
}

#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The time is over, or the other side is down.
    None,
    Claimed(Option<Box<View>>),
    Renewed(Vec<usize>),
    Told {
        taken: bool,
        view: Box<View>,
    },
    Intended(Option<bool>),
    RunOut(Vec<(usize, Fence)>),
    Swept,
    Inherited(Vec<View>),
    Outlook(Box<Outlook>),
    Acted,
}

/// So long one waits for an answer.
const PATIENCE: i64 = 20_000;

impl Simulation {
    /// Sends a question on its way, and returns its number.
    pub(crate) fn send(&mut self, caller: Caller, ask: Ask) -> u64 {
        self.calls += 1;
        let call = Call { id: self.calls, caller, sent_at: self.now, ask };
        let (id, now) = (call.id, self.now);
        // A command runs on the worker's own machine: there is no way on which it could be lost.
        let local = matches!(call.ask, Ask::Act(Act::Command(_)));
        let fate = self.rng.below(1000);
        let lossy = if self.calm || local { 0 } else { self.plan.lossy };
        let mut arrives = Some(now + self.rng.between(5, 80));
        if fate < lossy {
            match self.rng.below(4) {
                0 => arrives = None,
                1 => arrives = Some(now + self.rng.between(1_000, 150_000)),
                2 => {
                    let twice = now + self.rng.between(100, 200_000);
                    self.schedule(twice, Event::Deliver(Box::new(call.clone()), true));
                }
                _ => {
                    let at = arrives.take().unwrap_or(now);
                    self.schedule(at, Event::Deliver(Box::new(call.clone()), true));
                }
            }
        }
        let silence = Event::Reply { caller, id, sent_at: now, answer: Answer::None };
        if let Some(at) = arrives {
            self.schedule(at, Event::Deliver(Box::new(call), false));
        }
        // Where no answer can come in time, the silence is heard.
        if arrives.is_none_or(|at| at > now + PATIENCE - 5_000) {
            self.schedule(now + PATIENCE, silence);
        }
        id
    }

    /// A question arrives and takes effect; with `unheard`, nobody hears the answer.
    pub(crate) fn deliver(&mut self, call: Call, unheard: bool) -> Result<(), Violation> {
        let Call { id, caller, sent_at, ask } = call;
        let to_store = !matches!(ask, Ask::Look(_) | Ask::Act(_));
        let down = if to_store { self.store_down_until } else { self.forge_down_until };
        let slow = match &ask {
            Ask::Look(job) => job.takes(&mut self.rng),
            _ => 0,
        };
        // A server that fails may fail before or after it did what it was asked.
        let fails = down > self.now;
        let answer =
            if fails && (to_store || self.rng.chance(500)) { Answer::None } else { self.answer(ask)? };
        if !unheard {
            let answer = if fails { Answer::None } else { answer };
            let at = self.now + slow + self.rng.between(5, 80);
            self.schedule(at, Event::Reply { caller, id, sent_at, answer });
        }
        Ok(())
    }

    fn answer(&mut self, ask: Ask) -> Result<Answer, Violation> {
        let now = self.now;
        Ok(match ask {
            Ask::Claim(wish) => {
                let claimed = self.store.claim(&wish, now)?;
                if let Some((task, lost)) = &claimed {
                    let from = lost.as_ref().map_or_else(String::new, |run| format!(" from run {run}"));
                    self.note(|_| format!("store: {} claims t{task}{from}", wish.worker));
                }
                if let Some((_, Some(lost))) = &claimed {
                    self.check_nobody_was_robbed_in_sleep(lost, &wish.worker)?;
                }
                Answer::Claimed(claimed.map(|(index, _)| Box::new(self.view(index))))
            }
            Ask::Renew(claims) => {
                let held = self.store.renew(&claims, now)?;
                self.note(|_| format!("store: renewed {held:?}"));
                Answer::Renewed(held)
            }
            Ask::Tell(tell) => self.take(*tell)?,
            Ask::Intend { task, fence, step, head } => {
                Answer::Intended(self.store.intend(task, fence, step, head, now)?)
            }
            Ask::RunOut => Answer::RunOut(self.store.run_out(now)),
            Ask::Sweep { task, seen } => {
                self.store.sweep(task, seen, now)?;
                Answer::Swept
            }
            Ask::Inherit { from } => Answer::Inherited(self.claims_of(&from)),
            Ask::Look(job) => Answer::Outlook(Box::new(self.look(&job))),
            Ask::Act(act) => {
                self.note(|_| format!("forge: {act:?}"));
                self.forge.act(&act, now)?;
                Answer::Acted
            }
        })
    }

    /// Writes what is told, and holds it against what really happened.
    fn take(&mut self, tell: Tell) -> Result<Answer, Violation> {
        let Tell { task, input, writer, result } = tell;
        self.check_told(task, &input)?;
        let before = Before::of(&self.store.rows[task].task);
        let holder = self.view(task).holder.map(|(worker, _)| worker);
        let taken = match self.store.commit(task, input.clone(), &writer, self.now) {
            Ok(()) => true,
            Err(Denied::Refused(refusal)) => {
                self.note(|_| format!("store: refused: {refusal}"));
                false
            }
            Err(Denied::Broken(violation)) => return Err(violation),
        };
        if taken {
            self.note(|sim| format!("store: t{task} is {}: {input:?}", sim.store.rows[task].task.status()));
            self.check_bereaved(holder.as_ref(), &input)?;
            self.check_result(&before, task, result)?;
            self.hold_lanes(before, &input);
        }
        Ok(Answer::Told { taken, view: Box::new(self.view(task)) })
    }

    pub(crate) fn view(&self, index: usize) -> View {
        let Row { task, pass, .. } = &self.store.rows[index];
        let holder = match &task.standing {
            Standing::Claimed(Claim { worker, run, .. }) => Some((worker.clone(), run.clone())),
            _ => None,
        };
        let next_step = task.pending.as_ref().map(|pending| pending.next);
        let (state, delivery) = (task.state.clone(), task.delivery.clone());
        View { index, fence: task.fence, holder, state, next_step, delivery, pass: *pass }
    }
}
