//! Agents with a `sandbox:` in their profile.

use insta::assert_snapshot;

use crate::env::{PROGRAM, TestEnv};

/// The stand-in with its script inside of the repository, confined as the profile says.
fn env_with(sandbox: &str, script: &str) -> TestEnv {
    let env = TestEnv::new();
    let repo = env.repo.clone();
    env.file("agent/script.yaml", script);
    env.file(
        ".rehearsal/config.yaml",
        format!(
            "agents:\n  implementer:\n    driver: claude\n    program: {PROGRAM}\n    \
             args: [mock-agent, --as, claude, --script, {repo}/agent/script.yaml]\n    \
             env: {{ REHEARSAL_MOCK_STATE: {repo}/.git/calls, GIT_AUTHOR_NAME: Ada, GIT_AUTHOR_EMAIL: ada@example.invalid, \
             GIT_COMMITTER_NAME: Ada, GIT_COMMITTER_EMAIL: ada@example.invalid }}\n    sandbox: {sandbox}\n"
        ),
    );
    env.commit("Configure");
    env
}

#[test]
fn a_confined_agent_does_its_task_and_nothing_else() {
    let script = "runs:\n- - write: { path: hello.txt, content: 'hi' }\n  - commit: { message: Greet }\n  \
                  - run: { command: 'echo changed > ../outside' }\n  \
                  - run: { command: 'echo \"sandbox: off\" > .rehearsal/config.yaml' }\n  \
                  - run: { command: 'rehearsal session progress \"said hi\"', status: 0 }\n  \
                  - run: { command: 'cat ~/secret > stolen' }\n  - task_done: current\n";
    let env = env_with("required", script).session("greet").task("Say hello");
    std::fs::write(env.scratch.join("outside"), "untouched").unwrap();
    std::fs::write(env.scratch.join("home/secret"), "the secret").unwrap();
    let config = env.read(".rehearsal/config.yaml");
    let output = env.run(&["run"]);
    let stderr = std::fs::read_to_string(env.run_dir(&env.runs()[0]).join("stderr.log")).unwrap();
    assert_eq!(output.code, 0, "{output}\n{stderr}");
    assert_eq!(env.task_now(1)["status"], "done", "{:#}", env.task_now(1));
    assert_eq!(env.git(&["log", "-2", "--format=%s"]), "Say hello\nGreet", "what it left is committed");
    assert_eq!(std::fs::read_to_string(env.scratch.join("outside")).unwrap(), "untouched");
    assert_eq!(env.read(".rehearsal/config.yaml"), config);
    assert_eq!(env.read("stolen"), "");
    let outcome = env.read(env.run_dir(&env.runs()[0]).join("outcome.json"));
    assert!(outcome.contains(r#""rung":"#), "{outcome}");
}

#[test]
fn a_required_sandbox_that_is_not_to_be_had_ends_with_nine() {
    let env = env_with("required", "runs: [[]]").session("greet").task("Say hello");
    let output = env.run_without_namespaces(&["run"]).ends_with(9);
    output
        .says("stopped, because going on helps no task: sandbox_unavailable: the sandbox is required, and does not hold: files (")
        .says("no task lost an attempt")
        .says("hint: `rehearsal doctor` shows what the sandbox needs");
    assert_eq!(env.outcomes().first().map(String::as_str), Some("sandbox_unavailable"));
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
    let doctor = env.run_without_namespaces(&["doctor"]).ends_with(3).all();
    let refused = "`sandbox: required`, and it will not run: missing files (";
    assert!(doctor.contains(refused) && doctor.contains("hint: allow user namespaces: `sysctl"), "{doctor}");
}

#[test]
fn the_settings_of_a_sandbox_are_shown_one_by_one() {
    let env = TestEnv::new();
    env.file(
        ".rehearsal/config.yaml",
        "agents:\n  implementer:\n    sandbox: { allow_network: false, max_memory: 4GB }\n",
    );
    let shown = env.run(&["config", "show", "--origin"]).to_string();
    let lines: Vec<&str> =
        shown.lines().filter(|line| line.starts_with("agents.implementer.sandbox")).collect();
    assert_snapshot!(lines.join("\n"), @"
    agents.implementer.sandbox.level          auto          default
    agents.implementer.sandbox.project        writable      default
    agents.implementer.sandbox.allow_network  false         .rehearsal/config.yaml
    agents.implementer.sandbox.max_memory     4GB           .rehearsal/config.yaml
    agents.implementer.sandbox.max_cpus       -             default
    agents.implementer.sandbox.max_processes  -             default
    agents.implementer.sandbox.read           -             default
    agents.implementer.sandbox.write          -             default
    ");
}

#[test]
fn the_doctor_tells_each_layer_of_the_sandbox() {
    let env = TestEnv::new();
    let document = env.run(&["doctor", "--json"]).document();
    let layers = document["sandbox"]["layers"].as_object().unwrap();
    let told = |layer: &String| {
        let what = format!("sandbox {layer}");
        document["checks"].as_array().unwrap().iter().any(|check| check["what"] == what.as_str())
    };
    assert_eq!(layers.len(), 8);
    assert!(layers.keys().all(told), "{document:#}");
}

#[test]
fn a_confined_agent_cannot_point_the_repository_at_other_tasks() {
    let script = "runs: [[{ run: { command: 'echo elsewhere > .git/rehearsal-state' } }, { say: hi }]]";
    let env = env_with("required", script).session("greet").task("Say hello");
    let key = env.read(".git/rehearsal-state");
    let output = env.run(&["run", "--iterations", "1"]);
    let log = env.read(env.run_dir(&env.runs()[0]).join("stdout.log"));
    assert!(log.contains("Read-only file system"), "{output}\n{log}");
    assert_eq!(env.read(".git/rehearsal-state"), key);
}

#[test]
fn what_the_sandbox_hid_from_a_command_is_named_with_the_line_to_add() {
    let script = "runs: [[{ run: { command: 'cat ~/tools/settings' } }, { say: hi }]]";
    let env = env_with("required", script).session("greet").task("Say hello");
    std::fs::create_dir(env.scratch.join("home/tools")).unwrap();
    std::fs::write(env.scratch.join("home/tools/settings"), "fast").unwrap();
    env.run(&["run", "--iterations", "1"])
        .says("if it needs that, add to the agent: `sandbox: { read: [[SCRATCH]/home/tools/settings] }`")
        .says("implementer: confined by the full sandbox; the agent's own permission rules are off");
}
