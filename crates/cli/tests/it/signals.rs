//! Ctrl-C and polite kills: nothing is lost, and nothing is left running.

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::env::{TestEnv, WAITS};
use crate::running::wait_until;

fn a_waiting_agent() -> TestEnv {
    let script = format!("run: [{{ {WAITS} }}, {{ task_done: current }}, {{ say: done }}]");
    TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(&script)
}

#[test]
fn ctrl_c_once_finishes_the_iteration() {
    let env = a_waiting_agent();
    let run = env.start(&["run"]);
    env.until_the_agent_waits();
    run.signal(Signal::INT);
    run.until_it_says("the loop ends after this iteration");
    env.let_the_agent_go_on();
    assert_snapshot!(run.finish(), @"

    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  done    1         Say hello

    1 iteration in [TIME]: 1 done, 1 open, cost $0.00, tokens 0 in, 0 out
    stopped on request; nothing is lost
    next: rehearsal run greet
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    1/10 [TASK-1] Say hello
    the loop ends after this iteration; Ctrl-C again stops the agent now
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
        note: no tests were found, so nothing was tested: set `testing.command`
        [TASK-1] Say hello is now done
    [exit 130]
    ");
    assert_eq!(env.task_now(1)["status"], "done");
    assert_eq!(env.task_now(2)["status"], "todo");
}

#[test]
fn ctrl_c_twice_stops_the_agent_and_costs_nothing() {
    let env = a_waiting_agent();
    let run = env.start(&["run"]);
    env.until_the_agent_waits();
    run.signal(Signal::INT);
    run.until_it_says("the loop ends after this iteration");
    run.signal(Signal::INT);
    // A child that was just being started may outlive its parent for a moment, and is told of then.
    let said = run.finish().to_string();
    let said: Vec<&str> = said.lines().filter(|line| !line.contains("note: ended processes")).collect();
    assert_snapshot!(said.join("\n"), @r"
    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  todo    0         Say hello

    1 iteration in [TIME]: 0 done, 2 open, cost unknown, tokens unknown
    stopped on request; nothing is lost
    next: rehearsal run greet
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    1/10 [TASK-1] Say hello
    the loop ends after this iteration; Ctrl-C again stops the agent now
        cancelled in [TIME], 0 commits, 0 changed files, cost unknown
    [exit 130]
    ");
    assert_eq!(env.outcomes(), ["cancelled"]);
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
    nothing_is_left(&env);
    // And it goes on where it was.
    env.let_the_agent_go_on();
    env.run(&["run"]).ends_with(0).says("all tasks are done");
}

#[test]
fn a_polite_kill_stops_the_agent_at_once() {
    let env = a_waiting_agent();
    let run = env.start(&["run"]);
    env.until_the_agent_waits();
    run.signal(Signal::TERM);
    run.finish().ends_with(143).says("stopped on request; nothing is lost");
    assert_eq!(env.task_now(1)["status"], "todo");
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
    nothing_is_left(&env);
}

#[test]
fn when_the_program_is_killed_its_agent_goes_with_it_and_the_next_run_puts_things_in_order() {
    let env = a_waiting_agent();
    let run = env.start(&["run"]);
    env.until_the_agent_waits();
    run.signal(Signal::KILL);
    run.finish().ends_with(-9);
    nothing_is_left(&env);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @r"
    [TASK-1]  Say hello is working
    - run [RUN-01] has worked on it for [TIME]
    - but no loop is running here: its worker has died
    next: rehearsal run greet
    ");
    assert_snapshot!(env.run(&["status"]), @"
    run [RUN-01] on [TASK-1] Say hello (implementer) was started [TIME] ago and killed; `rehearsal run greet` continues

    SESSION  OPEN  DONE  TASKS
    greet    2     0     1 todo, 1 working
    ");
    env.let_the_agent_go_on();
    env.run(&["run"]).ends_with(0).says("was left by a dead worker: cancelled").says("all tasks are done");
    assert_eq!(env.task_now(1)["task"]["attempts"], 1);
}

#[test]
fn a_stored_wait_can_be_interrupted() {
    let script = "runs: [[{ rate_limit: { retry_after: 2h } }]]";
    let env = TestEnv::new().session("greet").task("Say hello").agent_script_as("codex", script);
    let run = env.start(&["run"]);
    run.until_it_says("waiting: rate_limited, going on in");
    run.signal(Signal::INT);
    run.finish().ends_with(130).says("stopped on request");
    assert_eq!(env.task_now(1)["status"], "waiting");
}

fn nothing_is_left(env: &TestEnv) {
    let pid = env.read(env.scratch.join("agent/pid"));
    let process = format!("/proc/{}", pid.trim());
    wait_until("the end of the agent", || !std::path::Path::new(&process).exists());
}
