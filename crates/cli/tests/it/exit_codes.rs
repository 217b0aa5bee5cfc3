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
    let spends = "run: [{ usage: { input: 900, output: 200 } }, { say: more }, { sleep: 2s }, { say: more }]";
    let env = one_task(spends).agent_setting("budget: { tokens: 1000 }");
    let output = env.run(&["run"]).ends_with(8);
    assert_eq!(env.outcomes(), ["budget_reached"], "{output}");
    env.run(&["why", &env.task_id(1)]).says("token");
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
