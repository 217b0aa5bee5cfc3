use proptest::prelude::*;

use super::*;
use crate::flow::parse;
use crate::{Exit, NewTask, OutcomeName, TaskId, TimeLimit};

fn flow() -> Flow {
    Flow::shipped("loop").unwrap()
}

fn task() -> Task {
    let new = NewTask { title: "add a greeting".into(), ..NewTask::default() };
    Task::new(new, TaskId::from_random(1), &flow(), Timestamp(0))
}

fn claim_input() -> TaskInput {
    TaskInput::Claim { worker: WorkerId::new("w1").unwrap(), run: RunId::from_random(9) }
}

fn after(task: &Task, input: &TaskInput) -> Task {
    transition(task, input, &flow(), Timestamp(1_000)).unwrap()
}

fn run_to(task: &Task, outcome: Outcome) -> Task {
    let claimed = after(task, &claim_input());
    let fence = claimed.fence;
    after(&claimed, &TaskInput::EndRun { fence, outcome })
}

#[test]
fn a_task_that_was_done_by_its_run_ends_well() {
    let done = run_to(&task(), Outcome::Done);
    assert!(done.is_done());
    assert_eq!((done.state.as_str(), done.attempts), ("done", 1));
}

#[test]
fn a_second_worker_cannot_take_what_the_first_one_holds() {
    let claimed = after(&task(), &claim_input());
    let refusal = transition(&claimed, &claim_input(), &flow(), Timestamp(0)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        format!("task `{}` is being worked on by run `{}`", claimed.id, RunId::from_random(9))
    );
}

#[test]
fn a_worker_that_lost_its_task_changes_nothing() {
    let claimed = after(&task(), &claim_input());
    let taken_away = after(&claimed, &TaskInput::Cancel);
    let late = TaskInput::EndRun { fence: claimed.fence, outcome: Outcome::Done };
    let refusal = transition(&taken_away, &late, &flow(), Timestamp(0)).unwrap_err();
    assert!(matches!(refusal, Refusal::Stale { .. }), "{refusal}");
}

#[test]
fn crashes_are_tried_again_and_the_fourth_one_is_a_failure() {
    let mut task = task();
    for _ in 0..3 {
        task = run_to(&task, Outcome::Crashed { exit: Exit::Signal(9) });
        assert_eq!(task.state.as_str(), "todo");
    }
    task = run_to(&task, Outcome::TimedOut { limit: TimeLimit::Idle, after_ms: 5 });
    assert_eq!((task.state.as_str(), task.attempts), ("failed", 4));
}

#[test]
fn a_failure_of_the_system_costs_no_attempt_and_waits_until_the_vendor_said() {
    let limited = run_to(&task(), Outcome::RateLimited { until: Some(Timestamp(99_000)) });
    assert_eq!((limited.state.as_str(), limited.attempts, limited.setbacks), ("todo", 0, 1));
    let early = transition(&limited, &claim_input(), &flow(), Timestamp(98_999)).unwrap_err();
    assert_eq!(early.to_string(), format!("task `{}` waits: rate_limited", limited.id));
    assert!(transition(&limited, &claim_input(), &flow(), Timestamp(99_000)).is_ok());
}

#[test]
fn a_time_that_is_past_counts_as_none() {
    let limited = run_to(&task(), Outcome::RateLimited { until: Some(Timestamp(1)) });
    let Standing::Waiting(wait) = &limited.standing else { panic!() };
    assert_eq!(wait.until, Some(limited.updated_at.plus(FIRST_WAIT)));
}

#[test]
fn waits_without_a_time_grow_with_each_setback() {
    let mut task = task();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let claimed = transition(&task, &claim_input(), &flow(), Timestamp(i64::MAX / 2)).unwrap();
        let end = TaskInput::EndRun { fence: claimed.fence, outcome: Outcome::Overloaded };
        task = transition(&claimed, &end, &flow(), Timestamp(0)).unwrap();
        let Standing::Waiting(wait) = &task.standing else { panic!() };
        waits.push(wait.until.unwrap().0 / 1000);
    }
    assert_eq!(waits, [60, 120, 240, 480]);
}

#[test]
fn a_blocked_task_says_why_and_goes_back_to_where_it_was() {
    let blocked = run_to(&task(), Outcome::Blocked { reason: "npm not found".into() });
    let Standing::Waiting(wait) = &blocked.standing else { panic!() };
    assert_eq!((blocked.state.as_str(), wait.reason.as_str()), ("blocked", "npm not found"));
    let back = after(&blocked, &TaskInput::Unblock);
    assert_eq!((back.state.as_str(), back.status()), ("todo", "todo"));
}

#[test]
fn only_a_retry_leads_out_of_an_end() {
    let done = run_to(&task(), Outcome::Done);
    let refusal = transition(&done, &TaskInput::Cancel, &flow(), Timestamp(0)).unwrap_err();
    assert_eq!(refusal.to_string(), format!("task `{}` is already done", done.id));
    let again = after(&done, &TaskInput::Retry);
    assert_eq!((again.status(), again.attempts), ("todo", 0));
}

