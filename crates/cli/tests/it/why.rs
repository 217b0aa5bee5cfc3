//! `why TASK` always has an answer.

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn a_task_that_is_ready_waits_for_a_loop() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye");
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @r"
    [TASK-1]  Say hello is todo
    - it is ready, and no loop is running
    next: rehearsal run greet
    ");
    assert_snapshot!(env.run(&["why", &env.task_id(2)]), @r"
    [TASK-2]  Say goodbye is todo
    - it is ready, and [TASK-1] (Say hello) comes first
    - it is ready, and no loop is running
    next: rehearsal run greet
    ");
}

#[test]
fn a_task_that_depends_on_another_names_it() {
    let env = TestEnv::new().session("greet").task("Say hello");
    let first = env.task_id(1);
    let env = env.task_with("Say goodbye", &["--after", &first]);
    assert_snapshot!(env.run(&["why", &env.task_id(2)]), @r"
    [TASK-2]  Say goodbye is todo
    - it depends on [TASK-1] (Say hello), which is todo
    next: rehearsal why [TASK-1]
    ");
}

#[test]
fn a_blocked_task_names_what_it_needs() {
    let env = TestEnv::new().session("greet").task("Say hello");
    env.must(&["task", "block", &env.task_id(1), "--reason", "which language?"]);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is blocked
    - which language?
    - it waits for a human
    - blocked by [PERSON] [TIME] ago
    next: rehearsal task unblock [TASK-1]
    ");
}

#[test]
fn a_task_that_is_over_says_how() {
    let env = TestEnv::new().session("greet").task("Done").task("Cancelled");
    env.must(&["task", "done", &env.task_id(1)]);
    env.must(&["task", "cancel", &env.task_id(2)]);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Done is done
    - it is done
    - finished by [PERSON] [TIME] ago
    ");
    assert_snapshot!(env.run(&["why", &env.task_id(2)]), @"
    [TASK-2]  Cancelled is cancelled
    - it was cancelled
    - cancelled by [PERSON] [TIME] ago
    next: rehearsal task retry [TASK-2]
    ");
}

#[test]
fn a_task_that_failed_names_its_runs() {
    let env = TestEnv::new()
        .session("greet")
        .task("Say hello")
        .agent_script("run: [{ result: { outcome: failure, reason: it cannot be done } }]");
    env.run(&["run", "--max-failures", "9"]).ends_with(6);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is failed
    - it failed after 4 attempts; its last run ended with failed: it cannot be done
    next: rehearsal runs list --task [TASK-1]
    next: rehearsal task retry [TASK-1]
    ");
}

#[test]
fn a_key_that_is_missing_is_the_systems_fault() {
    let env =
        TestEnv::new().session("greet").task("Say hello").agent_script("run: [{ error: { kind: auth } }]");
    env.run(&["run"]).ends_with(6);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is waiting
    - its wait is over (auth_failed: Invalid API key · Fix external API key)
    - it is ready, and no loop is running
    next: rehearsal run greet
    ");
}
