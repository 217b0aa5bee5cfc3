//! What a script can go by: the exit codes of `run` and `work`.

use crate::env::TestEnv;

fn one_task(script: &str) -> TestEnv {
    TestEnv::new().session("greet").task("Say hello").agent_script(script)
}

#[test]
fn a_loop_in_which_every_iteration_failed_says_so() {
    let env = one_task("run: [{ stderr: \"no such model\\n\" }, { crash: { exit: 3 } }]");
    env.run(&["run", "--iterations", "2"]).ends_with(6).says("wrote last to standard error: no such model");
    // One that did something in between is no failure.
    let env = one_task("runs: [[{ crash: { exit: 3 } }], [{ say: I have looked. }]]");
    env.run(&["run", "--iterations", "2"]).ends_with(0);
}

#[test]
fn a_loop_in_which_every_iteration_timed_out_says_so() {
    let env = one_task("run: [hang]");
    env.run(&["run", "--iterations", "1", "--timeout", "1s"]).ends_with(124);
}

#[test]
fn a_budget_that_is_used_up_ends_with_its_own_code() {
    let result = r#"{"type":"result","subtype":"error_max_budget_usd","is_error":true,"num_turns":1,"session_id":"s"}"#;
    let script = format!("run:\n  - stdout: |\n      {result}\n  - crash: {{ exit: 1 }}\n");
    let env = one_task(&script);
    let output = env.run(&["run"]).ends_with(8);
    assert_eq!(env.outcomes(), ["budget_reached"], "{output}");
    env.run(&["why", &env.task_id(1)]).says("budget limit was reached").says("task unblock");
}

#[test]
fn the_only_task_that_an_agent_blocked_needs_a_human() {
    let env = one_task("run: [{ task_block: { id: current, reason: which language? } }]");
    env.run(&["run", "--iterations", "1"]).ends_with(7).says("which language?");
}

#[test]
fn nothing_to_do_and_no_model_are_refused() {
    let env = one_task("runs: []");
    env.run(&["run", "-n", "0"]).ends_with(2).says("0 is not in 1..");
    env.run(&["run", "--model", ""]).ends_with(2).says("--model");
    let env = env.config("loop: { iterations: 0 }");
    env.run(&["run"]).ends_with(2).says("`loop.iterations` is 0");
    let env = one_task("runs: []").agent_setting("model: ''");
    env.run(&["run"]).ends_with(2).says("`model` is empty");
    env.run(&["work", "--until-idle"]).ends_with(2).says("`model` is empty");
}

#[test]
fn work_says_what_its_failures_have_in_common() {
    let flow = "name: once\nstart: todo\nstates:\n  todo:\n    agent: implementer\n    on: { done: done }\n    otherwise: failed\n  done: { end: success }\n  failed: { end: failure }\n";
    let ends = |script: &str, setting: &str, code: i32| {
        let env = TestEnv::new().agent_script(script).agent_setting(setting);
        env.file(".rehearsal/flows/once.yaml", flow).commit("A flow");
        let env = env.session("greet").task_with("Say hello", &["--flow", "once"]);
        env.run(&["work", "--until-idle"]).ends_with(code);
    };
    ends("run: [hang]", "timeout: 1s", 124);
    ends("run: [{ crash: { exit: 3 } }]", "timeout: 1m", 6);
}
