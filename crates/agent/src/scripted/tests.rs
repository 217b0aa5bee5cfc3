use std::sync::atomic::{AtomicUsize, Ordering};

use camino::Utf8PathBuf;
use rehearsal_core::{
    Activity, Budget, Exit, GitFacts, ReportedDecision, ReportedTask, ResultFile, RunId, TaskId, Tokens,
    WireErrorKind,
};

use super::*;

fn request(prompt: &str) -> RunRequest {
    RunRequest {
        run: RunId::new("r1").unwrap(),
        task: TaskId::new("t1").unwrap(),
        prompt: prompt.into(),
        working_dir: Utf8PathBuf::from("."),
        run_dir: Utf8PathBuf::from("."),
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

async fn ask(agent: &ScriptedAgent, prompt: &str) -> RunReport {
    agent.run(request(prompt), Arc::new(|_| {}), CancellationToken::new()).await
}

fn panic_of(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(check).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[tokio::test]
async fn scripted_runs_are_played_in_order_and_judged_like_any_other() {
    let agent = ScriptedAgent::new()
        .then(
            ScriptedRun::done("one <promise>CONTINUE: two left</promise>")
                .task_done("t1")
                .progress("one is done"),
        )
        .then(ScriptedRun::done("idle").git(GitFacts::default()))
        .then(ScriptedRun::crashes(Exit::Signal(9)))
        .then(ScriptedRun::error(WireErrorKind::Auth, "no key"))
        .then(ScriptedRun::done("fine").outcome(Outcome::EmptyOutput));
    let first = ask(&agent, "one").await;
    assert_eq!(first.verdict.outcome, Outcome::Continue { message: "two left".into() });
    assert_eq!(first.promise, Some(Promise::Continue("two left".into())));
    assert_eq!(first.tasks, [ReportedTask::Done { id: "t1".into(), reason: Some("as scripted".into()) }]);
    assert_eq!(first.progress, ["one is done"]);
    assert_eq!(ask(&agent, "two").await.verdict.outcome, Outcome::NoChanges);
    assert_eq!(ask(&agent, "three").await.verdict.outcome, Outcome::crashed(Exit::Signal(9)));
    assert_eq!(ask(&agent, "four").await.verdict.outcome, Outcome::AuthFailed { reason: "no key".into() });
    assert_eq!(ask(&agent, "five").await.verdict.outcome, Outcome::EmptyOutput);
    agent.assert_call_count(5);
    agent.assert_all_played();
}

#[tokio::test]
async fn asked_for_more_than_it_was_told_it_says_so() {
    let agent = ScriptedAgent::new().then(ScriptedRun::done("one"));
    ask(&agent, "first").await;
    let report = ask(&agent, "\nDo the second thing.\nNow.").await;
    let reason = "1 runs were scripted, and this is call 2, which asks: Do the second thing.".to_owned();
    assert_eq!(report.verdict.outcome, Outcome::Failed { reason });
}

#[tokio::test]
async fn an_empty_script_may_stand_for_all_is_complete() {
    let agent = ScriptedAgent::new().when_empty(WhenEmpty::Complete);
    let report = ask(&agent, "go").await;
    assert_eq!((report.verdict.outcome, report.promise), (Outcome::Done, Some(Promise::Complete)));
}

#[tokio::test]
async fn a_handler_answers_what_it_is_asked() {
    let agent = ScriptedAgent::new().with_handler(|request| {
        let decision =
            if request.prompt.contains("bad") { ReportedDecision::Reject } else { ReportedDecision::Approve };
        let comment = Some("see line 4".to_owned());
        ScriptedRun::done("").result_file(ResultFile {
            decision: Some(decision),
            comment,
            ..ResultFile::default()
        })
    });
    assert_eq!(ask(&agent, "good").await.verdict.outcome, Outcome::Approved);
    let rejected = Outcome::Rejected { comment: "see line 4".into() };
    assert_eq!(ask(&agent, "bad").await.verdict.outcome, rejected);
}

#[tokio::test]
async fn effects_and_activities_happen_when_it_runs() {
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&effects);
    let tokens = Tokens { input: 3, cached: 0, output: 2 };
    let called = Activity::ToolCalled { tool: "Write".into(), detail: "a.txt".into(), arguments: None };
    let run =
        ScriptedRun::done("bye").session("s1").activity(called.clone()).tokens(tokens).cost(0.5).effect(
            move |request| {
                assert!(counted.fetch_add(1, Ordering::SeqCst) == 0 && request.prompt == "go");
            },
        );
    let agent = ScriptedAgent::new().then(run);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watch: Watch = {
        let seen = Arc::clone(&seen);
        Arc::new(move |activity| seen.lock().unwrap().push(activity))
    };
    agent.run(request("go"), watch, CancellationToken::new()).await;
    assert_eq!(effects.load(Ordering::SeqCst), 1);
    let expected = [
        Activity::Started { session_id: Some("s1".into()), model: None },
        called,
        Activity::Text { text: "bye".into() },
        Activity::Usage { tokens, cost_usd: Some(0.5) },
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_run_that_is_cancelled_before_it_starts_uses_up_nothing() {
    let agent = ScriptedAgent::new().then(ScriptedRun::done("one"));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let report = agent.run(request("go"), Arc::new(|_| {}), cancel).await;
    assert_eq!(report.verdict.outcome, Outcome::Cancelled);
    assert_eq!(ask(&agent, "again").await.verdict.outcome, Outcome::Done);
    agent.assert_call_count(2);
}

#[tokio::test]
async fn a_run_that_never_ends_is_ended_by_cancelling_it() {
    let agent = ScriptedAgent::new().then(ScriptedRun::never_ends());
    let cancel = CancellationToken::new();
    let run = agent.run(request("go"), Arc::new(|_| {}), cancel.clone());
    let (report, ()) = tokio::join!(run, async { cancel.cancel() });
    assert_eq!(report.verdict.outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn a_failed_assertion_shows_what_came() {
    let agent = ScriptedAgent::new().then(ScriptedRun::done("one")).then(ScriptedRun::done("two"));
    ask(&agent, "# Task\n\nAdd a greeting to the page.\nKeep it short.").await;
    agent.assert_prompt_contains(0, "Add a greeting");
    let agent = std::panic::AssertUnwindSafe(&agent);
    assert_eq!(
        panic_of(|| agent.assert_prompt_contains(0, "a greeting to the moon")),
        "the prompt of call 0 does not contain \"a greeting to the moon\"; the nearest part of it is\n    \
         1 | # Task\n    2 | \n    3 | Add a greeting to the page.\n    4 | Keep it short.\n"
    );
    assert_eq!(
        panic_of(|| agent.assert_call_count(2)),
        "expected 2 calls of the scripted agent, but there were 1\n  call 0: # Task"
    );
    assert_eq!(
        panic_of(|| agent.assert_prompt_contains(3, "x")),
        "there is no call 3 of the scripted agent: there were 1 calls"
    );
    assert_eq!(panic_of(|| agent.assert_all_played()), "only 1 of 2 scripted runs were played");
}

#[tokio::test]
async fn reset_begins_the_script_again() {
    let agent = ScriptedAgent::new().then(ScriptedRun::done("one"));
    ask(&agent, "a").await;
    agent.reset();
    agent.assert_call_count(0);
    assert_eq!(ask(&agent, "b").await.evidence.wire.final_text, "one");
}
