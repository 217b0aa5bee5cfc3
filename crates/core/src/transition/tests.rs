use proptest::prelude::*;

use super::*;
use crate::flow::parse;
use crate::{Exit, NewTask, OutcomeName, TaskId, TimeLimit};

/// With steps, with a person's decision, with two reviewers.
const FLOWS: [&str; 4] = [
    include_str!("../flows/loop.yaml"),
    include_str!("../flows/pull-request.yaml"),
    include_str!("../flows/approve.yaml"),
    include_str!("../flows/plan.yaml"),
];

/// The flow `loop` without its steps.
fn flow() -> Flow {
    let text = FLOWS[0].lines().filter(|line| !line.trim_start().starts_with("steps:"));
    parse(&text.collect::<Vec<_>>().join("\n")).unwrap()
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
        1 => Just(TaskInput::FallBack { to: AgentName::new("other").unwrap() }),
        1 => Just(TaskInput::Block { reason: "r".into() }),
        1 => Just(TaskInput::Unblock),
        1 => Just(TaskInput::Finish),
        1 => Just(TaskInput::Cancel),
        1 => Just(TaskInput::Retry),
    ]
}

/// With everything that steps, leases and people can do, for flows that have them.
fn any_input_of_a_flow() -> impl Strategy<Value = TaskInput> {
    let failures = prop_oneof![
        Just(StepFailure::Red { verdict: crate::RedVerdict::Conflict, reason: "both changed a.txt".into() }),
        Just(StepFailure::Red { verdict: crate::RedVerdict::TestsFailed, reason: "1 failed".into() }),
        Just(StepFailure::Pending { reason: "checks run".into(), until: Timestamp(5) }),
        Just(StepFailure::Transient { reason: "reset by peer".into() }),
        Just(StepFailure::Systemic { outcome: OutcomeName::DiskFull, reason: "no room".into() }),
        Just(StepFailure::Unknown { reason: "the answer was lost".into() }),
    ];
    prop_oneof![
        6 => any_input(),
        2 => Just(TaskInput::EndRun { fence: Fence(-1), outcome: Outcome::Approved }),
        1 => Just(TaskInput::EndRun { fence: Fence(-1), outcome: Outcome::Rejected { comment: "no".into() } }),
        6 => (0u32..6).prop_map(|step| TaskInput::StepDone {
            fence: Fence(-1),
            step,
            delivery: Box::default()
        }),
        1 => (0u32..6).prop_map(|step| TaskInput::Offer { fence: Fence(-1), step, commit: oid(1) }),
        2 => (0u32..6, failures).prop_map(|(step, failure)| TaskInput::StepFailed {
            fence: Fence(-1),
            step,
            failure
        }),
        1 => Just(TaskInput::TakeOver {
            worker: WorkerId::new("w2").unwrap(),
            run: RunId::from_random(10),
            stale: Fence(-1)
        }),
        2 => prop::sample::subsequence(vec!["w1", "w2", "w3"], 2).prop_shuffle().prop_map(|workers| {
            let worker = |place: usize| WorkerId::new(workers[place]).unwrap();
            TaskInput::Adopt { fence: Fence(-1), from: worker(0), by: worker(1) }
        }),
        1 => Just(TaskInput::Redo { fence: Fence(-1) }),
        1 => prop::sample::select(vec!["w1", "w3"])
            .prop_map(|of| TaskInput::Lose { stale: Fence(-1), of: WorkerId::new(of).unwrap() }),
        1 => any::<bool>().prop_map(|approve| TaskInput::Decide { approve, comment: "c".into() }),
    ]
}

fn with_present_fence(mut input: TaskInput, task: &Task) -> TaskInput {
    if let TaskInput::EndRun { fence, .. }
    | TaskInput::Release { fence }
    | TaskInput::Offer { fence, .. }
    | TaskInput::StepDone { fence, .. }
    | TaskInput::StepFailed { fence, .. }
    | TaskInput::Adopt { fence, .. }
    | TaskInput::Redo { fence }
    | TaskInput::Lose { stale: fence, .. }
    | TaskInput::TakeOver { stale: fence, .. } = &mut input
        && *fence == Fence(-1)
    {
        *fence = task.fence;
    }
    input
}

