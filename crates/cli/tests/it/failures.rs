//! Agents that are missing, broken, refused or too slow: whose fault it is, what it costs, what to do.

use insta::assert_snapshot;

use crate::env::TestEnv;

fn one_task(script: &str) -> TestEnv {
    TestEnv::new().session("greet").task("Say hello").agent_script(script)
}

#[test]
fn a_program_that_is_not_installed_says_how_to_install_it() {
    let env = TestEnv::new().session("greet").task("Say hello");
    assert_snapshot!(env.run(&["run"]), @r"
    [stderr]
    error: program `claude` was not found
    hint: install it with `npm install -g @anthropic-ai/claude-code`, or set `program:` in .rehearsal/config.yaml
    hint: `rehearsal agent list` shows which agents are here
    [exit 6]
    ");
    let env = env.agent_setting("driver: codex");
    env.run(&["run"]).ends_with(6).says("npm install -g @openai/codex");
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
}

#[test]
fn a_command_agent_without_a_program_says_what_to_set() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_setting("driver: command");
    assert_snapshot!(env.run(&["run"]), @r"
    [stderr]
    error: an agent with `driver: command` needs a `program`
    hint: set `program:` in .rehearsal/config.yaml; `rehearsal doctor` shows what is missing
    [exit 6]
    ");
}

#[test]
fn no_key_stops_the_line_after_two_runs_and_costs_no_attempt() {
    let env = TestEnv::new()
        .session("greet")
        .task("Say hello")
        .task("Say goodbye")
        .agent_script("run: [{ error: { kind: auth } }]");
    assert_snapshot!(env.run(&["run"]), @r"
    TASK      STATUS   ATTEMPTS  TITLE
    [TASK-1]  waiting  0         Say hello

    2 iterations in [TIME]: 0 done, 2 open, cost $0.00, tokens 0 in, 0 out
    stopped, because going on helps no task: auth_failed: Invalid API key · Fix external API key
    no task lost an attempt
    hint: set the agent's key in your environment, or log its CLI in; `rehearsal doctor` shows which one is missing
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    1/10 [TASK-1] Say hello
        auth_failed: Invalid API key · Fix external API key in [TIME], 0 commits, 0 changed files, cost $0.00
    2/10 [TASK-1] Say hello
        auth_failed: Invalid API key · Fix external API key in [TIME], 0 commits, 0 changed files, cost $0.00
    [exit 6]
    ");
    assert_eq!(env.agent_calls(), 2);
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
    assert_eq!(env.task_now(2)["task"]["attempts"], 0);
}

#[test]
fn a_large_prompt_goes_through_standard_input() {
    let env = TestEnv::new().session("greet").task("Say hello");
    let context = format!("{}\nthe very end of it", "0123456789abcd\n".repeat(1 << 16));
    env.run_with_input(&["session", "context", "greet", "--set", "-"], &context).ends_with(0);
    let env = env.agent_script(
        "runs: [[{ expect_prompt: { contains: the very end of it } }, { task_done: current }]]",
    );
    env.run(&["run"]).ends_with(0).says("all tasks are done");
    assert!(env.prompt(1).len() > 900_000);
}

#[test]
fn broken_json_is_a_broken_protocol_and_the_raw_output_is_kept() {
    let env = one_task("run: [{ say: hi }, { broken_json }, { crash: { exit: 0 } }]");
    assert_snapshot!(env.run(&["run"]), @r#"
    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  todo    3         Say hello

    3 iterations in [TIME]: 0 done, 1 open, cost unknown, tokens 0 in, 3 out
    too many failed runs in a row; the last one: protocol_error: the JSON is cut off after column 276: `{"message":{"content":[{"text":"Only half of this is said.",…`
    next: rehearsal runs show [RUN-01]
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/10 [TASK-1] Say hello
        protocol_error: the JSON is cut off after column 276: `{"message":{"content":[{"text":"Only half of this is said.",…` in [TIME], 0 commits, 0 changed files, cost unknown
    2/10 [TASK-1] Say hello
        protocol_error: the JSON is cut off after column 276: `{"message":{"content":[{"text":"Only half of this is said.",…` in [TIME], 0 commits, 0 changed files, cost unknown
    3/10 [TASK-1] Say hello
        protocol_error: the JSON is cut off after column 276: `{"message":{"content":[{"text":"Only half of this is said.",…` in [TIME], 0 commits, 0 changed files, cost unknown
    [exit 6]
    "#);
    let run = &env.runs()[0];
    assert_snapshot!(env.run(&["runs", "show", run]), @r#"
    [RUN-01]  task [TASK-1], agent implementer (claude)
    started [MOMENT] ([TIME] ago)
    took [TIME], cost unknown, tokens 0 in, 1 out, turns unknown
    model claude-opus-5-5, agent session [UUID]

    protocol_error: the JSON is cut off after column 276: `{"message":{"content":[{"text":"Only half of this is said.",…`
    - exit status 0
    - the JSON is cut off after column 276: `{"message":{"content":[{"text":"Only half of this is said.",…`
    - git: 0 new commits, 0 files changed

    files: [STATE]/runs/[RUN-01]
    "#);
    assert!(!env.read(env.run_dir(run).join("stdout.log")).is_empty());
    assert_eq!(env.task_now(1)["task"]["attempts"], 3);
}

#[test]
fn an_agent_that_says_nothing_has_an_outcome_of_its_own() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_setting("driver: claude");
    let env =
        env.program("mute", "case $1 in --help|--version) exec rehearsal mock-agent --as claude $1;; esac");
    env.run(&["run", "--max-failures", "1"]).ends_with(6).says("the last one: empty_output");
    assert_eq!(env.outcomes(), ["empty_output"]);
}

#[test]
fn a_result_counts_also_when_the_exit_status_is_not_zero() {
    let env = one_task(
        "
        runs:
          - - usage: { input: 10, output: 5, cost_usd: 0.25 }
            - say: Half of it is there.
            - exit: 1
        ",
    );
    env.run(&["run", "--max-failures", "1", "--iterations", "1"]);
    let run = env.json(&["runs", "show", &env.runs()[0]]);
    assert_eq!(run["run"]["end"]["cost_usd"], 0.25);
    assert_eq!(run["run"]["end"]["exit"], serde_json::json!({ "code": 1 }));
    assert_snapshot!(env.run(&["runs", "show", &env.runs()[0]]), @"
    [RUN-01]  task [TASK-1], agent implementer (claude)
    started [MOMENT] ([TIME] ago)
    took [TIME], cost $0.25, tokens 10 in, 5 out, turns 1
    model claude-opus-5-5, agent session [UUID]

    crashed: exit status 1: its output ends with success
    - the structured output ends with success
    - exit status 1
    - git: 0 new commits, 0 files changed

    final message:
      Half of it is there.

    files: [STATE]/runs/[RUN-01]
    ");
}

#[test]
fn a_crash_is_tried_again_and_three_in_a_row_end_the_loop() {
    let env = one_task("run: [{ stderr: \"panic: no more memory\\n\" }, { crash: { signal: segv } }]");
    assert_snapshot!(env.run(&["run"]), @r"
    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  todo    3         Say hello

    3 iterations in [TIME]: 0 done, 1 open, cost unknown, tokens unknown
    note: run [RUN-01] wrote last to standard error: panic: no more memory
    too many failed runs in a row; the last one: crashed: signal 11 (SIGSEGV)
    next: rehearsal runs show [RUN-01]
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/10 [TASK-1] Say hello
        crashed: signal 11 (SIGSEGV) in [TIME], 0 commits, 0 changed files, cost unknown
    2/10 [TASK-1] Say hello
        crashed: signal 11 (SIGSEGV) in [TIME], 0 commits, 0 changed files, cost unknown
    3/10 [TASK-1] Say hello
        crashed: signal 11 (SIGSEGV) in [TIME], 0 commits, 0 changed files, cost unknown
    [exit 6]
    ");
    assert_eq!(env.outcomes(), ["crashed", "crashed", "crashed"]);
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @r"
    [TASK-1]  Say hello is todo
    - it is ready, and no loop is running
    - its last run ended with crashed: signal 11 (SIGSEGV) (3 attempts so far)
    next: rehearsal run greet
    ");
}

#[test]
fn a_rate_limit_beyond_the_longest_wait_says_when_to_come_back() {
    let env = TestEnv::new()
        .session("greet")
        .task("Say hello")
        .agent_script_as("codex", "runs: [[{ rate_limit: { retry_after: 2h } }]]");
    assert_snapshot!(env.run(&["run", "--max-wait", "1m"]), @r"
    TASK      STATUS   ATTEMPTS  TITLE
    [TASK-1]  waiting  0         Say hello

    1 iteration in [TIME]: 0 done, 1 open, cost unknown, tokens unknown
    rate_limited: it may go on in [TIME], which is longer than --max-wait
    next: rehearsal run greet
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/10 [TASK-1] Say hello
        rate_limited in [TIME], 0 commits, 0 changed files, cost unknown
    [exit 75]
    ");
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @r"
    [TASK-1]  Say hello is waiting
    - rate_limited
    - it waits because of the system (rate_limited), which costs it no attempt
    - agent `implementer` is held: rate_limited
    - it may go on in [TIME] ([MOMENT])
    next: rehearsal resume agent:implementer
    ");
    assert_snapshot!(env.run(&["task", "list"]), @r"
    ID        STATUS   PRIORITY  SESSION  TITLE
    [TASK-1]  waiting  medium    greet    Say hello
    ");
    // The wait is stored: another start does not ask the agent again.
    env.run(&["run", "--max-wait", "1m"]).ends_with(75).says("longer than --max-wait");
    assert_eq!(env.agent_calls(), 1);
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
}

#[test]
fn a_used_up_quota_waits_until_it_is_reset() {
    let env = one_task("runs: [[{ error: { kind: quota, message: used up, resets_in: 5h } }]]");
    env.run(&["run", "--max-wait", "1h"]).ends_with(75).says("quota");
    let why = env.json(&["why", &env.task_id(1)]);
    assert!(why["until"].as_i64().unwrap() > 0, "{why}");
    assert_eq!(why["status"], "waiting");
}

#[test]
fn a_service_that_is_overloaded_for_a_moment_is_asked_again() {
    let env = one_task("runs: [[{ error: { kind: overloaded } }], [{ task_done: current }, { say: done }]]");
    env.run(&["run"]).ends_with(0).says("1 iteration in").says("all tasks are done");
    let run = env.json(&["runs", "show", &env.runs()[0]]);
    assert_eq!(run["run"]["end"]["tries"], 2);
    assert_eq!(env.task_now(1)["task"]["attempts"], 1);
}

#[test]
fn an_agent_that_hangs_is_timed_out_and_when_that_repeats_so_is_the_loop() {
    let env = one_task("run: [{ say: thinking }, hang]");
    assert_snapshot!(env.run(&["run", "--timeout", "300ms", "--max-failures", "2"]), @r"
    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  todo    2         Say hello

    2 iterations in [TIME]: 0 done, 1 open, cost unknown, tokens 0 in, 2 out
    too many failed runs in a row; the last one: timed_out: running for [TIME]
    next: rehearsal runs show [RUN-01]
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/10 [TASK-1] Say hello
        timed_out: running for [TIME] in [TIME], 0 commits, 0 changed files, cost unknown
    2/10 [TASK-1] Say hello
        timed_out: running for [TIME] in [TIME], 0 commits, 0 changed files, cost unknown
    [exit 124]
    ");
    assert_eq!(env.outcomes(), ["timed_out", "timed_out"]);
}

#[test]
fn an_agent_that_is_silent_for_too_long_is_timed_out() {
    let env = one_task("run: [{ say: thinking }, hang]");
    env.run(&["run", "--idle-timeout", "300ms", "--max-failures", "1"]).ends_with(124).says("silent for");
}

#[test]
fn work_that_a_timeout_cut_off_is_kept() {
    let env = one_task(
        "
        runs:
          - - write: { path: hello.txt, content: hi }
            - commit: { message: Half of it }
            - say: thinking
            - hang
        ",
    );
    env.run(&["run", "--idle-timeout", "500ms", "--max-failures", "1"]).ends_with(124).says("1 commit");
    assert_eq!(env.git(&["log", "-1", "--format=%s"]), "Half of it");
}

#[test]
fn an_agent_that_may_only_look_is_told_so() {
    let env = one_task("runs: [[{ task_done: current }]]").agent_setting("permission: plan");
    let command = env.json(&["run", "--dry-run"])["command"].to_string();
    assert!(command.contains(r#""--permission-mode","plan""#), "{command}");
}

#[test]
fn the_system_prompt_is_the_programs_own_unless_the_profile_has_one() {
    let env = one_task("runs: []");
    let after = |env: &TestEnv| {
        let command = env.json(&["run", "--dry-run"])["command"].as_array().unwrap().clone();
        let at = command.iter().position(|word| word == "--append-system-prompt").unwrap();
        command[at + 1].as_str().unwrap().to_owned()
    };
    assert!(after(&env).starts_with("You are an autonomous agent. Nobody reads along"), "{}", after(&env));
    let env = env.agent_setting("system_prompt: You are working on greetings.");
    assert_eq!(after(&env), "You are working on greetings.");
}

#[test]
fn an_agent_works_in_the_root_of_the_repository() {
    let env =
        one_task("runs: [[{ run: { command: pwd > ../agent/where, status: 0 } }, { task_done: current }]]");
    env.file("deep/down/file", "");
    let deep = env.repo.join("deep/down");
    env.run(&["run", "--repo", deep.as_str()]).ends_with(0);
    assert_eq!(env.read(env.scratch.join("agent/where")).trim(), env.repo);
}

#[test]
fn what_the_agent_told_of_itself_is_in_the_run() {
    let env = one_task(
        "
        runs:
          - - tool: { name: Read, input: { file_path: README.md }, output: hello }
            - usage: { input: 1500, output: 40, cached: 500, cost_usd: 0.05 }
            - task_done: current
            - say: Done.
        ",
    )
    .agent_setting("model: sonnet");
    env.run(&["run"]).ends_with(0);
    let run = env.json(&["runs", "show", &env.runs()[0]])["run"].clone();
    let end = &run["end"];
    assert!(!end["agent_session"].as_str().unwrap().is_empty(), "{run}");
    assert_eq!(end["cost_usd"], 0.05);
    assert!(end["turns"].as_u64().unwrap() >= 1, "{run}");
    assert_eq!(end["tokens"], serde_json::json!({ "input": 1500, "cached": 500, "output": 40 }));
    assert_eq!(run["model"], "sonnet");
    assert!(end["ended_at"].as_i64() >= run["started_at"].as_i64(), "{run}");
    assert_eq!(end["exit"], serde_json::json!({ "code": 0 }));
}

#[test]
fn a_secret_reaches_no_file_and_no_output() {
    let secret = "sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb";
    let env = one_task(
        "
        runs:
          - - run: { command: 'printf %s $ANTHROPIC_API_KEY >&2', status: 0 }
            - say: 'the key is sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb'
            - tool: { name: Bash, input: { command: 'echo sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb' }, output: 'sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb' }
            - stderr: \"sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb\\n\"
            - stdout: \"sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb\\n\"
            - progress: 'I use sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb'
            - task_block: { id: current, reason: 'sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb is wrong' }
            - result: { outcome: blocked, reason: 'sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb does not work' }
            - say: '<promise>BLOCKED: sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb is refused</promise>'
        ",
    )
    .var("ANTHROPIC_API_KEY", secret);
    let mut said = env.run(&["run"]).all();
    let run = env.runs()[0].clone();
    for command in [
        &["runs", "show", &run][..],
        &["logs", &run],
        &["logs", &run, "--raw"],
        &["logs", &run, "--stderr"],
        &["why", &env.task_id(1)],
        &["session", "progress"],
        &["task", "show", &env.task_id(1), "--json"],
    ] {
        said += &env.run(command).all();
    }
    assert!(!said.contains(secret), "{said}");
    let leaks = files_with(&env.state_dir(), secret.as_bytes());
    assert!(leaks.is_empty(), "{leaks:?}");
}

fn files_with(directory: &camino::Utf8Path, secret: &[u8]) -> Vec<camino::Utf8PathBuf> {
    let mut found = Vec::new();
    for entry in directory.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            found.extend(files_with(&path, secret));
        } else if std::fs::read(&path).unwrap().windows(secret.len()).any(|window| window == secret) {
            found.push(path);
        }
    }
    found
}
