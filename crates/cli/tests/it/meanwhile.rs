//! What people do while a loop runs: look, edit, follow, and try to start another.

use insta::assert_snapshot;

use crate::env::{TestEnv, WAITS};

fn a_loop_that_waits() -> TestEnv {
    a_loop_whose_second_run_expects("goodbye")
}

fn a_loop_whose_second_run_expects(word: &str) -> TestEnv {
    let script = format!(
        "
        runs:
          - - say: I begin.
            - {WAITS}
            - tool: {{ name: Read, input: {{ file_path: README.md }}, output: hello }}
            - usage: {{ input: 1200, output: 340, cost_usd: 0.05 }}
            - task_done: current
            - say: The greeting is there.
          - - expect_prompt: {{ contains: {word} }}
            - task_done: current
        "
    );
    TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(&script)
}

#[test]
fn a_task_can_be_edited_and_the_next_iteration_knows() {
    let env = a_loop_whose_second_run_expects("farewell");
    let run = env.start(&["run"]);
    env.until_the_agent_waits();
    assert_snapshot!(env.run(&["task", "edit", &env.task_id(2), "--title", "Say farewell", "-c", "politely"]), @"[TASK-2] is changed: Say farewell");
    env.must(&["task", "edit", &env.task_id(1), "--priority", "low"]);
    env.let_the_agent_go_on();
    run.finish().ends_with(0).says("2/10 [TASK-2] Say farewell").says("all tasks are done");
    assert_eq!(env.task_now(1)["task"]["priority"], "low");
}

#[test]
fn a_task_that_is_worked_on_can_be_cancelled_and_stays_so() {
    let env = a_loop_that_waits();
    let run = env.start(&["run", "--iterations", "1"]);
    env.until_the_agent_waits();
    let cancelled = env.run(&["task", "cancel", &env.task_id(1)]);
    env.let_the_agent_go_on();
    let output = run.finish();
    assert_snapshot!(cancelled, @"
    [TASK-1] is cancelled: Say hello
    its run [RUN-01] counts no more: `rehearsal work` stops it, a loop lets it end
    ");
    assert_snapshot!(output, @r"
    TASK      STATUS     ATTEMPTS  TITLE
    [TASK-1]  cancelled  0         Say hello

    1 iteration in [TIME]: 0 done, 1 open, cost $0.05, tokens 1.2k in, 340 out
    the one iteration is used
    next: rehearsal run greet
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    1/1 [TASK-1] Say hello
        note: task `[TASK-1]` was taken from the run while it worked; what it reported on it does not count
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.05
    ");
    assert_eq!(env.task_now(1)["status"], "cancelled");
}

#[test]
fn two_loops_in_one_checkout_are_refused() {
    let env = a_loop_that_waits();
    let run = env.start(&["run"]);
    env.until_the_agent_waits();
    let second = env.run(&["run"]).ends_with(2);
    assert!(second.stderr.contains(&format!("(process {})", run.id())), "{second}");
    assert_snapshot!(second, @r"
    [stderr]
    error: another loop works in this checkout (process [PID])
    hint: `rehearsal status` shows what it does; wait for it, or stop it with Ctrl-C
    [exit 2]
    ");
    env.let_the_agent_go_on();
    run.finish().ends_with(0);
    assert_eq!(env.agent_calls(), 2);
}

#[test]
fn status_and_why_tell_what_is_going_on() {
    let env = a_loop_that_waits();
    let run = env.start(&["run"]);
    env.until_the_agent_waits();
    assert_snapshot!(env.run(&["status"]), @r"
    a loop is running (process [PID])
    run [RUN-01] on [TASK-1] Say hello (implementer, started [TIME] ago)

    SESSION  OPEN  DONE  TASKS
    greet    2     0     1 todo, 1 working
    ");
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @r"
    [TASK-1]  Say hello is working
    - run [RUN-01] has worked on it for [TIME]
    next: rehearsal logs [RUN-01] --follow
    ");
    assert_snapshot!(env.run(&["why", &env.task_id(2)]), @r"
    [TASK-2]  Say goodbye is todo
    - it is ready, and next
    ");
    assert_snapshot!(env.run(&["task", "show", &env.task_id(1)]), @r"
    [TASK-1]  Say hello
    working (run [RUN-01]), medium priority, 0 attempts
    session greet, flow loop, added [TIME] ago

    RUN       TASK      AGENT        OUTCOME  COMMITS  TOOK   COST  STARTED
    [RUN-01]  [TASK-1]  implementer  running  -        [TIME]  -     [TIME] ago
    ");
    env.let_the_agent_go_on();
    run.finish().ends_with(0);
    assert_snapshot!(env.run(&["status"]), @r"
    nothing is in work

    SESSION  OPEN  DONE  TASKS
    greet    0     2     2 done

    cost so far $0.05
    ");
}

#[test]
fn logs_are_followed_to_the_end_of_the_run() {
    let env = a_loop_that_waits();
    let run = env.start(&["run", "--iterations", "1"]);
    env.until_the_agent_waits();
    let id = env.runs()[0].clone();
    let logs = env.start(&["logs", &id, "--follow"]);
    logs.until_it_says("I begin.");
    env.let_the_agent_go_on();
    run.finish().ends_with(0);
    let followed = logs.finish();
    assert_snapshot!(followed, @"
    [CLOCK] started with claude-opus-5-5
    [CLOCK] I begin.
    [CLOCK] tokens 0 in, 1 out, cost unknown
    [CLOCK] Bash echo $$ > ../agent/pid; touch ../agent/ready; until [ -e ../agent/go ]; do sleep 0.02; done
    [CLOCK] Bash ok
    [CLOCK] Read README.md
    [CLOCK] tokens 0 in, 2 out, cost unknown
    [CLOCK] Read ok
    [CLOCK] Bash rehearsal task done [TASK-1]
    [CLOCK] tokens 0 in, 3 out, cost unknown
    [CLOCK] Bash ok
    [CLOCK] The greeting is there.
    [CLOCK] tokens 0 in, 4 out, cost unknown
    [CLOCK] tokens 1.2k in, 340 out, cost $0.05
    ");
    assert_eq!(env.run(&["logs", &id]).stdout, followed.stdout);
    assert!(env.run(&["logs", &id, "--raw"]).stdout.contains(r#""type":"result""#));
}

#[test]
fn a_watched_status_is_shown_again_when_something_changes() {
    let env = TestEnv::new().session("greet");
    let watch = env.start(&["status", "--watch", "--json"]);
    watch.until_it_says(r#""total":0"#);
    env.must(&["task", "add", "Say hello"]);
    watch.until_it_says(r#""total":1"#);
    watch.signal(rustix::process::Signal::INT);
    watch.finish().ends_with(0);
}

#[test]
fn events_come_as_json_lines_and_the_summary_is_the_last() {
    let env = a_loop_that_waits();
    env.let_the_agent_go_on();
    let output = env.run(&["run", "--json", "--follow"]).ends_with(0);
    let lines: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"work_started"));
    assert!(kinds.contains(&"agent_acted") && kinds.contains(&"task_reported"), "{kinds:?}");
    assert_eq!(lines.last().unwrap()["end"]["reason"], "all_done");
    let of = |name: &str| crate::json::schema(&env, name);
    let (event, summary) = (of("run-event"), of("run"));
    for line in &lines[..lines.len() - 1] {
        crate::json::validate(&event, line);
    }
    crate::json::validate(&summary, lines.last().unwrap());
}