/// Whether whoever holds the task may go on holding it.
fn keeps_the_claim(input: &TaskInput, next: &Task) -> bool {
    match input {
        TaskInput::Edit { .. }
        | TaskInput::Adopt { .. }
        | TaskInput::Offer { .. }
        | TaskInput::StepDone { .. } => true,
        TaskInput::EndRun { .. } => next.pending.is_some(),
        _ => false,
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_rules_hold(
        flow in 0usize..4,
        inputs in prop::collection::vec(any_input_of_a_flow(), 0..60),
    ) {
        let flow = parse(FLOWS[flow]).unwrap();
        let new = NewTask { title: "t".into(), ..NewTask::default() };
        let mut task = Task::new(new, TaskId::from_random(1), &flow, Timestamp(0));
        for (number, input) in inputs.into_iter().enumerate() {
            let input = with_present_fence(input, &task);
            let now = Timestamp(i64::try_from(number).unwrap() * 10_000_000);
            let before = task.clone();
            match transition(&before, &input, &flow, now) {
                Ok(next) => task = next,
                Err(_) => continue,
            }
            prop_assert!(flow.states.contains_key(&task.state), "a state of the flow");
            prop_assert!(task.fence >= before.fence, "a fence never falls");
            let was_held = matches!(before.standing, Standing::Claimed(_));
            let is_held = matches!(task.standing, Standing::Claimed(_));
            if was_held && is_held && !keeps_the_claim(&input, &task) {
                prop_assert!(task.fence > before.fence, "another claim has another fence");
                prop_assert!(matches!(input, TaskInput::TakeOver { .. }), "no claim survives a transition");
            }
            if was_held && !is_held {
                prop_assert!(task.fence > before.fence, "who held it can write nothing more");
            }
            prop_assert!(!before.is_ended() || matches!(input, TaskInput::Retry), "an end is an end");
            let steps = flow.steps_of(&task.state).len();
            prop_assert!(task.pending.as_ref().is_none_or(|it| (it.next as usize) < steps), "a step that exists");
            if let Standing::Waiting(wait) = &task.standing {
                prop_assert!(!wait.reason.is_empty(), "every wait has a name");
            }
            if let TaskInput::EndRun { outcome, .. } = &input {
                let cost = task.attempts - before.attempts;
                prop_assert_eq!(cost, u32::from(outcome.name().costs_attempt()));
            }
        }
    }

    #[test]
    fn every_state_has_a_way_on(flow in 0usize..4, index in 0usize..9, outcome in any_outcome()) {
        let flow = parse(FLOWS[flow]).unwrap();
        let (name, _) = flow.states.get_index(index % flow.states.len()).unwrap();
        let mut task = task();
        move_to(&mut task, name, &flow);
        let ways = [
            claim_input(),
            TaskInput::Unblock,
            TaskInput::Retry,
            TaskInput::Decide { approve: true, comment: String::new() },
        ];
        prop_assert!(ways.iter().any(|way| transition(&task, way, &flow, Timestamp(1)).is_ok()));
        if let Ok(claimed) = transition(&task, &claim_input(), &flow, Timestamp(1))
            && claimed.pending.is_none()
        {
            let end = TaskInput::EndRun { fence: claimed.fence, outcome };
            prop_assert!(transition(&claimed, &end, &flow, Timestamp(2)).is_ok());
        }
    }
}

/// A task of the shipped flow `pull-request`, and what is done to it.
struct Story {
    flow: Flow,
    task: Task,
}

impl Story {
    fn of(flow: &str) -> Self {
        let flow = parse(flow).unwrap();
        let new = NewTask { title: "add a greeting".into(), ..NewTask::default() };
        let task = Task::new(new, TaskId::from_random(1), &flow, Timestamp(0));
        Self { flow, task }
    }

    fn told(&mut self, input: TaskInput) -> &mut Self {
        let input = with_present_fence(input, &self.task);
        self.task = transition(&self.task, &input, &self.flow, Timestamp(1_000)).unwrap();
        self
    }

    fn works(&mut self, outcome: Outcome) -> &mut Self {
        self.told(claim_input()).told(TaskInput::EndRun { fence: Fence(-1), outcome })
    }

    fn steps(&mut self, count: u32) -> &mut Self {
        for step in 0..count {
            let delivery = Box::new(Delivery { head: Some(oid(step + 1)), ..Delivery::default() });
            self.told(TaskInput::StepDone { fence: Fence(-1), step, delivery });
        }
        self
    }

    fn fails(&mut self, step: u32, failure: StepFailure) -> &mut Self {
        self.told(TaskInput::StepFailed { fence: Fence(-1), step, failure })
    }
}

/// The id of an object, by a number that is not 0.
fn oid(number: u32) -> Oid {
    Oid::new(&format!("{number:040x}")).unwrap()
}

#[test]
fn a_done_run_is_followed_by_its_steps_under_the_same_claim_and_then_by_its_edge() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(3);
    assert!(matches!(story.task.standing, Standing::Claimed(_)));
    assert_eq!(story.task.pending.as_ref().map(|pending| pending.next), Some(3));
    assert_eq!(story.task.delivery.head, Some(oid(3)));
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(5);
    assert_eq!((story.task.status(), story.task.pending.is_none()), ("provisional", true));
    story.works(Outcome::Approved).steps(2);
    assert!(story.task.is_done());
}

