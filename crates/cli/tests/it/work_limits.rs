//! How far a worker goes: its session, its money, its patience with a store, its templates.

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::work::a_team;

/// Waits for a day before it ends.
const TOMORROW: &str = "\
name: tomorrow
start: todo
states:
  todo: { agent: implementer, on: { done: sleep }, otherwise: failed }
  sleep: { wait: time, for: 24h, on: { done: done }, otherwise: failed }
  done: { end: success }
  failed: { end: failure }
";

#[test]
fn a_worker_of_one_session_does_not_wait_for_the_waits_of_others() {
    let env = a_team();
    env.file(".rehearsal/flows/tomorrow.yaml", TOMORROW).commit("A flow that waits");
    let env = env
        .session("later")
        .task_of("tomorrow", "Say hello tomorrow", &["--session", "later"])
        .session("now")
        .task_of("pull-request", "Say hello", &["--session", "now"]);
    let later = env.start(&["work", "--session", "later"]);
    later.until_it_says("todo → sleep");
    later.signal(Signal::TERM);
    later.finish().ends_with(143);
    env.run(&["work", "--session", "now", "--until-idle"]).ends_with(0).says("1 task done");
    assert_eq!(env.task_now(1)["status"], "waiting");
    // Whoever is not for one session alone waits.
    let all = env.start(&["work", "--until-idle"]);
    all.until_it_says("waiting; something may go on in");
}

#[test]
fn nothing_more_is_begun_when_the_money_is_spent() {
    let env = a_team().task_of("pull-request", "Say hello", &[]).task_of("pull-request", "Say goodbye", &[]);
    assert_snapshot!(env.run(&["work", "--workers", "1", "--until-idle", "--max-cost", "0.4"]), @"

    TASK      STATUS       BRANCH              PULL REQUEST  MERGED  RUNS  COST   TITLE
    [TASK-1]  provisional  rehearsal/[TASK-1]  #1            -       1     $0.50  Say hello
    [TASK-1]: it is ready, and no worker is running here

    1 run in [TIME], cost $0.50
    0 done; nothing more is begun: that was all that it may cost
    next: rehearsal work
    [stderr]
    work at most 1 task at once
    [TASK-1]  incoming: implementer (run [RUN-01])  Say hello
    [TASK-1]  done in [TIME], 1 commit, cost $0.50
    [TASK-1]  commit_leftovers: done
    [TASK-1]  rebase: done
    [TASK-1]  run_tests: done
    [TASK-1]  push_branch: done
    [TASK-1]  create_pr: done
    [TASK-1]  incoming → provisional
    [exit 8]
    ");
    assert_eq!(env.outcomes(), ["done"]);
    // With more of it, it goes on where it stopped.
    env.run(&["work", "--until-idle", "--max-cost", "20"]).ends_with(0);
    assert_eq!(env.task_now(2)["status"], "done");
    assert_snapshot!(env.run(&["work", "--max-cost=-1"]), @"
    [stderr]
    error: invalid value '-1' for '--max-cost <USD>': it must be a number, and not negative

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn a_run_that_does_not_tell_its_cost_is_told_when_there_is_a_limit() {
    let env = a_team()
        .agent_script_as("command", "run: [{ run: { command: echo hi >> hello.txt, status: 0 } }, { commit: { message: Say hi } }, { say: done }]")
        .task_of("pull-request", "Say hello", &[]);
    env.run(&["work", "--until-idle", "--max-cost", "20"])
        .ends_with(0)
        .says("did not report its cost: the limit of $20.00 cannot include it");
}

#[test]
fn a_broken_template_of_a_role_is_told_before_an_agent_runs() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    env.file(".rehearsal/prompts/gatekeeper.md", "Look at it:\n{{ task.titel }}\n");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: the prompt template cannot be used: undefined value: `task.titel` is undefined
      --> .rehearsal/prompts/gatekeeper.md:2
    hint: mend it, or remove it: then the shipped one is used
    [exit 2]
    ");
    env.file(".rehearsal/prompts/gatekeeper.md", "Look at it: {% if task.title %}\n");
    env.run(&["work", "--until-idle"]).ends_with(2).says("--> .rehearsal/prompts/gatekeeper.md:");
    assert_eq!(env.runs(), Vec::<String>::new());
    let all = "{{ session.name }} {{ session_criteria }} {{ task.body }} {{ feedback.text }} {{ pull_request }} {{ base_commit }} {{ test_command }}";
    env.file(".rehearsal/prompts/gatekeeper.md", format!("{{% if session %}}{all}{{% endif %}}"));
    env.run(&["work", "--until-idle"]).ends_with(0);
}

#[test]
fn a_worker_that_waits_for_its_server_can_be_stopped() {
    let env = a_team().var("REHEARSAL_STORE", "postgres://ada:secret@127.0.0.1:1/tasks");
    let working = env.start(&["work"]);
    working.until_it_says("retrying until it answers");
    working.signal(Signal::INT);
    let ended = working.finish().ends_with(130).says("the database cannot be reached");
    assert!(!ended.all().contains("secret"), "{ended}");
}

#[test]
fn what_only_a_person_can_help_with_is_named_and_is_no_success() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    let first = env.task_id(1);
    let env = env.task_of("pull-request", "Say it again", &["--after", &first]);
    env.must(&["task", "cancel", &first]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [TASK-2]: it depends on [TASK-1] (Say hello), which was cancelled

    0 done; nothing more can be done now: 1 open
    next: rehearsal why [TASK-1]
    [stderr]
    work at most 2 tasks at once
    [exit 7]
    ");
    // Whoever works for one agent leaves the rest to others.
    env.run(&["work", "--until-idle", "--agent", "gatekeeper"]).ends_with(0);
}

#[test]
fn a_task_that_has_cost_what_it_may_is_told_with_its_budget() {
    let env = a_team()
        .agent_script("run: [{ usage: { input: 1, output: 1, cost_usd: 2.5 } }, { result: { outcome: needs_continuation } }, { say: more }]")
        .task_of("pull-request", "Say hello", &["--max-cost", "0.50"]);
    env.run(&["work", "--until-idle"])
        .ends_with(8)
        .says("its runs cost $2.50, and may cost $0.50")
        .says("next: rehearsal task edit [TASK-1] --max-cost USD");
}
