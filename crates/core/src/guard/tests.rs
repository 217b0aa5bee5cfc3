use super::*;
use crate::flow::parse;
use crate::{Budget, HoldCause, NewTask};

fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

fn working(task: &str, by: &str, touches: &[&str]) -> Working {
    Working {
        task: TaskId::new(task).unwrap(),
        session: None,
        agent: Some(agent(by)),
        touches: touches.iter().map(ToString::to_string).collect(),
    }
}

fn lane(limits: &Limits, situation: &Situation, now: i64) -> Option<String> {
    let implementer = agent("implementer");
    lane_hindrance(Some(&implementer), None, limits, situation, Timestamp(now)).map(|it| it.to_string())
}

fn limits_of_implementer(of_agent: AgentLimits) -> Limits {
    Limits { at_once: None, agents: BTreeMap::from([(agent("implementer"), of_agent)]) }
}

#[test]
fn each_limit_says_what_it_is() {
    let busy = Situation { working: vec![working("t1", "implementer", &[])], ..Situation::default() };
    let off = limits_of_implementer(AgentLimits { enabled: false, ..AgentLimits::default() });
    assert_eq!(lane(&off, &busy, 0).unwrap(), "agent `implementer` is disabled in the configuration");
    let one = limits_of_implementer(AgentLimits { at_once: Some(1), ..AgentLimits::default() });
    assert_eq!(
        lane(&one, &busy, 0).unwrap(),
        "agent `implementer` has 1 runs under way, and may have no more"
    );
    let in_all = Limits { at_once: Some(1), ..Limits::default() };
    assert_eq!(lane(&in_all, &busy, 0).unwrap(), "1 tasks are in work, and no more may be");
    assert_eq!(lane(&Limits { at_once: Some(2), ..Limits::default() }, &busy, 0), None);
}

#[test]
fn a_fallback_works_while_the_system_keeps_an_agent_from_working() {
    let fallback = vec![agent("off"), agent("second")];
    let mut limits = limits_of_implementer(AgentLimits { fallback, ..AgentLimits::default() });
    limits.agents.insert(agent("off"), AgentLimits { enabled: false, ..AgentLimits::default() });
    let held = |name: &str, cause, until| {
        (Lane::Agent(agent(name)), Hold { cause, reason: "used up".into(), until: Some(Timestamp(until)) })
    };
    let quota = HoldCause::System(OutcomeName::QuotaExhausted);
    let acting = |holds: &[(Lane, Hold)], now| {
        let situation = Situation { holds: holds.to_vec(), ..Situation::default() };
        acting_agent(&agent("implementer"), &limits, &situation, Timestamp(now)).to_string()
    };
    let used_up = held("implementer", quota, 100);
    assert_eq!(acting(&[], 0), "implementer");
    assert_eq!(
        acting(std::slice::from_ref(&used_up), 0),
        "second",
        "one that is disabled takes nothing over"
    );
    assert_eq!(acting(std::slice::from_ref(&used_up), 100), "implementer", "its quota is reset");
    assert_eq!(acting(&[used_up, held("second", quota, 200)], 0), "implementer", "nobody is left");
    assert_eq!(
        acting(&[held("implementer", HoldCause::Person, 100)], 0),
        "implementer",
        "a pause is a pause"
    );
}

#[test]
fn an_interval_is_kept_and_then_over() {
    let limits =
        limits_of_implementer(AgentLimits { interval: Duration::from_secs(60), ..AgentLimits::default() });
    let last_starts = BTreeMap::from([(agent("implementer"), Timestamp(1_000))]);
    let situation = Situation { last_starts, ..Situation::default() };
    assert_eq!(
        lane(&limits, &situation, 60_999).unwrap(),
        "agent `implementer` has begun a run, and its `interval` is not over"
    );
    assert_eq!(lane(&limits, &situation, 61_000), None);
}

#[test]
fn a_hold_is_over_at_its_time_and_holds_its_own_lane_only() {
    let hold = |until| Hold { cause: HoldCause::Person, reason: "the fair".into(), until };
    let held = |lane, until| Situation { holds: vec![(lane, hold(until))], ..Situation::default() };
    let none = Limits::default();
    assert_eq!(lane(&none, &held(Lane::All, None), 9).unwrap(), "all work is held: the fair");
    let own = Lane::Agent(agent("implementer"));
    assert_eq!(
        lane(&none, &held(own.clone(), Some(Timestamp(10))), 9).unwrap(),
        "agent `implementer` is held: the fair"
    );
    assert_eq!(lane(&none, &held(own, Some(Timestamp(10))), 10), None);
    assert_eq!(lane(&none, &held(Lane::Agent(agent("gatekeeper")), None), 9), None);
    let session = Lane::Session(SessionName::new("s").unwrap());
    assert_eq!(lane(&none, &held(session, None), 9), None);
}

const FLOW: &str = "
name: small
start: incoming
states:
  incoming: { agent: implementer, on: { done: review, crashed: incoming }, otherwise: done }
  review: { agent: gatekeeper, room: 2, on: { approved: done, rejected: incoming, crashed: review } }
  done: { end: success }
";

fn task(new: NewTask) -> (Task, Flow) {
    let flow = parse(FLOW).unwrap();
    (Task::new(NewTask { title: "t".into(), ..new }, TaskId::new("t9").unwrap(), &flow, Timestamp(0)), flow)
}

#[test]
fn a_full_state_holds_back_those_that_would_go_there() {
    let (task, flow) = task(NewTask::default());
    let state = StateName::new("review").unwrap();
    let counted = |count| BTreeMap::from([(state.clone(), count)]);
    let asked = |count| task_hindrance(&task, &flow, &Situation::default(), &counted(count), 0.0);
    assert_eq!(asked(1), None);
    assert_eq!(
        asked(2).unwrap().to_string(),
        "state `review`, where its work would go, has room for 2 tasks and is full"
    );
}

#[test]
fn a_task_that_has_cost_what_it_may_is_not_begun_again() {
    let (task, flow) =
        task(NewTask { budget: Budget { usd: Some(1.0), ..Budget::default() }, ..NewTask::default() });
    let asked = |spent| task_hindrance(&task, &flow, &Situation::default(), &BTreeMap::new(), spent);
    assert_eq!(asked(0.99), None);
    assert_eq!(asked(1.0).unwrap().to_string(), "its runs cost $1.00, and may cost $1.00");
}

#[test]
fn two_tasks_that_touch_the_same_are_not_worked_on_at_once() {
    let (task, flow) = task(NewTask { touches: vec!["src/**/*.rs".into()], ..NewTask::default() });
    let asked = |touches: &str| {
        let situation =
            Situation { working: vec![working("t1", "implementer", &[touches])], ..Situation::default() };
        task_hindrance(&task, &flow, &situation, &BTreeMap::new(), 0.0).map(|it| it.to_string())
    };
    assert_eq!(asked("src/main.rs").unwrap(), "task `t1`, which is in work, also touches `src/**/*.rs`");
    for meets in ["src/a/b.rs", "src/*", "**/*.rs", "src", "*"] {
        assert!(asked(meets).is_some(), "{meets}");
    }
    for misses in ["docs/a.md", "src/*.md", "srcs/a.rs", "README.md"] {
        assert_eq!(asked(misses), None, "{misses}");
    }
}
