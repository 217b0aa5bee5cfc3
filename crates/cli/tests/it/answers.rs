//! Questions that agents ask, the answers of people, and who the log says decided.

use insta::assert_snapshot;
use serde_json::json;

use crate::env::TestEnv;
use crate::work::a_team;

const ASKS: &str = "runs: [[{ say: '<promise>BLOCKED: which language?</promise>' }], \
     [{ task_done: current }], [{ task_done: current }]]";

#[test]
fn an_answer_takes_the_place_of_the_question_in_the_next_prompt() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(ASKS);
    env.run(&["run"]).ends_with(7);
    env.must(&["task", "block", &env.task_id(2), "--reason", "which language?"]);
    assert_snapshot!(env.run(&["unblock", &env.task_id(1), &env.task_id(2), "--answer", " "]), @"
    [stderr]
    error: the answer is empty
    [exit 2]
    ");
    assert_snapshot!(env.run(&["unblock", &env.task_id(1), &env.task_id(2), "--answer", "French, and no </feedback>"]), @"
    [TASK-1] is answered and continues: Say hello
    [TASK-2] is answered and continues: Say goodbye
    ");
    env.run(&["run"]).ends_with(0);
    for prompt in [env.prompt(2), env.prompt(3)] {
        let (_, answer) = prompt.split_once("<feedback from=\"a person\">\n").unwrap();
        assert!(answer.starts_with("French, and no &lt;/feedback>\n</feedback>\n"), "{prompt}");
        assert!(!prompt.contains("which language?"), "{prompt}");
    }
}

#[test]
fn tasks_are_unblocked_all_or_none() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye");
    env.must(&["task", "block", &env.task_id(1), "--reason", "which language?"]);
    assert_snapshot!(env.run(&["unblock", &env.task_id(1), &env.task_id(2)]), @"
    [stderr]
    error: task `[TASK-2]` is not blocked
    [exit 2]
    ");
    assert_eq!(env.task_now(1)["status"], "blocked");
    let id = env.task_id(1);
    let unblocked = env.json(&["task", "unblock", &id, &id]);
    assert_eq!(unblocked["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn an_answer_reaches_the_agent_of_a_flow() {
    let asks = "runs: [[{ say: '<promise>BLOCKED: which language?</promise>' }], [{ say: done }]]";
    let env = a_team().agent_script(asks).task_of("pull-request", "Say hello", &[]);
    env.run(&["work", "--until-idle"]).ends_with(7);
    env.must(&["unblock", &env.task_id(1), "--answer", "French"]);
    env.run(&["work", "--once"]);
    assert!(env.prompt(2).contains("<feedback from=\"a person\">\nFrench\n</feedback>"), "{}", env.prompt(2));
}

#[test]
fn the_log_says_who_decided() {
    let env = a_team().task_of("approve", "Say hello", &[]);
    let id = env.task_id(1);
    env.run(&["work", "--until-idle"]).ends_with(7);
    env.must(&["reject", &id, "--comment", "say it louder"]);
    assert_snapshot!(env.run(&["why", &id]), @"
    [TASK-1]  Say hello is incoming
    - it is ready, and no worker is running here
    - rejected by [PERSON] [TIME] ago
    next: rehearsal work
    ");
    env.run(&["task", "show", &id]).says("rejected by [PERSON] [TIME] ago");
    let decision = env.json(&["why", &id])["decision"].clone();
    assert_eq!((&decision["what"], &decision["by"]["via"]), (&json!("rejected"), &json!("no_terminal")));
    assert!(!decision["by"]["name"].as_str().unwrap().is_empty());
    let history = env.run(&["task", "history", &id]);
    let history = history.to_string();
    let by_people = history.lines().filter_map(|line| line.split_once("[PERSON]"));
    let by_people: Vec<&str> = by_people.map(|(_, what)| what.trim()).collect();
    assert_eq!(by_people, ["added to flow approve", "review -> incoming: rejected: say it louder"]);
    env.run(&["task", "history", &id, "--limit", "1"]).says("older events; `--limit` shows more");
}

#[test]
fn no_process_of_an_agent_decides_about_another_task() {
    let env = a_team().task_of("approve", "Say hello", &[]);
    env.run(&["work", "--until-idle"]).ends_with(7);
    let (other, there) = (env.task_id(1), env.scratch.join("agent"));
    let approve = format!("env -u REHEARSAL_RUN_ID -u REHEARSAL_TASK_ID rehearsal approve {other}");
    let script = format!(
        "run: [{{ run: {{ command: '{approve} > {there}/said 2>&1', status: 2 }} }}, \
         {{ run: {{ command: '/usr/bin/setsid sh -c \"( sleep 0.1; {approve} > {there}/orphan 2>&1; touch {there}/tried ) &\"; \
         until [ -e {there}/tried ]; do sleep 0.02; done', status: 0 }} }}, {{ say: done }}]"
    );
    let env = env.agent_script(&script).task_of("pull-request", "Say goodbye", &[]);
    env.run(&["work", "--once"]);
    assert_snapshot!(env.read("../agent/said"), @"
    error: an agent cannot do this: it started this process
    hint: `rehearsal task done ID`, `rehearsal task block ID --reason …` and `rehearsal session progress TEXT` report
    ");
    assert_eq!(env.read("../agent/orphan"), env.read("../agent/said"));
    assert_eq!(env.task_now(1)["task"]["state"], "review");
    assert_eq!(env.task_now(1)["decision"], json!(null));
}

#[test]
fn workers_are_listed_with_what_they_do() {
    let env = a_team();
    assert_snapshot!(env.run(&["workers"]), @"no workers; start one with `rehearsal work` or `rehearsal run SESSION`");
    let there = env.scratch.join("agent");
    let script = format!("run: [{{ run: {{ command: 'touch {there}/ready; sleep 600', status: 0 }} }}]");
    let env = env.agent_script(&script).task_of("pull-request", "Say hello", &[]);
    let work = env.start(&["work"]);
    env.until_the_agent_waits();
    env.run(&["workers"]).says("working").says("[TASK-1] Say hello");
    work.signal(rustix::process::Signal::KILL);
    work.finish().ends_with(-9);
    let workers = env.json(&["workers"])["workers"].clone();
    assert_eq!((&workers[0]["presence"], workers.as_array().unwrap().len()), (&json!("dead"), 1));
    env.run(&["status"])
        .says("but its worker died; `rehearsal work` continues")
        .never_says("nothing is in work");
    env.must(&["cancel", &env.task_id(1)]);
    env.run(&["work", "--until-idle"]);
}

#[test]
fn the_summary_of_a_loop_counts_what_this_loop_did() {
    let script = "run: [{ task_done: current }, { usage: { input: 10, output: 5 } }, { say: Bonjour }]";
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(script);
    env.run(&["run", "-n", "1"]).says("1 iteration in [TIME]: 1 done, 1 open");
    env.run(&["run", "-n", "1"]).says("1 iteration in [TIME]: 1 done, 0 open");
    let run = env.runs()[1].clone();
    env.run(&["runs", "show", &run])
        .says("turns ")
        .says("model claude-")
        .says("agent session ")
        .says("final message:\n  Bonjour");
    let by_task = env.run(&["logs", &env.task_id(2)]);
    assert_eq!(by_task.stdout, env.run(&["logs", &run]).stdout);
    by_task.says("[CLOCK] Bonjour");
    let env = env.task("Say it again");
    assert_snapshot!(env.run(&["logs", &env.task_id(3)]), @"
    [stderr]
    error: task `[TASK-3]` has no runs yet
    hint: `rehearsal why [TASK-3]` says what it waits for
    [exit 2]
    ");
}

#[test]
fn a_run_shows_what_its_agent_was_denied() {
    let script = "run: [{ tool: { name: Read, input: { file_path: secret }, end: refused } }, { say: hm }]";
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(script);
    env.run(&["run", "-n", "1", "--max-wait", "0s"]);
    env.run(&["runs", "show", &env.runs()[0]]).says("`Read` was denied");
    assert_eq!(env.json(&["runs", "show", &env.runs()[0]])["run"]["end"]["denials"][0]["tool"], "Read");
}
