//! Called by an agent from inside its run: commands report, and change nothing by themselves.

use insta::assert_snapshot;

use crate::env::TestEnv;

fn with_a_run() -> (TestEnv, String) {
    let env = TestEnv::new().session("greet").task("Say hello").agent_script("runs: [[{ say: hi }]]");
    env.must(&["run", "--iterations", "1"]);
    let run = env.runs()[0].clone();
    (env, run)
}

#[test]
fn reports_go_to_the_run_and_not_to_the_store() {
    let (env, run) = with_a_run();
    let task = env.task_id(1);
    assert_snapshot!(env.run_inside(&run, &["task", "done", &task]), @"noted: [TASK-1] is done; it counts when the run is over");
    assert_snapshot!(env.run_inside(&run, &["task", "block", &task, "--reason", "why not"]), @"noted: [TASK-1] waits for a human; it counts when the run is over");
    assert_snapshot!(env.run_inside(&run, &["session", "progress", "half of it is there"]), @"noted; it goes to the journal when the run is over");
    let report = env.read(env.run_dir(&run).join("report.jsonl"));
    assert_snapshot!(env.stable().text(&report), @r#"
    {"type":"task_done","id":"[TASK-1]"}
    {"type":"task_blocked","id":"[TASK-1]","reason":"why not"}
    {"type":"progress","text":"half of it is there"}
    "#);
    assert_eq!(env.task_now(1)["status"], "todo");
    assert_eq!(env.json(&["session", "progress"])["progress"], serde_json::json!([]));
}

#[test]
fn an_agent_learns_at_once_of_a_wrong_id() {
    let (env, run) = with_a_run();
    assert_snapshot!(env.run_inside(&run, &["task", "done", "nosuchid"]), @r"
    [stderr]
    error: there is no task `nosuchid`
    hint: `rehearsal task list` shows what there is
    [exit 2]
    ");
    assert!(!env.run_dir(&run).join("report.jsonl").exists());
}

#[test]
fn everything_that_changes_something_is_refused() {
    let (env, run) = with_a_run();
    let task = env.task_id(1);
    assert_snapshot!(env.run_inside(&run, &["task", "add", "More"]), @r"
    [stderr]
    error: an agent cannot do this from inside run `[RUN-01]`
    hint: `rehearsal task done ID`, `rehearsal task block ID --reason …` and `rehearsal session progress TEXT` report
    [exit 2]
    ");
    for command in [
        &["task", "edit", &task, "--title", "Less"][..],
        &["task", "cancel", &task],
        &["task", "retry", &task],
        &["task", "unblock", &task],
        &["task", "import", "-", "--format", "markdown"],
        &["session", "new", "other"],
        &["session", "context", "greet", "--set", "x"],
        &["run"],
        &["init"],
    ] {
        env.run_inside(&run, command).ends_with(2).says("an agent cannot do this from inside run `[RUN-01]`");
    }
    assert_eq!(env.json(&["task", "list"])["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn an_agent_may_look_at_everything() {
    let (env, run) = with_a_run();
    for command in [&["task", "list"][..], &["status"], &["session", "show", "greet"], &["runs", "list"]] {
        env.run_inside(&run, command).ends_with(0);
    }
}

#[test]
fn an_agent_that_hides_its_run_still_cannot_decide() {
    let script = "runs: [[{ run: { command: 'env -u REHEARSAL_RUN_ID -u REHEARSAL_TASK_DIR rehearsal pause > ../agent/said 2>&1', status: 2 } }]]";
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(script);
    env.must(&["run", "--iterations", "1"]);
    assert_snapshot!(env.read("../agent/said"), @r"
    error: an agent cannot do this: it started this process
    hint: `rehearsal task done ID`, `rehearsal task block ID --reason …` and `rehearsal session progress TEXT` report
    ");
    assert_eq!(env.json(&["status"])["held"], serde_json::json!([]));
}