#[test]
fn red_tests_send_the_work_back_with_what_failed_and_the_fourth_time_it_is_a_failure() {
    let mut story = Story::of(FLOWS[1]);
    let red =
        || StepFailure::Red { verdict: crate::RedVerdict::TestsFailed, reason: "TestAdd failed".into() };
    for _ in 0..3 {
        story.works(Outcome::Done).steps(2).fails(2, red());
        let feedback = story.task.feedback.clone().unwrap();
        assert_eq!((story.task.status(), feedback.from.as_str()), ("incoming", "run_tests"));
        assert_eq!(feedback.text, "TestAdd failed");
    }
    story.works(Outcome::Done).steps(2).fails(2, red());
    assert_eq!(story.task.status(), "failed");
}

#[test]
fn a_step_that_fails_through_the_system_is_tried_again_and_blames_nobody() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(3).fails(3, StepFailure::Transient { reason: "reset by peer".into() });
    let Standing::Waiting(wait) = &story.task.standing else { panic!() };
    assert_eq!((wait.reason.as_str(), wait.until), ("push_branch: reset by peer", Some(Timestamp(61_000))));
    assert_eq!((story.task.attempts, story.task.pending.as_ref().unwrap().next), (1, 3));
    let claimed = transition(&story.task, &claim_input(), &story.flow, Timestamp(61_000)).unwrap();
    assert_eq!(claimed.pending.unwrap().next, 3, "the agent does not work again");
}

#[test]
fn a_merge_that_conflicts_goes_back_to_be_rebased() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(5).works(Outcome::Approved);
    story.fails(0, StepFailure::Red { verdict: crate::RedVerdict::Conflict, reason: "a.txt".into() });
    assert_eq!((story.task.status(), story.task.delivery.needs_rebase), ("incoming", true));
}

#[test]
fn what_nobody_can_know_is_left_to_a_human() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(5).works(Outcome::Approved).steps(1);
    story.fails(1, StepFailure::Unknown { reason: "the connection broke after the request".into() });
    assert_eq!(story.task.status(), "blocked");
    story.told(TaskInput::Unblock);
    assert_eq!(story.task.pending.as_ref().unwrap().next, 1);
}

#[test]
fn a_person_approves_and_only_steps_are_left() {
    let mut story = Story::of(FLOWS[2]);
    story.works(Outcome::Done).steps(5);
    assert_eq!(story.task.status(), "blocked");
    story.told(TaskInput::Decide { approve: false, comment: "use tabs".into() });
    assert_eq!((story.task.status(), story.task.rejections), ("incoming", 1));
    assert_eq!(story.task.feedback.as_ref().unwrap().text, "use tabs");
    story.works(Outcome::Done).steps(5).told(TaskInput::Decide { approve: true, comment: String::new() });
    assert_eq!((story.task.status(), story.task.pending.as_ref().unwrap().next), ("merging", 0));
    story.told(claim_input()).steps(2);
    assert!(story.task.is_done());
    let again = TaskInput::Decide { approve: true, comment: String::new() };
    let refused = transition(&story.task, &again, &story.flow, Timestamp(0)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("task `{}` does not wait for a decision: it is done", story.task.id)
    );
}

