//! `work`: tasks from a worktree to the base branch, through the real program.

use insta::assert_snapshot;

use serde_json::Value;

use crate::env::TestEnv;
use crate::json::{schema, validate};

/// An implementer that makes the tests pass, and a gatekeeper that says yes.
pub(crate) fn a_team() -> TestEnv {
    let env = TestEnv::new()
        .agent_script("run: [{ write: { path: hello.txt, content: hi } }, { commit: { message: Say hi } }, { usage: { input: 1, output: 1, cost_usd: 0.5 } }, { say: done }]")
        .other_agent("gatekeeper", APPROVES)
        .config("testing: { command: sh run-tests }");
    env.file("run-tests", "if [ -e hello.txt ]; then echo ok; else echo 'FAIL: no greeting'; exit 1; fi\n")
        .commit("A test");
    env
}

pub(crate) const APPROVES: &str =
    "run: [{ result: { decision: approve, comment: good } }, { say: good }]";

#[test]
fn a_task_goes_from_incoming_to_merged_where_there_is_no_remote() {
    let env = a_team().task_of("pull-request", "Say hello", &["--touches", "hello.txt"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    assert_snapshot!(env.run(&["task", "list", "--all"]), @"");
    assert_snapshot!(env.run(&["task", "show", &env.task_id(1)]), @"");
    assert_eq!(env.git(&["status", "--short"]), "", "the checkout is not touched");
    let document = env.json(&["work", "--until-idle"]);
    assert_eq!(document["end"], "idle");
    env.git(&["pull", "--quiet", &own_remote(&env), "main"]);
    assert_eq!(env.read("hello.txt"), "hi");
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 2, "one is kept warm");
    env.run(&["doctor", "--store"]).ends_with(0);
}

fn own_remote(env: &TestEnv) -> String {
    let remotes = env.scratch.join("home/.local/share/rehearsal/remotes");
    let first = std::fs::read_dir(remotes).unwrap().next().unwrap().unwrap();
    first.path().to_str().unwrap().to_owned()
}

#[test]
fn a_task_that_fails_ends_with_6_and_says_what_to_look_at() {
    let env = TestEnv::new()
        .agent_script("run: [{ result: { outcome: failure, reason: the file is missing } }, { say: no }]")
        .task_of("pull-request", "Say hello", &[]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"");
}

#[test]
fn two_workers_share_the_tasks_and_do_each_once() {
    let env = a_team();
    let env = (1..=4).fold(env, |env, n| env.task_of("pull-request", &format!("Task {n}"), &[]));
    let env = env.agent_script("run: [{ run: { command: 'touch $TASK_ID.txt hello.txt', status: 0 } }, { commit: { message: Add a file } }, { say: done }]");
    let (one, two) = (env.start(&["work", "--until-idle"]), env.start(&["work", "--until-idle"]));
    one.finish().ends_with(0);
    two.finish().ends_with(0);
    for number in 1..=4 {
        assert_eq!(env.task_now(number)["status"], "done");
    }
    let mut outcomes = env.outcomes();
    outcomes.sort();
    assert_eq!(outcomes, [["approved"; 4], ["done"; 4]].concat());
    env.run(&["doctor", "--store"]).ends_with(0);
}

#[test]
fn every_event_is_a_line_and_the_summary_comes_last() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    let lines = env.run(&["work", "--until-idle", "--json", "--follow"]).ends_with(0);
    let of_events = schema(&env, "work-event");
    let mut documents: Vec<Value> =
        lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = documents.pop().unwrap();
    for event in &documents {
        validate(&of_events, event);
    }
    validate(&schema(&env, "work"), &summary);
    assert_eq!(summary["tasks"][0]["status"], "done");
    assert_eq!(summary["cost_usd"], 0.5);
}

#[test]
fn a_loop_leaves_tasks_of_other_flows_alone() {
    let env = a_team().session("greet").task_of("pull-request", "Say hello", &[]);
    assert_snapshot!(env.run(&["run", "greet"]), @"");
}

#[test]
fn wishes_that_cannot_be_met_are_errors() {
    let env = a_team();
    assert_snapshot!(env.run(&["work", "--agent", "gatekeper"]), @"");
    assert_snapshot!(env.run(&["work", "--session", "nowhere"]), @"");
    assert_snapshot!(env.run(&["work", "--workers", "0"]), @"");
    assert_snapshot!(env.run(&["task", "add", "x", "--flow", "pull-requests"]), @"");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    let env = env.config("flow: review");
    env.file(".rehearsal/flows/review.yaml", "name: review\nstart: a\nstates:\n  a: { agent: judge, on: { approved: b, rejected: a, crashed: a } }\n  b: { end: success }\n");
    assert_snapshot!(env.run(&["task", "add", "x"]), @"");
    let env = env.agent_setting("permission: trust");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
}

#[test]
fn a_store_that_cannot_be_reached_says_so_and_never_tells_a_password() {
    let env = TestEnv::new().var("REHEARSAL_STORE", "postgres://ada:secret@127.0.0.1:1/tasks");
    let output = env.run(&["task", "list"]);
    assert!(!output.all().contains("secret"), "{output}");
    assert_ne!(output.code, 0);
    let doctor = env.run(&["doctor"]);
    assert!(!doctor.all().contains("secret"), "{doctor}");
    doctor.says("(postgres://ada@127.0.0.1:1/tasks)");
    let env = TestEnv::new().var("REHEARSAL_STORE", "mysql://ada:secret@db/tasks");
    assert_snapshot!(env.run(&["task", "list"]), @"");
}

#[test]
fn the_demo_shows_a_rejection_and_a_merge() {
    let env = TestEnv::without_repository();
    let demo = env.run(&["demo", "--flow", "pull-request"]).ends_with(0);
    let task = demo.stdout.split("task ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let story: Vec<String> = demo.to_string().lines().take_while(|line| !line.starts_with("[stderr]")).map(|line| line.replace(&task, "[TASK-1]")).collect();
    assert_snapshot!(story.join("\n"), @"");
}
