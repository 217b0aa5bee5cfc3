//! Limits of an agent's vendor become stored waits; the clock jumps over them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::TaskEdit;
use rehearsal_core::guard::AgentLimits;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    AgentName, Clock, Hold, HoldCause, Lane, NewTask, Outcome, Standing, Timestamp, VirtualClock,
    WireErrorKind,
};
use rehearsal_engine::{WorkEnd, WorkEvent};
use rehearsal_store::Change;

use crate::stage::{BEGINNING, HOUR, MINUTE, change, new_session, play, session, task_id, titled};

fn rate_limited(until: Option<Timestamp>) -> ScriptedRun {
    ScriptedRun::error(WireErrorKind::RateLimit { until }, "slow down")
}

fn overloaded() -> ScriptedRun {
    ScriptedRun::error(WireErrorKind::Overloaded, "overloaded")
}

/// What `task unblock` does with a task that met a limit.
fn unblock(id: &str) -> Vec<Change> {
    let lane = Lane::Agent(AgentName::new("implementer").unwrap());
    vec![change(id, TaskInput::Unblock), Change::FreeLane { lane }]
}

fn finished(id: &str) -> ScriptedRun {
    ScriptedRun::done("done").task_done(id)
}

#[test]
fn a_rate_limit_with_a_time_is_waited_for_and_costs_no_attempt() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let until = BEGINNING.plus(20 * MINUTE);
        let agent = Arc::new(ScriptedAgent::new().then(rate_limited(Some(until))).then(finished("parse")));
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::AllDone);
        assert_eq!(stage.clock.now(), until);
        assert_eq!(summary.duration_ms, 20 * 60 * 1000);
        assert_eq!(stage.task("parse").await.attempts, 1, "only the run that was carried out counts");
        let waiting = WorkEvent::Waiting { until: Some(until), reason: Some("rate_limited".into()) };
        assert!(stage.told().contains(&waiting));
    });
}

#[test]
fn a_five_hour_quota_is_waited_for() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let quota = WireErrorKind::Quota { until: Some(BEGINNING.plus(5 * HOUR)) };
        let agent = Arc::new(
            ScriptedAgent::new().then(ScriptedRun::error(quota, "limit reached")).then(finished("parse")),
        );
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(stage.waits(), [("quota_exhausted".to_owned(), 5 * HOUR)]);
    });
}

#[test]
fn waits_without_a_time_double_up_to_half_an_hour_and_begin_anew_after_a_success() {
    play(async |stage| {
        stage.options.iterations = 20;
        stage.tasks(&["parse"]).await;
        let mut agent = ScriptedAgent::new();
        for _ in 0..7 {
            agent = agent.then(overloaded());
        }
        let unreachable = ScriptedRun::error(WireErrorKind::Unreachable, "no route to host");
        let agent = agent.then(ScriptedRun::done("half")).then(unreachable).then(finished("parse"));
        assert_eq!(stage.run(&Arc::new(agent)).await.end, WorkEnd::AllDone);
        let mut before = Duration::ZERO;
        let mut minutes = Vec::new();
        for (_, until) in stage.waits() {
            minutes.push((until.as_secs() - before.as_secs()) / 60);
            before = until;
        }
        assert_eq!(minutes, [1, 2, 4, 8, 16, 30, 30, 1]);
        assert_eq!(stage.waits()[7].0, "unreachable: no route to host");
    });
}

#[test]
fn a_time_that_is_past_is_not_tried_again_at_once() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let agent =
            Arc::new(ScriptedAgent::new().then(rate_limited(Some(Timestamp(1)))).then(finished("parse")));
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(stage.waits(), [("rate_limited".to_owned(), MINUTE)]);
    });
}