#[test]
fn a_task_that_loses_worker_after_worker_is_given_up() {
    let mut story = Story::of(FLOWS[1]);
    let take_over = || TaskInput::TakeOver {
        worker: WorkerId::new("w2").unwrap(),
        run: RunId::from_random(10),
        stale: Fence(-1),
    };
    story.told(claim_input());
    for _ in 0..3 {
        story.told(take_over());
        assert!(matches!(story.task.standing, Standing::Claimed(_)));
    }
    story.told(take_over());
    assert_eq!(story.task.status(), "failed");
    assert_eq!(story.task.feedback.unwrap().text, "its worker was lost 4 times");
}

#[test]
fn of_two_processes_that_adopt_a_claim_only_the_first_gets_it_and_the_run_stays_the_same() {
    let worker = |name: &str| WorkerId::new(name).unwrap();
    let mut story = Story::of(FLOWS[0]);
    story.told(claim_input());
    let claimed = story.task.clone();
    let adopt = |by: &str| TaskInput::Adopt { fence: claimed.fence, from: worker("w1"), by: worker(by) };
    story.told(adopt("w2"));
    let Standing::Claimed(claim) = &story.task.standing else { panic!("it is not held") };
    assert_eq!((claim.worker.as_str(), &claim.run), ("w2", &RunId::from_random(9)));
    assert_eq!((story.task.fence, story.task.attempts, story.task.losses), (claimed.fence, 0, 0));

    let refused = |task: &Task, input: &TaskInput| {
        transition(task, input, &flow(), Timestamp(2_000)).unwrap_err().to_string()
    };
    let id = &claimed.id;
    let not_his = format!("task `{id}` is held by worker `w2`, not by `w1`");
    assert_eq!(refused(&story.task, &adopt("w3")), not_his);
    // A third one found the first one dead and comes late: the second is at work.
    let late = TaskInput::Lose { stale: claimed.fence, of: worker("w1") };
    assert_eq!(refused(&story.task, &late), not_his);
    story.told(TaskInput::Release { fence: Fence(-1) });
    assert_eq!(refused(&story.task, &adopt("w3")), format!("fence 1 of task `{id}` is stale: it is 2 now"));
}

#[test]
fn a_step_is_told_once_and_in_its_turn() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(2);
    let again = TaskInput::StepDone { fence: story.task.fence, step: 1, delivery: Box::default() };
    let refused = transition(&story.task, &again, &story.flow, Timestamp(0)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("step 1 of task `{}` cannot be told: step 2 is next", story.task.id)
    );
}

#[test]
fn a_pause_is_over_when_its_time_is() {
    let text = "name: slow\nstart: rest\nstates:\n  rest: { wait: time, for: 2h, on: { done: done } }\n  done: { end: success }\n";
    let mut story = Story::of(text);
    assert_eq!(story.flow.steps_of(&story.task.state).len(), 1);
    story.told(claim_input());
    let until = Timestamp(7_200_000);
    story.fails(0, StepFailure::Pending { reason: "2h have to pass".into(), until });
    let Standing::Waiting(wait) = &story.task.standing else { panic!() };
    assert_eq!((wait.wait_for, wait.until), (WaitFor::Time, Some(until)));
    assert_eq!(story.task.pending.as_ref().unwrap().tries, 1);
    let claimed = transition(&story.task, &claim_input(), &story.flow, until).unwrap();
    let done = TaskInput::StepDone { fence: claimed.fence, step: 0, delivery: Box::default() };
    assert!(transition(&claimed, &done, &story.flow, until).unwrap().is_done());
}

#[test]
fn work_that_is_gone_begins_again_in_the_same_state_and_blames_nobody() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(2);
    let attempts = story.task.attempts;
    story.told(TaskInput::Redo { fence: Fence(-1) });
    assert_eq!(
        (story.task.status(), story.task.pending.is_none(), story.task.attempts),
        ("incoming", true, attempts)
    );
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

#[test]
fn a_reviewer_who_says_done_has_not_approved_and_nothing_is_merged() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(5).works(Outcome::Done);
    assert_eq!((story.task.status(), story.task.pending.is_none()), ("provisional", true));
    assert_eq!(story.task.edges_taken.get("provisional/crashed"), Some(&1));
}

#[test]
fn a_decision_that_nobody_asked_for_is_a_breakdown_of_the_agent() {
    for outcome in [Outcome::Approved, Outcome::Rejected { comment: "no".into() }] {
        let mut story = Story::of(FLOWS[1]);
        story.works(outcome);
        assert_eq!((story.task.status(), story.task.pending.is_none()), ("incoming", true));
        assert_eq!(story.task.edges_taken.get("incoming/crashed"), Some(&1));
    }
}

