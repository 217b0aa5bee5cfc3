use std::sync::Mutex;

use camino::Utf8PathBuf;
use rehearsal_core::{Budget, Commit, Exit, OutcomeName, RunId, TaskId, Tokens, VirtualClock, WireErrorKind};
use rstest::rstest;

use super::*;
use crate::clis::KNOWN;
use crate::{Permission, ScriptedAgent, ScriptedRun};

/// A scripted agent under the name of a real driver.
struct Named(&'static str, Arc<ScriptedAgent>);

#[async_trait]
impl Agent for Named {
    async fn run(&self, request: RunRequest, watch: Watch, cancel: CancellationToken) -> RunReport {
        self.1.run(request, watch, cancel).await
    }
    fn driver(&self) -> &str {
        self.0
    }

    fn sessions(&self) -> Sessions {
        KNOWN.of_program(self.0).sessions
    }
}

struct Tried {
    report: RunReport,
    calls: Vec<RunRequest>,
    waited: Duration,
    seen: Vec<Activity>,
    _dir: tempfile::TempDir,
}

const START: Timestamp = Timestamp(1_000_000);

async fn tried(driver: &'static str, agent: ScriptedAgent, change: impl FnOnce(&mut RunRequest)) -> Tried {
    let dir = tempfile::tempdir().unwrap();
    let mut request = request(&dir);
    change(&mut request);
    let agent = Arc::new(agent);
    let clock = Arc::new(VirtualClock::starting_at(START));
    let retrying = Retrying::new(Named(driver, Arc::clone(&agent)), clock.clone(), 7);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watch: Watch = {
        let seen = Arc::clone(&seen);
        Arc::new(move |activity| seen.lock().unwrap().push(activity))
    };
    let report = retrying.run(request, watch, CancellationToken::new()).await;
    let seen = seen.lock().unwrap().clone();
    Tried { report, calls: agent.calls(), waited: clock.now().since(START), seen, _dir: dir }
}

fn request(dir: &tempfile::TempDir) -> RunRequest {
    let run_dir = Utf8PathBuf::try_from(dir.path().to_owned()).unwrap();
    RunRequest {
        run: RunId::new("r1").unwrap(),
        task: TaskId::new("t1").unwrap(),
        prompt: "Add a greeting.".into(),
        working_dir: run_dir.clone(),
        run_dir,
        model: None,
        system_prompt: None,
        permission: Permission::AcceptEdits,
        allow: Vec::new(),
        timeout: None,
        idle_timeout: None,
        calls: crate::CallLimits::default(),
        budget: Budget::default(),
        env_grants: Vec::new(),
        env: std::collections::BTreeMap::new(),
        resume: None,
        lease: None,
        rendezvous: None,
    }
}

fn overloaded() -> ScriptedRun {
    ScriptedRun::error(WireErrorKind::Overloaded, "529").git(GitFacts::default())
}

/// The id that is nothing but this digit.
fn oid(digit: &str) -> rehearsal_core::Oid {
    rehearsal_core::Oid::new(&digit.repeat(40)).unwrap()
}

fn one_commit(from: &str, to: &str) -> GitFacts {
    GitFacts {
        head_before: Some(oid(from)),
        head_after: Some(oid(to)),
        commits: vec![Commit { id: oid(to), subject: "work".into() }],
        files_changed: vec![format!("{to}.txt")],
        uncommitted: false,
    }
}

#[tokio::test]
async fn a_service_that_fails_for_a_moment_is_asked_again() {
    let agent = ScriptedAgent::new().then(overloaded()).then(ScriptedRun::done("ok"));
    let tried = tried("claude", agent, |_| {}).await;
    assert_eq!(tried.report.verdict.outcome, Outcome::Done);
    assert_eq!(tried.report.tries, 2);
    assert_eq!(tried.calls[1].prompt, "Add a greeting.");
    assert!(tried.waited >= FIRST_WAIT && tried.waited <= FIRST_WAIT * 2, "{:?}", tried.waited);
    let wait = format!("{:.1}", tried.waited.as_secs_f64());
    let message = format!("try 1 ended with overloaded; tried again after {wait} s");
    let after_ms = u64::try_from(tried.waited.as_millis()).unwrap();
    assert_eq!(tried.report.warnings, [Notice::Retried { tries: 1, outcome: Outcome::Overloaded, after_ms }]);
    assert!(tried.seen.contains(&Activity::Retrying { message }));
}

#[tokio::test]
async fn three_failures_are_enough_and_each_wait_is_longer() {
    let agent = ScriptedAgent::new().then(overloaded()).then(overloaded()).then(overloaded());
    let tried = tried("claude", agent, |_| {}).await;
    assert_eq!(tried.report.verdict.outcome, Outcome::Overloaded);
    assert_eq!((tried.report.tries, tried.calls.len()), (3, 3));
    assert!(tried.waited >= FIRST_WAIT * 3, "{:?}", tried.waited);
}

#[tokio::test]
async fn the_same_seed_waits_the_same_time() {
    let agent = || ScriptedAgent::new().then(overloaded()).then(ScriptedRun::done("ok"));
    let waits =
        (tried("claude", agent(), |_| {}).await.waited, tried("claude", agent(), |_| {}).await.waited);
    assert_eq!(waits.0, waits.1);
    let other = tried("claude", agent(), |request| {
        request.run = RunId::new("r2").unwrap();
    })
    .await;
    assert_ne!(other.waited, waits.0);
}

#[rstest]
#[case::auth(Outcome::AuthFailed { reason: "no key".into() })]
#[case::missing(Outcome::AgentMissing { program: "claude".into() })]
#[case::protocol(Outcome::ProtocolError { reason: "half a line".into() })]
#[case::cancelled(Outcome::Cancelled)]
#[case::permission(Outcome::PermissionDenied { reason: "Write".into() })]
#[case::quota(Outcome::QuotaExhausted { until: None })]
#[case::crash(Outcome::crashed(Exit::Signal(9)))]
#[case::done(Outcome::Done)]
#[tokio::test]
async fn what_does_not_pass_by_itself_is_never_tried_again(#[case] outcome: Outcome) {
    let tried = tried("claude", ScriptedAgent::new().then(ScriptedRun::of(outcome.clone())), |_| {}).await;
    assert_eq!(tried.report.verdict.outcome, outcome);
    assert_eq!((tried.report.tries, tried.waited), (1, Duration::ZERO));
    assert_eq!(tried.report.warnings, [] as [Notice; 0]);
}

fn rate_limited(seconds: u64) -> ScriptedRun {
    let until = Some(START.plus(Duration::from_secs(seconds)));
    ScriptedRun::error(WireErrorKind::RateLimit { until }, "429").git(GitFacts::default())
}

#[tokio::test]
async fn a_reset_that_is_near_is_waited_for() {
    let agent = ScriptedAgent::new().then(rate_limited(30)).then(ScriptedRun::done("ok"));
    let tried = tried("claude", agent, |_| {}).await;
    assert_eq!(tried.report.verdict.outcome, Outcome::Done);
    assert!(
        tried.waited >= Duration::from_secs(30) && tried.waited < Duration::from_secs(31),
        "{:?}",
        tried.waited
    );
}

#[tokio::test]
async fn a_reset_that_is_far_is_for_the_caller_to_store() {
    let tried = tried("claude", ScriptedAgent::new().then(rate_limited(61)), |_| {}).await;
    let until = Some(START.plus(Duration::from_secs(61)));
    assert_eq!(tried.report.verdict.outcome, Outcome::RateLimited { until });
    assert_eq!((tried.report.tries, tried.waited), (1, Duration::ZERO));
}

#[tokio::test]
async fn a_run_that_changed_the_tree_goes_on_in_its_session() {
    let first = overloaded().git(one_commit("a", "b")).session("s1").cost(0.5).turns(3);
    let second = ScriptedRun::done("ok").git(one_commit("b", "c")).session("s1").cost(0.75).turns(2);
    let tried = tried("claude", ScriptedAgent::new().then(first).then(second), |_| {}).await;
    assert_eq!(tried.calls[1].resume.as_deref(), Some("s1"));
    assert_eq!(tried.calls[1].prompt, RESUMED_PROMPT);
    let wire = &tried.report.evidence.wire;
    assert_eq!(
        (wire.cost_usd, wire.turns),
        (Some(0.75), Some(5)),
        "claude tells the cost of the whole session"
    );
    let git = tried.report.evidence.git.unwrap();
    assert_eq!((git.head_before, git.head_after), (Some(oid("a")), Some(oid("c"))));
    assert_eq!((git.commits.len(), git.files_changed.len()), (2, 2));
}

#[tokio::test]
async fn an_agent_without_sessions_is_told_that_its_work_is_there() {
    let first = overloaded().git(one_commit("a", "b")).session("s1");
    let second = ScriptedRun::done("ok").git(GitFacts::default());
    let tried = tried("command", ScriptedAgent::new().then(first).then(second), |_| {}).await;
    assert_eq!(tried.calls[1].resume, None);
    assert_eq!(
        tried.calls[1].prompt,
        "An earlier try of this very run was cut off (overloaded). Its work is in the working directory, committed \
         or not: look at it first (`git status`, `git log`) and continue it, do not begin anew.\n\nAdd a greeting."
    );
    assert_eq!(
        tried.report.verdict.outcome,
        Outcome::Done,
        "the first try's commit counts as a change of the run"
    );
}

#[tokio::test]
async fn work_that_nobody_looked_for_is_taken_to_be_there() {
    let first = ScriptedRun::error(WireErrorKind::Unreachable, "refused");
    let tried = tried("gemini", ScriptedAgent::new().then(first).then(ScriptedRun::done("ok")), |_| {}).await;
    assert!(tried.calls[1].prompt.starts_with("An earlier try of this very run was cut off (unreachable)."));
}

#[tokio::test]
async fn tries_in_sessions_of_their_own_are_added_up() {
    let tokens = Tokens { input: 10, cached: 1, output: 5 };
    let first = overloaded().session("s1").cost(0.5).tokens(tokens);
    let second = ScriptedRun::done("ok").session("s2").cost(0.25).tokens(tokens).task_done("t1");
    let tried =
        tried("claude", ScriptedAgent::new().then(first.progress("began")).then(second), |_| {}).await;
    let wire = tried.report.evidence.wire;
    assert_eq!(wire.cost_usd, Some(0.75));
    assert_eq!(wire.tokens, Some(Tokens { input: 20, cached: 2, output: 10 }));
    assert_eq!((tried.report.progress.len(), tried.report.tasks.len()), (1, 1));
}

#[tokio::test]
async fn a_budget_or_time_that_is_used_up_leaves_no_room_for_another_try() {
    let agent = ScriptedAgent::new().then(overloaded().cost(1.0));
    let tried_ = tried("claude", agent, |request| request.budget.usd = Some(1.0)).await;
    assert_eq!(tried_.report.verdict.outcome, Outcome::Overloaded);
    let notice = Notice::NotRetried { outcome: OutcomeName::Overloaded, error: None };
    assert_eq!(tried_.report.warnings, [notice]);

    let agent = ScriptedAgent::new().then(overloaded());
    let tried_ = tried("claude", agent, |request| {
        request.timeout = Some(Duration::from_millis(900));
    })
    .await;
    assert_eq!(tried_.report.tries, 1);

    let agent = ScriptedAgent::new().then(overloaded().cost(0.25)).then(ScriptedRun::done("ok"));
    let tried_ = tried("claude", agent, |request| {
        request.budget.usd = Some(1.0);
        request.timeout = Some(Duration::from_mins(1));
    })
    .await;
    assert_eq!(tried_.calls[1].budget.usd, Some(0.75));
    assert_eq!(tried_.calls[1].timeout, Some(Duration::from_mins(1).saturating_sub(tried_.waited)));
}

#[tokio::test]
async fn each_try_has_a_directory_of_its_own_and_the_last_result_counts() {
    let writes = |text: &'static str| {
        move |request: &RunRequest| {
            fs_err::write(request.run_dir.join("result.json"), text).unwrap();
            fs_err::write(request.run_dir.join("stdout.log"), text).unwrap();
        }
    };
    let agent = ScriptedAgent::new()
        .then(overloaded().effect(writes("first")))
        .then(ScriptedRun::done("ok").effect(writes("second")));
    let tried = tried("claude", agent, |_| {}).await;
    let read = |path: &str| fs_err::read_to_string(tried.calls[0].run_dir.join(path)).unwrap();
    assert_eq!(tried.calls[1].run_dir, tried.calls[0].run_dir.join("try-2"));
    assert_eq!((read("stdout.log"), read("try-2/stdout.log")), ("first".to_owned(), "second".to_owned()));
    assert_eq!(read("result.json"), "second");
}

