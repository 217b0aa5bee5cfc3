//! A worker that is stopped, politely or not: nothing is lost, and nothing is left running.

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::env::TestEnv;
use crate::running::wait_until;
use crate::work::a_team;

fn a_waiting_team() -> TestEnv {
    let env = a_team();
    let there = env.scratch.join("agent");
    let script = format!(
        "run: [{{ run: {{ command: echo hi >> hello.txt, status: 0 }} }}, {{ commit: {{ message: Say hi }} }}, {{ run: {{ command: 'echo $$ > {there}/pid; touch {there}/ready; until [ -e {there}/go ]; do sleep 0.02; done', status: 0 }} }}, {{ say: done }}]"
    );
    env.agent_script(&script).task_of("pull-request", "Say hello", &[])
}

#[test]
fn a_polite_kill_drains_the_worker() {
    let env = a_waiting_team();
    let work = env.start(&["work"]);
    env.until_the_agent_waits();
    work.signal(Signal::TERM);
    work.until_it_says("nothing new is begun");
    env.let_the_agent_go_on();
    work.finish().ends_with(143).says("stopped on request; nothing is lost").says("incoming → provisional");
    assert_eq!(env.task_now(1)["task"]["state"], "provisional");
    env.run(&["work", "--until-idle"]).ends_with(0);
}