#[test]
fn a_person_may_finish_a_task_that_an_agent_works_on() {
    let claimed = after(&task(), &claim_input());
    let finished = after(&claimed, &TaskInput::Finish);
    assert!(finished.is_done());
    assert!(finished.fence > claimed.fence);
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Done),
        Just(Outcome::NoChanges),
        Just(Outcome::Continue { message: "m".into() }),
        Just(Outcome::NeedsContinuation { reason: "turns".into() }),
        Just(Outcome::Blocked { reason: "b".into() }),
        Just(Outcome::Failed { reason: "f".into() }),
        Just(Outcome::BudgetReached { reason: "usd".into() }),
        Just(Outcome::Crashed { exit: Exit::Code(1) }),
        Just(Outcome::EmptyOutput),
        Just(Outcome::RateLimited { until: None }),
        Just(Outcome::AuthFailed { reason: "key".into() }),
        Just(Outcome::Cancelled),
    ]
}

fn any_input() -> impl Strategy<Value = TaskInput> {
    prop_oneof![
        3 => Just(claim_input()),
        // -1 stands for the present fence, put in when it is used.
        4 => any_outcome().prop_map(|outcome| TaskInput::EndRun { fence: Fence(-1), outcome }),
        1 => Just(TaskInput::EndRun { fence: Fence(0), outcome: Outcome::Done }),
        1 => Just(TaskInput::Release { fence: Fence(-1) }),
        1 => Just(TaskInput::Block { reason: "r".into() }),
        1 => Just(TaskInput::Unblock),
        1 => Just(TaskInput::Finish),
        1 => Just(TaskInput::Cancel),
        1 => Just(TaskInput::Retry),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_rules_hold(inputs in prop::collection::vec(any_input(), 0..40)) {
        let flow = flow();
        let mut task = task();
        for (step, mut input) in inputs.into_iter().enumerate() {
            if let TaskInput::EndRun { fence, .. } | TaskInput::Release { fence } = &mut input
                && *fence == Fence(-1)
            {
                *fence = task.fence;
            }
            let now = Timestamp(i64::try_from(step).unwrap() * 10_000_000);
            let before = task.clone();
            match transition(&before, &input, &flow, now) {
                Ok(next) => task = next,
                Err(_) => continue,
            }
            prop_assert!(flow.states.contains_key(&task.state), "a state of the flow");
            prop_assert!(task.fence >= before.fence, "a fence never falls");
            let was_held = matches!(before.standing, Standing::Claimed(_));
            let is_held = matches!(task.standing, Standing::Claimed(_));
            let edited = matches!(input, TaskInput::Edit { .. });
            prop_assert!(!(was_held && is_held && !edited), "no claim survives a transition");
            if was_held && !is_held {
                prop_assert!(task.fence > before.fence, "who held it can write nothing more");
            }
            prop_assert!(!before.is_ended() || matches!(input, TaskInput::Retry), "an end is an end");
            if let TaskInput::EndRun { outcome, .. } = &input {
                let cost = task.attempts - before.attempts;
                prop_assert_eq!(cost, u32::from(outcome.name().costs_attempt()));
            }
        }
    }

    #[test]
    fn every_state_has_a_way_on(index in 0usize..4, outcome in any_outcome()) {
        let flow = flow();
        let (name, _) = flow.states.get_index(index).unwrap();
        let mut task = task();
        task.state = name.clone();
        task.standing = flow.standing_in(name);
        let ways = [claim_input(), TaskInput::Unblock, TaskInput::Retry];
        prop_assert!(ways.iter().any(|way| transition(&task, way, &flow, Timestamp(1)).is_ok()));
        if let Ok(claimed) = transition(&task, &claim_input(), &flow, Timestamp(1)) {
            let end = TaskInput::EndRun { fence: claimed.fence, outcome };
            prop_assert!(transition(&claimed, &end, &flow, Timestamp(2)).is_ok());
        }
    }
}

#[test]
fn an_outcome_without_an_edge_names_flow_state_and_outcome() {
    let text = "name: review\nstart: look\nstates:\n  look:\n    agent: gatekeeper\n    on: { approved: done, rejected: done, crashed: done }\n  done: { end: success }\n";
    let flow = parse(text).unwrap();
    let new = NewTask { title: "t".into(), ..NewTask::default() };
    let task = Task::new(new, TaskId::from_random(2), &flow, Timestamp(0));
    let claimed = transition(&task, &claim_input(), &flow, Timestamp(0)).unwrap();
    // A reviewer that decides nothing has broken down: the edge for crashes is taken.
    let end = TaskInput::EndRun { fence: claimed.fence, outcome: Outcome::Done };
    assert!(transition(&claimed, &end, &flow, Timestamp(0)).unwrap().is_done());
    assert_eq!(OutcomeName::Done.blame(), Blame::Nobody);
}