#[test]
fn a_limit_of_the_agent_holds_for_all_tasks() {
    play(async |stage| {
        stage.tasks(&["one", "two", "three"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(rate_limited(Some(BEGINNING.plus(HOUR))))
                .then(finished("one"))
                .then(finished("two"))
                .then(finished("three")),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::AllDone);
        agent.assert_call_count(4);
        let started: Vec<Timestamp> = stage.runs().await.iter().map(|run| run.start.started_at).collect();
        let later = BEGINNING.plus(HOUR);
        assert_eq!(started, [BEGINNING, later, later, later], "nobody is called while the limit lasts");
    });
}

#[test]
fn a_wait_that_is_too_long_ends_the_loop_and_a_later_one_finds_it() {
    play(async |stage| {
        stage.options.max_wait = HOUR;
        stage.tasks(&["parse", "print"]).await;
        let until = BEGINNING.plus(5 * HOUR);
        let quota = || ScriptedRun::error(WireErrorKind::Quota { until: Some(until) }, "limit reached");
        let agent =
            Arc::new(ScriptedAgent::new().then(quota()).then(finished("parse")).then(finished("print")));
        let too_long = WorkEnd::WaitTooLong { wait: "quota_exhausted".into(), until };
        assert_eq!(stage.run(&agent).await.end, too_long);
        assert_eq!(stage.run(&agent).await.end, too_long, "a second loop does not ask the agent");
        agent.assert_call_count(1);
        assert!(matches!(stage.task("parse").await.standing, Standing::Waiting(_)));

        stage.clock.advance(4 * HOUR + 30 * MINUTE);
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(stage.clock.now(), until);
        agent.assert_all_played();
    });
}

#[test]
fn another_agent_does_not_rest_for_the_limit_of_the_first() {
    play(async |stage| {
        stage.options.max_wait = HOUR;
        stage.tasks(&["parse", "print"]).await;
        let limited = Arc::new(ScriptedAgent::new().then(rate_limited(Some(BEGINNING.plus(2 * HOUR)))));
        stage.run(&limited).await;

        stage.options.agent = AgentName::new("second").unwrap();
        let second = Arc::new(ScriptedAgent::new().then(finished("print")));
        let end = stage.run(&second).await.end;
        assert_eq!(stage.status("print").await, "done");
        assert!(matches!(end, WorkEnd::WaitTooLong { .. }), "{end:?}");
    });
}

#[test]
fn a_person_who_unblocks_the_task_ends_the_rest() {
    play(async |stage| {
        stage.options.max_wait = HOUR;
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(
            ScriptedAgent::new().then(rate_limited(Some(BEGINNING.plus(2 * HOUR)))).then(finished("parse")),
        );
        stage.run(&agent).await;
        stage.commit(unblock("parse")).await;
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(stage.clock.now(), BEGINNING);
    });
}

#[test]
fn a_wait_that_is_over_does_not_hold_a_task_that_depends_on_a_blocked_one() {
    play(async |stage| {
        stage.options.max_wait = MINUTE;
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().then(rate_limited(Some(BEGINNING.plus(HOUR)))));
        stage.run(&agent).await;
        stage.add("grammar", titled("grammar")).await;
        let edit = TaskEdit { depends_on: Some(vec![task_id("grammar")]), ..TaskEdit::default() };
        let block = TaskInput::Block { reason: "which one?".into() };
        stage.commit(vec![change("parse", TaskInput::Edit { edit }), change("grammar", block)]).await;
        stage.clock.advance(2 * HOUR);
        let WorkEnd::NeedsHuman { waiting } = stage.run(&agent).await.end else {
            panic!("nothing can be done");
        };
        assert_eq!(
            waiting,
            ["parse parse: it depends on tasks that are not done", "grammar grammar: which one?"]
        );
    });
}

#[test]
fn what_the_last_iteration_said_outlives_a_wait() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done("<promise>CONTINUE: the lexer is next</promise>"))
                .then(overloaded())
                .then(finished("parse")),
        );
        stage.run(&agent).await;
        agent.assert_prompt_contains(2, "NOTE: the last iteration says: the lexer is next");
    });
}

#[test]
fn failures_of_the_system_do_not_count_as_failures_in_a_row() {
    play(async |stage| {
        stage.options.max_failures = 2;
        stage.tasks(&["parse"]).await;
        let failed = || ScriptedRun::of(Outcome::Failed { reason: "no idea".into() });
        let agent = ScriptedAgent::new().then(failed()).then(overloaded()).then(failed());
        let end = stage.run(&Arc::new(agent)).await.end;
        assert_eq!(end, WorkEnd::TooManyFailures { last: Outcome::Failed { reason: "no idea".into() } });
        assert_eq!(stage.task("parse").await.attempts, 2);
    });
}