#[test]
fn ctrl_c_twice_gives_the_task_back_without_blame() {
    let env = a_waiting_team();
    let work = env.start(&["work"]);
    env.until_the_agent_waits();
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is working
    - implementer has worked on it for [TIME] (run [RUN-01], worker [UUID])
    - its worker holds it for another [TIME], and longer with each sign of life
    next: rehearsal logs [RUN-01] --follow
    ");
    assert_snapshot!(env.run(&["status"]), @"
    [TASK-1] Say hello: implementer in incoming (run [RUN-01], for [TIME], lease ends in [TIME])

    SESSION  OPEN  DONE  TASKS
    -        1     0     1 working
    ");
    work.signal(Signal::INT);
    work.until_it_says("nothing new is begun");
    work.signal(Signal::INT);
    work.finish().ends_with(130);
    assert_eq!(env.task_now(1)["task"]["state"], "incoming");
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
    until_it_is_gone(&the_agent(&env));
    env.let_the_agent_go_on();
    env.run(&["work", "--until-idle"]).ends_with(0);
}

#[test]
fn the_agent_of_a_killed_worker_goes_on_with_the_next_one() {
    let env = a_waiting_team();
    let work = env.start(&["work"]);
    env.until_the_agent_waits();
    work.signal(Signal::KILL);
    work.finish().ends_with(-9);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is working
    - implementer has worked on it for [TIME] (run [RUN-01], worker [UUID])
    - but that worker has died: the next one goes on with its agent
    next: rehearsal work
    ");
    let work = env.start(&["work", "--until-idle"]);
    work.until_it_says("goes on (run ");
    env.let_the_agent_go_on();
    let done = work.finish().ends_with(0).says("1 task done");
    assert_snapshot!(done, @"

    TASK      STATUS  BRANCH              PULL REQUEST  MERGED      RUNS  COST   TITLE
    [TASK-1]  done    rehearsal/[TASK-1]  #1            [COMMIT10]  2     $0.00  Say hello

    2 runs in [TIME], cost $0.00
    1 task done
    next: git pull --no-rebase --no-edit [SCRATCH]/home/.local/share/rehearsal/remotes/repo-[HASH].git main
    [stderr]
    work at most 2 tasks at once
    [TASK-1]  incoming: implementer goes on (run [RUN-01]), though its worker died  Say hello
    [TASK-1]  done in [TIME], 1 commit, cost $0.00
    [TASK-1]  commit_leftovers: done
    [TASK-1]  rebase: done
    [TASK-1]  run_tests: done
    [TASK-1]  push_branch: done
    [TASK-1]  create_pr: done
    [TASK-1]  incoming → provisional
    [TASK-1]  provisional: gatekeeper (run [RUN-02])  Say hello
    [TASK-1]  approved in [TIME], 0 commits, cost $0.00
    [TASK-1]  check_conflicts: done
    [TASK-1]  merge_pr: done
    [TASK-1]  provisional → done
    ");
    assert_eq!(env.outcomes(), ["done", "approved"], "one run each, as if nothing had happened");
    env.run(&["doctor", "--store"]).ends_with(0);
}

#[test]
fn what_a_killed_worker_left_is_put_in_order_by_the_next_one() {
    let env = a_waiting_team();
    let work = env.start(&["work"]);
    env.until_the_agent_waits();
    work.signal(Signal::KILL);
    work.finish().ends_with(-9);
    // Its supervisor is killed, too, and so there is nobody to go on with.
    kill_the_supervisor(&env);
    let left = the_agent(&env);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is working
    - implementer has worked on it for [TIME] (run [RUN-01], worker [UUID])
    - but that worker has died: the next one puts it in order
    next: rehearsal work
    ");
    let next = env.start(&["work", "--until-idle"]);
    next.until_it_says("was left by a dead worker");
    until_it_is_gone(&left);
    env.let_the_agent_go_on();
    next.finish().ends_with(0).says("were still alive and were ended").says("1 task done");
    env.run(&["doctor", "--store"]).ends_with(0);
}

/// A flow whose step waits for a word, in a shell of its own, and has printed a lot before.
fn a_waiting_step() -> TestEnv {
    let env = a_team();
    let there = env.scratch.join("agent");
    let waits = format!(
        "head -c 3000000 /dev/zero | tr \\0 x; echo last words; (echo $$ > {there}/pid; touch {there}/ready; until [ -e {there}/go ]; do sleep 0.02; done); exit 3"
    );
    let flow = format!(
        "name: waits\nstart: todo\nstates:\n  todo:\n    agent: implementer\n    steps: [{{ command: '{waits}' }}]\n    on: {{ done: done, command_failed: failed, crashed: failed, needs_continuation: failed, failed: failed, blocked: failed }}\n    otherwise: failed\n  done: {{ end: success }}\n  failed: {{ end: failure }}\n"
    );
    env.file(".rehearsal/flows/waits.yaml", flow);
    env.task_of("waits", "Say hello", &[])
}

#[test]
fn a_command_ends_with_the_worker_that_is_killed_and_is_run_again_by_the_next_one() {
    let env = a_waiting_step();
    let work = env.start(&["work"]);
    env.until_the_agent_waits();
    let left = the_agent(&env);
    work.signal(Signal::KILL);
    work.finish().ends_with(-9);
    until_it_is_gone(&left);
    env.let_the_agent_go_on();
    env.run(&["work", "--until-idle"]).ends_with(6);
    let why = env.run(&["why", &env.task_id(1)]);
    assert!(why.to_string().contains("last words"), "{why}");
}

#[test]
fn a_command_ends_when_its_worker_is_stopped() {
    let env = a_waiting_step();
    let work = env.start(&["work"]);
    env.until_the_agent_waits();
    work.signal(Signal::INT);
    work.until_it_says("nothing new is begun");
    work.signal(Signal::INT);
    work.finish().ends_with(130);
    until_it_is_gone(&the_agent(&env));
    assert_eq!(env.task_now(1)["task"]["state"], "todo");
}

/// Ends the parent of the agent that waits, which is the parent of the shell that it waits in.
fn kill_the_supervisor(env: &TestEnv) {
    let parent = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().to_owned()
    };
    let supervisor = parent(&parent(&the_agent(env))).parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
}

/// The shell in which the agent waits that began last.
fn the_agent(env: &TestEnv) -> String {
    std::fs::read_to_string(env.scratch.join("agent/pid")).unwrap().trim().to_owned()
}

fn until_it_is_gone(process: &str) {
    let process = format!("/proc/{process}");
    wait_until("the end of the agent", || !std::path::Path::new(&process).exists());
}