#[test]
fn a_step_that_is_red_is_not_taken_for_a_reviewer_who_broke_down() {
    let text = FLOWS[1].replace(
        "      tests_failed: { to: incoming, at_most: 3, then: failed }\n      merge_failed",
        "      merge_failed",
    );
    let mut story = Story::of(&text);
    story.works(Outcome::Done).steps(5).works(Outcome::Approved).steps(1);
    story.fails(1, StepFailure::Red { verdict: crate::RedVerdict::TestsFailed, reason: "red".into() });
    assert_eq!(story.task.edges_taken.get("provisional/merge_failed"), Some(&1));
}

#[test]
fn the_end_of_a_run_counts_once_however_often_it_is_told() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(2);
    let again = TaskInput::EndRun { fence: story.task.fence, outcome: Outcome::Done };
    let refused = transition(&story.task, &again, &story.flow, Timestamp(0)).unwrap_err();
    let told = format!("the run of task `{}` is over, and its steps are under way", story.task.id);
    assert_eq!(refused.to_string(), told);
}

#[test]
fn a_flow_may_begin_with_steps_alone() {
    let mut story = Story::of(
        "name: sync\nstart: push\nstates:\n  push: { steps: [push_branch], on: { done: done } }\n  done: { end: success }\n",
    );
    story.told(claim_input()).steps(1);
    assert!(story.task.is_done());
}

#[test]
fn a_task_that_begins_anew_knows_where_its_branch_stands() {
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done);
    let out = Delivery {
        branch: Some("rehearsal/t".into()),
        pushed: Some(oid(1)),
        head: Some(oid(1)),
        ..Delivery::default()
    };
    story.told(TaskInput::StepDone { fence: Fence(-1), step: 0, delivery: Box::new(out) });
    story.told(TaskInput::Cancel).told(TaskInput::Retry);
    let Delivery { branch, pushed, head, .. } = &story.task.delivery;
    assert_eq!(
        (branch.as_deref(), pushed.as_ref(), head.as_ref()),
        (Some("rehearsal/t"), Some(&oid(1)), None)
    );
}

#[test]
fn what_was_about_to_be_pushed_is_known_to_be_ours_until_a_push_is_told_of() {
    let mut story = Story::of(FLOWS[1]);
    let offer = |step, commit| TaskInput::Offer { fence: Fence(-1), step, commit: oid(commit) };
    story.works(Outcome::Done).steps(3).told(offer(3, 1)).told(offer(3, 1));
    assert_eq!(story.task.delivery.offered, [oid(1)]);
    story.told(TaskInput::Redo { fence: Fence(-1) }).told(TaskInput::Cancel).told(TaskInput::Retry);
    assert!(story.task.delivery.may_have_pushed(&oid(1)));
    assert!(!story.task.delivery.may_have_pushed(&oid(2)));
    story.works(Outcome::Done);
    let too_late = transition(&story.task, &offer(3, 2), &story.flow, Timestamp(0));
    assert!(matches!(too_late, Err(Refusal::Stale { .. })), "a fence of another time");
    let wrong = with_present_fence(offer(3, 2), &story.task);
    let wrong = transition(&story.task, &wrong, &story.flow, Timestamp(0)).unwrap_err();
    assert_eq!(wrong.to_string(), "step 3 of task `10000000` cannot be told: step 0 is next");
}

#[test]
fn steps_that_another_process_goes_on_with_may_have_killed_the_one_before() {
    let worker = |number: u32| WorkerId::new(format!("w{number}")).unwrap();
    let mut story = Story::of(FLOWS[1]);
    story.works(Outcome::Done).steps(2);
    let fence = story.task.fence;
    for number in 1..=4 {
        story.told(TaskInput::Adopt { fence, from: worker(number), by: worker(number + 1) });
        assert_eq!((story.task.losses, story.task.pending.as_ref().unwrap().next), (number, 2));
        assert_eq!(story.task.fence == fence, number < 4, "the last one gets nothing");
    }
    assert_eq!(story.task.status(), "blocked");
    assert_eq!(story.task.feedback.unwrap().text, "its worker was lost 4 times");
}