/// A clock on which a long wait never ends; the first times that a loop that waits looks around meanwhile, somebody
/// acts.
struct LongWait {
    clock: Arc<VirtualClock>,
    events: Arc<Mutex<Vec<WorkEvent>>>,
    acts: AtomicUsize,
    somebody: Box<dyn Fn() + Send + Sync>,
}

/// With the last of them the task goes on.
const ACTS: usize = 3;

#[async_trait::async_trait]
impl Clock for LongWait {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn sleep_until(&self, until: Timestamp) {
        let waits = matches!(self.events.lock().unwrap().last(), Some(WorkEvent::Waiting { .. }));
        // A claim is in the store a little before it is told.
        let is_at_work = !waits || self.acts.load(Ordering::SeqCst) == ACTS;
        if until.since(self.now()) > MINUTE || is_at_work {
            return std::future::pending().await;
        }
        self.acts.fetch_add(1, Ordering::SeqCst);
        self.clock.sleep_until(until).await;
        (self.somebody)();
    }
}

#[test]
fn a_loop_that_waits_notices_what_a_person_changes() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let until = BEGINNING.plus(2 * HOUR);
        let agent = Arc::new(ScriptedAgent::new().then(rate_limited(Some(until))).then(finished("parse")));
        let looks = AtomicUsize::new(0);
        let acts = stage.person(move || match looks.fetch_add(1, Ordering::SeqCst) {
            0 => Vec::new(),
            1 => vec![change("parse", TaskInput::Edit { edit: TaskEdit::default() })],
            _ => unblock("parse"),
        });
        let played = Arc::clone(&agent);
        let somebody = Box::new(move || acts(&played.calls()[0]));
        let (clock, events) = (Arc::clone(&stage.clock), Arc::clone(&stage.events));
        let clock = Arc::new(LongWait { clock, events, acts: AtomicUsize::new(0), somebody });
        let mut worker = stage.worker(&agent);
        worker.clock = clock;
        worker.options.look_every = Some(Duration::from_secs(1));
        let summary = tokio::time::timeout(MINUTE, worker.run()).await.unwrap().unwrap();
        assert_eq!(summary.end, WorkEnd::AllDone);
        assert_eq!(stage.clock.now(), BEGINNING.plus(Duration::from_secs(3)), "a look a second");
        assert_eq!(stage.waits(), [("rate_limited".to_owned(), 2 * HOUR)], "the same wait is told once");
    });
}

#[test]
fn a_pause_holds_a_loop_and_a_limit_does_too() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let lane = Lane::Session(session("work"));
        let hold = Hold { cause: HoldCause::Person, reason: "lunch".into(), until: None };
        stage.commit(vec![Change::HoldLane { lane: lane.clone(), hold }]).await;
        let agent = Arc::new(ScriptedAgent::new().then(finished("parse")));
        let waiting = vec!["parse parse: session `work` is held: lunch".to_owned()];
        assert_eq!(stage.run(&agent).await.end, WorkEnd::NeedsHuman { waiting });
        stage.commit(vec![Change::FreeLane { lane }]).await;
        let disabled = AgentLimits { enabled: false, ..AgentLimits::default() };
        stage.limits.agents.insert(AgentName::new("implementer").unwrap(), disabled);
        let waiting = vec!["parse parse: agent `implementer` is disabled in the configuration".to_owned()];
        assert_eq!(stage.run(&agent).await.end, WorkEnd::NeedsHuman { waiting });
        agent.assert_call_count(0);
    });
}

#[test]
fn a_loop_waits_while_others_work_on_as_much_as_may_be() {
    play(async |stage| {
        stage.options.max_wait = MINUTE;
        stage.limits.at_once = Some(1);
        stage.commit(vec![new_session("other")]).await;
        let other = Some(session("other"));
        stage.add("theirs", NewTask { session: other.clone(), ..titled("theirs") }).await;
        stage.claim("w", "r", other).await;
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new());
        let wait = "1 tasks are in work, and no more may be".to_owned();
        let until = BEGINNING.plus(HOUR);
        assert_eq!(stage.run(&agent).await.end, WorkEnd::WaitTooLong { wait, until });
    });
}