#[tokio::test]
async fn a_result_of_an_earlier_try_is_not_taken_for_the_last_ones() {
    let first =
        overloaded().effect(|request| fs_err::write(request.run_dir.join("result.json"), "{}").unwrap());
    let tried = tried("claude", ScriptedAgent::new().then(first).then(ScriptedRun::done("ok")), |_| {}).await;
    assert!(!tried.calls[0].run_dir.join("result.json").exists());
}

/// A clock on which a wait never ends.
struct Stopped;

#[async_trait]
impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        START
    }
    async fn sleep_until(&self, _: Timestamp) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test]
async fn whoever_cancels_does_not_wait_for_the_next_try() {
    let dir = tempfile::tempdir().unwrap();
    let agent = Arc::new(ScriptedAgent::new().then(overloaded()));
    let retrying = Retrying::new(Arc::clone(&agent), Arc::new(Stopped), 7);
    let cancel = CancellationToken::new();
    let watch: Watch = {
        let cancel = cancel.clone();
        Arc::new(move |activity| {
            if matches!(activity, Activity::Retrying { .. }) {
                cancel.cancel();
            }
        })
    };
    let report = retrying.run(request(&dir), watch, cancel).await;
    assert_eq!(report.verdict.outcome, Outcome::Cancelled);
    assert_eq!(report.verdict, judge(&report.evidence));
    agent.assert_call_count(1);
}

#[tokio::test]
async fn whoever_adopts_a_later_try_knows_of_the_earlier_ones() {
    let agent = ScriptedAgent::new().then(overloaded()).then(ScriptedRun::done("ok"));
    let socket = Utf8PathBuf::from("/state/shims/run1");
    let tried = tried("claude", agent, |request| {
        request.rendezvous = Some(crate::Rendezvous::new(socket, "memo".into()));
    })
    .await;
    let [first, second] = tried.calls.as_slice() else { panic!("{:?}", tried.calls) };
    assert_eq!(first.rendezvous.as_ref().unwrap().earlier, None);
    let rendezvous = second.rendezvous.as_ref().unwrap();
    assert_eq!(rendezvous.memo, "memo");
    let earlier = rendezvous.earlier.as_ref().unwrap();
    assert_eq!((&earlier.request, earlier.began, earlier.past.tries), (first, START, 1));
    assert_eq!(earlier.past.outcome(), &Outcome::Overloaded);
    // As its supervisor keeps it.
    let kept = serde_json::to_string(second).unwrap();
    assert_eq!(&serde_json::from_str::<RunRequest>(&kept).unwrap(), second);
}
