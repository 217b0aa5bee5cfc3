//! Agents that take over from one whose quota is used up, whose vendor is down or whose login is missing, and several accounts of
//! one vendor.

use insta::assert_snapshot;

use crate::env::TestEnv;

const USED_UP: &str = "runs: [[{ error: { kind: quota, message: used up, resets_in: 5h } }]]";
const WORKS: &str = "run: [{ run: { command: echo hi >> hello.txt, status: 0 } }, { commit: { message: Say hi } }, { task_done: current }, { say: done }]";

/// An implementer without quota, and `second`, which does what the script says.
fn two_agents(script: &str) -> TestEnv {
    TestEnv::new()
        .session("greet")
        .task("Say hello")
        .agent_script(USED_UP)
        .agent_setting("fallback: [second]")
        .other_agent("second", script)
}

fn agents_of_runs(env: &TestEnv) -> Vec<String> {
    let runs = env.json(&["runs", "list"]);
    let agent = |run: &serde_json::Value| run["agent"].as_str().unwrap().to_owned();
    runs["runs"].as_array().unwrap().iter().rev().map(agent).collect()
}

#[test]
fn a_fallback_takes_over_when_the_quota_is_used_up() {
    let env = two_agents(WORKS);
    assert_snapshot!(env.run(&["run", "--max-wait", "1m"]), @"

    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  done    1         Say hello

    2 iterations in [TIME]: 1 done, 0 open, cost $0.00, tokens 0 in, 0 out
    all tasks are done
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/10 [TASK-1] Say hello
        note: agent `second` takes over task [TASK-1] from `implementer` (quota_exhausted)
        quota_exhausted in [TIME], 0 commits, 0 changed files, cost $0.00
    2/10 [TASK-1] Say hello
        done in [TIME], 1 commit, 1 changed file, cost $0.00
        note: no tests were found, so nothing was tested: set `testing.command`
        [TASK-1] Say hello is now done
    ");
    assert_eq!(agents_of_runs(&env), ["implementer", "second"]);
    assert_eq!(env.task_now(1)["task"]["attempts"], 1, "the quota costs no attempt");
}

#[test]
fn tasks_that_come_later_go_to_the_fallback_at_once() {
    let env = two_agents(WORKS);
    env.run(&["run", "--max-wait", "1m"]).ends_with(0);
    let env = env.task("Say goodbye");
    env.run(&["run", "--max-wait", "1m"]).ends_with(0);
    assert_eq!(agents_of_runs(&env), ["implementer", "second", "second"]);
}

#[test]
fn a_task_waits_when_all_its_agents_are_used_up() {
    let env = two_agents(USED_UP);
    env.run(&["run", "--max-wait", "1m"]).ends_with(75).says("quota");
    assert_eq!(agents_of_runs(&env), ["implementer", "second"]);
}

#[test]
fn an_agent_that_a_person_paused_is_not_replaced() {
    let env = two_agents(WORKS);
    env.must(&["pause", "agent:implementer"]);
    env.run(&["run", "--max-wait", "1m"]).ends_with(7).says("agent `implementer` is held: paused by hand");
    assert!(agents_of_runs(&env).is_empty());
}

#[test]
fn the_next_account_takes_over_when_the_first_has_no_quota_left() {
    let by_account = "run: [{ run: { command: 'test \"$ANTHROPIC_API_KEY\" = key-of-the-second', status: 0 } }, { write: { path: hello.txt, content: hi } }, { commit: { message: Say hi } }, { task_done: current }, { say: done }]";
    let env = TestEnv::new()
        .session("greet")
        .task("Say hello")
        .agent_script(&by_account.replace("run: [", "runs: [[{ error: { kind: quota, message: used up, resets_in: 5h } }], [").replace("{ say: done }]", "{ say: done }]]"))
        .agent_setting("accounts: [{ name: own, keys: { ANTHROPIC_API_KEY: FIRST_KEY } }, { name: work, keys: { ANTHROPIC_API_KEY: SECOND_KEY } }]")
        .var("FIRST_KEY", "key-of-the-first")
        .var("SECOND_KEY", "key-of-the-second");
    env.run(&["run", "--max-wait", "1m"]).ends_with(0).says("agent `implementer.work` takes over");
    assert_eq!(agents_of_runs(&env), ["implementer", "implementer.work"]);
}

#[test]
fn a_fallback_has_to_exist() {
    let env = TestEnv::new()
        .session("greet")
        .task("Say hello")
        .agent_setting("fallback: [secnd]")
        .other_agent("second", WORKS);
    assert_snapshot!(env.run(&["run"]), @"
    [stderr]
    error: unknown agent `secnd`
      --> .rehearsal/config.yaml
    hint: did you mean `second`?
    [exit 2]
    ");
    let env = TestEnv::new().session("greet").task("Say hello").agent_setting("fallback: [implementer]");
    assert_snapshot!(env.run(&["run"]), @"
    [stderr]
    error: agent `implementer` cannot be its own fallback
      --> .rehearsal/config.yaml
    hint: remove `implementer` from its `fallback:`
    [exit 2]
    ");
    let twice = "accounts: [{ name: a }, { name: a }]";
    let env = TestEnv::new().session("greet").task("Say hello").agent_setting(twice);
    assert_snapshot!(env.run(&["run"]), @"
    [stderr]
    error: agent `implementer` has two accounts named `a`
      --> .rehearsal/config.yaml
    hint: give each account its own name
    [exit 2]
    ");
}
