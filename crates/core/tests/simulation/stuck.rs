//! Whatever flow a person may write, as long as it is valid: no task gets stuck in it.

use proptest::prelude::*;
use rehearsal_core::flow::{Flow, State, parse};
use rehearsal_core::transition::{TaskInput, transition};
use rehearsal_core::{
    Delivery, Exit, NewTask, Outcome, RedVerdict, RunId, Standing, StepFailure, Task, TaskId, Timestamp,
    WorkerId,
};

use crate::flows::generate;
use crate::rng::Rng;

/// A task, everything that may happen to it, and a clock.
struct Life {
    flow: Flow,
    task: Task,
    now: i64,
    rng: Rng,
}

impl Life {
    fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let text = generate(&mut rng);
        let flow = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let new = NewTask { title: "t".into(), ..NewTask::default() };
        let task = Task::new(new, TaskId::from_random(1), &flow, Timestamp(0));
        Self { flow, task, now: 0, rng }
    }

    fn is_reviewed(&self) -> bool {
        matches!(self.flow.states.get(&self.task.state), Some(State::Work { on, .. }) if on.decides())
    }

    fn does(&mut self, input: &TaskInput) {
        match transition(&self.task, input, &self.flow, Timestamp(self.now)) {
            Ok(next) => self.task = next,
            Err(refusal) => panic!("{refusal}\n{:?}\n{}", self.task, self.flow.source),
        }
    }

    /// The one thing that a worker, or else a person, does next. Each must be taken.
    fn goes_on(&mut self, outcome: Outcome, failure: Option<StepFailure>) {
        self.now += 3_600_000;
        let fence = self.task.fence;
        match &self.task.standing {
            Standing::Ended { .. } => {}
            Standing::Waiting(wait) if wait.until.is_none() => self.does(&TaskInput::Unblock),
            Standing::Ready | Standing::Waiting(_) => {
                let (worker, run) = (WorkerId::new("w").unwrap(), RunId::from_random(self.rng.next()));
                self.does(&TaskInput::Claim { worker, run });
            }
            Standing::Claimed(_) => match (&self.task.pending, failure) {
                (None, _) => self.does(&TaskInput::EndRun { fence, outcome }),
                (Some(pending), None) => {
                    let (step, delivery) = (pending.next, Box::new(Delivery::default()));
                    self.does(&TaskInput::StepDone { fence, step, delivery });
                }
                (Some(pending), Some(failure)) => {
                    let step = pending.next;
                    let may_be_red =
                        self.flow.steps_of(&self.task.state)[step as usize].spec().edge.is_some();
                    let failure = match failure {
                        StepFailure::Red { reason, .. } if !may_be_red => StepFailure::Transient { reason },
                        failure => failure,
                    };
                    self.does(&TaskInput::StepFailed { fence, step, failure });
                }
            },
        }
    }
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Done),
        3 => Just(Outcome::Approved),
        1 => Just(Outcome::Rejected { comment: "no".into() }),
        1 => Just(Outcome::NoChanges),
        1 => Just(Outcome::Continue { message: "m".into() }),
        1 => Just(Outcome::NeedsContinuation { reason: "turns".into() }),
        1 => Just(Outcome::Blocked { reason: "b".into() }),
        1 => Just(Outcome::Failed { reason: "f".into() }),
        1 => Just(Outcome::BudgetReached { reason: "usd".into() }),
        1 => Just(Outcome::crashed(Exit::Code(1))),
        1 => Just(Outcome::EmptyOutput),
        1 => Just(Outcome::RateLimited { until: None }),
        1 => Just(Outcome::AuthFailed { reason: "key".into() }),
        1 => Just(Outcome::Cancelled),
    ]
}

fn failures() -> impl Strategy<Value = Option<StepFailure>> {
    let red = |verdict| Some(StepFailure::Red { verdict, reason: "red".into() });
    prop_oneof![
        6 => Just(None),
        1 => Just(red(RedVerdict::Conflict)),
        1 => Just(red(RedVerdict::TestsFailed)),
        1 => Just(red(RedVerdict::MergeFailed)),
        1 => Just(red(RedVerdict::NeedsReview)),
        1 => Just(Some(StepFailure::Transient { reason: "reset".into() })),
        1 => Just(Some(StepFailure::Pending { reason: "checks".into(), until: Timestamp(0) })),
        1 => Just(Some(StepFailure::Unknown { reason: "no answer".into() })),
    ]
}

proptest! {
    /// Every step of every life is taken; and from wherever it leads, good work comes to an end.
    #[test]
    fn no_task_gets_stuck_in_a_valid_flow(
        seed in any::<u64>(),
        bad_days in prop::collection::vec((outcomes(), failures()), 0..40),
    ) {
        let mut life = Life::of(seed);
        for (outcome, failure) in bad_days {
            life.goes_on(outcome, failure);
        }
        for _ in 0..60 {
            let good = if life.is_reviewed() { Outcome::Approved } else { Outcome::Done };
            life.goes_on(good, None);
        }
        prop_assert!(life.task.is_ended(), "{:?}\n{}", life.task, life.flow.source);
    }
}
