//! People and workers: decisions, sessions of their own, and `why` on the way.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::work::a_team;

#[test]
fn a_person_decides_what_the_flow_asks_a_person() {
    let env = a_team().task_of("approve", "Say hello", &[]);
    let id = env.task_id(1);
    assert_snapshot!(env.run(&["approve", &id]), @"
    [stderr]
    error: task `[TASK-1]` does not wait for a decision: it is incoming
    hint: `rehearsal why [TASK-1]` says what it waits for
    [exit 2]
    ");
    env.run(&["work", "--until-idle"]).ends_with(7).says("next: rehearsal approve [TASK-1]");
    assert_snapshot!(env.run(&["why", &id]), @"
    [TASK-1]  Say hello is blocked
    - it waits for your decision
    next: rehearsal approve [TASK-1]
    next: rehearsal reject [TASK-1] --comment WHAT-HAS-TO-CHANGE
    ");
    assert_snapshot!(env.run(&["reject", &id, "--comment", " "]), @"
    [stderr]
    error: a rejection needs a comment: it is all that the next run is told
    [exit 2]
    ");
    assert_snapshot!(env.run(&["reject", &id, "--comment", "say it louder"]), @"[TASK-1] is rejected: Say hello");
    env.run(&["work", "--until-idle"]).ends_with(7);
    assert!(env.prompt(2).contains("say it louder"), "{}", env.prompt(2));
    assert_snapshot!(env.run(&["approve", &id, "--comment", "fine"]), @"[TASK-1] is approved: Say hello");
    env.run(&["work", "--until-idle"]).ends_with(0).says("1 task done");
    assert_eq!(env.task_now(1)["task"]["rejections"], 1);
}

#[test]
fn an_agent_reports_from_inside_its_worktree() {
    let env = a_team()
        .agent_script("run: [{ run: { command: 'rehearsal task show $REHEARSAL_TASK_ID && rehearsal task block $REHEARSAL_TASK_ID --reason which-language', status: 0 } }, { say: asked }]")
        .task_of("pull-request", "Say hello", &[]);
    env.run(&["work", "--until-idle"]).ends_with(7);
    assert_eq!(env.task_now(1)["status"], "blocked");
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is blocked
    - which-language
    - it waits for a human
    next: rehearsal task unblock [TASK-1]
    ");
}

#[test]
fn a_task_that_waits_for_a_worker_says_which_command_helps() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is incoming
    - it is ready, and no worker is running here
    next: rehearsal work
    ");
    assert_snapshot!(env.run(&["status"]), @"
    nothing is in work

    SESSION  OPEN  DONE  TASKS
    -        1     0     1 incoming
    ");
}

#[test]
fn what_goes_on_in_the_same_worktree_is_a_queue_of_its_own() {
    let env = a_team()
        .agent_script("run: [{ result: { outcome: needs_continuation } }, { say: more }]")
        .task_of("pull-request", "Say hello", &[]);
    env.run(&["work", "--once"]).ends_with(0);
    env.run(&["task", "list", "--status", "needs_continuation"]).ends_with(0).says("[TASK-1]");
    assert_snapshot!(env.run(&["status"]), @"
    nothing is in work

    SESSION  OPEN  DONE  TASKS
    -        1     0     1 needs_continuation

    cost so far $0.00
    ");
}

#[test]
fn an_agent_whose_task_is_cancelled_is_stopped_soon_and_its_run_is_over() {
    // With such a lease the heartbeat would take minutes to notice.
    let env = a_team().config("work: { lease: 30m }");
    let there = env.scratch.join("agent");
    let script = format!("run: [{{ run: {{ command: 'touch {there}/ready; sleep 600', status: 0 }} }}]");
    let env = env.agent_script(&script).task_of("pull-request", "Say hello", &[]);
    let work = env.start(&["work", "--until-idle"]);
    env.until_the_agent_waits();
    env.must(&["cancel", &env.task_id(1)]);
    work.finish().says("cancelled");
    assert_eq!(env.outcomes(), ["cancelled"]);
    env.run(&["runs", "list"]).never_says("running");
    env.run(&["doctor", "--store"]).ends_with(0);
}

#[test]
fn a_task_that_a_step_has_stopped_says_what_the_step_said() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    env.file("run-tests", "echo 'FAIL: it is too loud'; exit 1\n").commit("Another test");
    env.run(&["work", "--until-idle"]).ends_with(6);
    env.run(&["why", &env.task_id(1)])
        .says("it failed after 4 attempts; run_tests says: Framework: generic Status: FAILED (no tests ran)")
        .says("Error: FAIL: it is too loud");
}

#[test]
fn the_command_that_gets_the_work_can_be_pasted_also_after_the_user_committed() {
    let env = TestEnv::new()
        .agent_script("run: [{ write: { path: hello.txt, content: hi } }, { say: <promise>DONE</promise> }]")
        .config("testing: { command: 'true' }")
        .session("evening")
        .task_with("Say hello", &["--flow", "loop"]);
    let output = env.run(&["work", "--until-idle"]).ends_with(0);
    env.file("mine.txt", "mine").commit("Mine");
    paste_next(&env, &output.stdout);
    assert_eq!((env.read("hello.txt"), env.read("mine.txt")), ("hi".to_owned(), "mine".to_owned()));

    // From another branch, it goes to the base.
    let env = env
        .task("Say hello again")
        .agent_script("run: [{ write: { path: again.txt, content: hi } }, { say: <promise>DONE</promise> }]");
    env.git(&["checkout", "--quiet", "-b", "elsewhere"]);
    let output = env.run(&["work", "--until-idle"]).ends_with(0);
    paste_next(&env, &output.stdout);
    assert_eq!(env.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!(env.read("again.txt"), "hi");
}

#[test]
fn work_that_its_flow_leaves_in_the_worktree_is_named_with_the_command_that_gets_it() {
    let flow = "name: mine\nstart: todo\nstates:\n  todo:\n    agent: implementer\n    steps: [commit_leftovers]\n    on: { done: done }\n    otherwise: failed\n  done: { end: success }\n  failed: { end: failure }\n";
    let env = TestEnv::new()
        .agent_script("run: [{ write: { path: hello.txt, content: hi } }, { say: <promise>DONE</promise> }]");
    env.file(".rehearsal/flows/mine.yaml", flow).commit("A flow");
    let env = env.task_of("mine", "Say hello", &[]);
    let output =
        env.run(&["work", "--until-idle"]).ends_with(0).says("no branch does: its flow does not push");
    paste_next(&env, &output.stdout);
    assert_eq!(env.read("hello.txt"), "hi");
}

/// Runs the command that a summary ends with in a shell, as a person would.
fn paste_next(env: &TestEnv, stdout: &str) {
    let command = stdout.lines().find_map(|line| line.strip_prefix("next: ")).unwrap();
    let output = env.command("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}
