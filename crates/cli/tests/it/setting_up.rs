//! `init`, `doctor`, `demo`, `completions`, `schema`.

use std::io::Write;

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn init_looks_around_and_writes_a_configuration_once() {
    let env = TestEnv::new();
    env.file("Cargo.toml", "[package]\nname = \"greetings\"\n")
        .file("src/lib.rs", "#[test]\nfn greets() {}\n");
    assert_snapshot!(env.run(&["init"]), @"
    base branch: main
    tests: cargo-test (Cargo.toml)
    agents: none found
    .rehearsal/scenarios/first-steps.yaml is written, a scenario to begin with
    .rehearsal/scenarios/rejected-once.yaml is written, a scenario to begin with
    .rehearsal/scenarios/worker-killed.yaml is written, a scenario to begin with
    .rehearsal/config.yaml is written; read it, then:
    next: rehearsal session new NAME
    next: rehearsal doctor
    next: rehearsal rehearse --trace
    ");
    assert_snapshot!(env.read(".rehearsal/config.yaml"), @"
    # yaml-language-server: $schema=config.schema.json
    # Settings of this repository for `rehearsal`. Everything is optional; `rehearsal config show --origin` shows
    # what holds and why, and `rehearsal schema config` the JSON Schema of this file.

    # The branch that work starts from.
    base_branch: main

    # The agent that `rehearsal run` uses.
    agent: implementer

    agents:
      implementer:
        driver: claude              # claude, codex, gemini, opencode, crew (our own), or command (any program)
        # model: MODEL                # the agent's own choice otherwise
        # permission: accept_edits    # plan: only look; everything only with `run --trust`
        # timeout: 1h                 # the longest a run may take
        # idle_timeout: 15m           # the longest it may be silent
        # repeated_calls: 25          # identical tool calls in a row that end the run
        # budget: { usd: 5, turns: 100 }
        # pass_env: [MY_API_KEY]      # variables it may see beyond its own keys

    loop:
      iterations: 10
      # max_failures: 3               # failed runs in a row that end the loop
      # max_cost: 10                  # dollars
      # max_wait: 6h                  # for rate limits and quotas

    testing:
      framework: cargo-test

    # The flow of new tasks: loop, pull-request, approve, plan, or one of your own in .rehearsal/flows.
    # flow: loop

    # How `rehearsal work` works.
    # work:
    #   workers: 2                    # tasks at once in one process
    #   at_once: 8                    # tasks at once in all processes
    #   lease: 90s                    # a worker that is silent for so long loses its task

    # Each task that `rehearsal work` takes has a worktree of its own.
    # worktrees:
    #   directory: ../worktrees       # in your data directory otherwise
    #   setup: npm ci                 # makes a fresh one ready for work
    #   keep_warm: 4                  # finished ones kept for the next tasks

    # Where the work goes.
    # forge:
    #   kind: auto                    # github (through gh), or local: a bare repository on this machine
    #   remote: origin
    ");
    assert_snapshot!(env.run(&["init"]), @r"
    [stderr]
    error: `.rehearsal/config.yaml` is already there
    hint: `rehearsal config show --origin` shows what it says; `rehearsal init --force` writes it anew
    [exit 2]
    ");
    env.file(".rehearsal/config.yaml", "agent: [");
    env.must(&["init", "--force"]);
    env.must(&["config", "show"]);
}

#[test]
fn a_healthy_repository_has_nothing_bad() {
    let env = TestEnv::new()
        .session("greet")
        .agent_script("runs: []")
        .var("ANTHROPIC_API_KEY", "sk-ant-api03-Zq3vT8xYw1LmN5pR7sUb");
    assert_snapshot!(env.run(&["doctor"]), @"
    ok    git                 [VERSION]
    ok    supervision         agents and all that they start can be ended
    ok    repository          [REPO]
    ok    configuration       .rehearsal/config.yaml
    ok    agent implementer   claude: [PROGRAM]
    ok    agent implementer   not confined: `sandbox: off`; only the agent's own permission rules apply
    note  tests               none found
          hint: set `command:` under `testing:` in the configuration
    ok    flows               0 of your own
    ok    worktrees           [SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]
    ok    forge               local: [SCRATCH]/home/.local/share/rehearsal/remotes/repo-[HASH].git (branch main)
    ok    store               every task is what its events say
    ok    disk                [SIZE] free
    [SANDBOX]
    ");
}

#[test]
fn what_does_not_work_is_reported_with_what_to_do() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["doctor"]), @"
    ok    git                 [VERSION]
    ok    supervision         agents and all that they start can be ended
    ok    repository          [REPO]
    ok    configuration       defaults only
    bad   agent implementer   claude: `claude` is not on the PATH
          hint: install it, or set `program:`; `rehearsal agent list` shows what is found
    note  tests               none found
          hint: set `command:` under `testing:` in the configuration
    ok    flows               0 of your own
    ok    worktrees           [SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]
    ok    forge               local: [SCRATCH]/home/.local/share/rehearsal/remotes/repo-[HASH].git (branch main)
    ok    store               every task is what its events say
    ok    disk                [SIZE] free
    [SANDBOX]
    [exit 3]
    ");
    let env = TestEnv::new();
    env.file(".rehearsal/config.yaml", "agnts: {}\n");
    env.file(".rehearsal/flows/mine.yaml", "name: [\n");
    env.file(".rehearsal/state/rehearsal.db", "this is no database, and long enough to be looked at");
    assert_snapshot!(env.run(&["doctor"]), @"
    ok    git                 [VERSION]
    ok    supervision         agents and all that they start can be ended
    ok    repository          [REPO]
    bad   configuration       .rehearsal/config.yaml:1:1: unknown field `agnts`, expected one of $schema, base_branch, agent, loop, store, flow, work, worktrees, forge, testing, check, quality, agents
          hint: fix the file; `rehearsal schema config` has its form
    note  tests               none found
          hint: set `command:` under `testing:` in the configuration
    bad   flows               .rehearsal/flows/mine.yaml:1:7: unclosed bracket '['
          hint: `rehearsal flow check` shows it whole
    bad   store               `[STATE]/rehearsal.db` is not a database of this program
          hint: restore the database from a backup, or move it away and begin without tasks
    ok    disk                [SIZE] free
    [SANDBOX]
    [exit 3]
    ");
    assert_snapshot!(TestEnv::without_repository().run(&["doctor"]), @r"
    ok    git                 [VERSION]
    ok    supervision         agents and all that they start can be ended
    bad   repository          `[REPO]` is not inside a git repository
          hint: go to a git repository, or run `git init`
    [SANDBOX]
    [exit 3]
    ");
}

#[test]
fn a_test_command_of_the_settings_is_named() {
    let env = TestEnv::new().agent_script("runs: []").config("testing: { command: make test }");
    env.run(&["doctor"]).says("ok    tests               `make test` (testing.command)");
}

#[test]
fn a_repository_of_another_user_is_reported_with_what_to_do() {
    let env = TestEnv::new().agent_script("runs: []");
    let change = |path: &camino::Utf8Path| std::os::unix::fs::chown(path, Some(4711), None);
    if change(&env.repo).and_then(|()| change(&env.repo.join(".git"))).is_err() {
        drop(writeln!(std::io::stderr(), "left out: this takes root"));
        return;
    }
    let output = env.run(&["doctor"]).ends_with(3);
    output
        .says("bad   repository          `[REPO]` belongs to another user, so git refuses to work there")
        .says("hint: run `git config --global --add safe.directory [REPO]`, or change its owner");
}

#[test]
fn a_repository_that_cannot_be_written_is_reported() {
    let env = TestEnv::new().agent_script("runs: []");
    let Some(read_only) = env.read_only() else { return };
    let output = read_only.run(&["doctor"]).ends_with(3);
    output
        .says("bad   repository          `[REPO]` cannot be written: Read-only file system (os error 30)")
        .says("hint: agents and git write there: see who owns it")
        .says("bad   data directory")
        .says("make it writable, or set XDG_DATA_HOME to another directory");
}

#[test]
fn a_codex_whose_own_sandbox_does_not_start_is_reported() {
    let Some(directory) = crate::real_agents::agents() else { return };
    let program = format!("program: {directory}/codex");
    let env = TestEnv::new().agent_setting("driver: codex").agent_setting(&program);
    let output = env.run_without_namespaces(&["doctor"]).ends_with(3);
    output.says("note  agent implementer   not confined, because the sandbox is not available here").says(
        "bad   agent implementer   codex's own sandbox does not start, so it can run no command: bwrap: ",
    );
    let env = env.agent_setting("sandbox: off");
    env.run(&["doctor"]).never_says("own sandbox does not start");
}

#[test]
fn the_demo_shows_a_whole_loop_and_can_be_kept() {
    let env = TestEnv::without_repository();
    let output = env.run(&["demo", "--keep", "greet"]).ends_with(0);
    for text in [
        "tests before: 0 passed, 3 failed",
        "tests after:  3 passed, 0 failed",
        "3 iterations",
        "Tell how to use it",
    ] {
        assert!(output.stdout.contains(text), "{output}");
    }
    env.run(&["--repo", "greet", "runs", "list"]).ends_with(0);
    assert_eq!(env.json(&["--repo", "greet", "status"])["sessions"][0]["done"], 3);
    assert_snapshot!(env.run(&["demo", "--keep", "greet"]), @r"
    [stderr]
    error: `[REPO]/greet` is not empty
    hint: name a new directory
    [exit 2]
    ");
    let document = env.json(&["demo"]);
    assert_eq!(document["after"]["failed"], 0);
    let left: Vec<_> = std::fs::read_dir(env.scratch.join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn schemas_and_completions_are_printed() {
    let env = TestEnv::without_repository();
    let names = env.json(&["schema"]);
    for schema in names["schemas"].as_array().unwrap() {
        let name = schema["name"].as_str().unwrap();
        assert!(env.run(&["schema", name]).ends_with(0).stdout.contains("\"$schema\""), "{name}");
    }
    assert!(env.run(&["completions", "bash"]).ends_with(0).stdout.contains("_rehearsal()"));
    assert_snapshot!(env.run(&["schema", "nothing"]), @r"
    [stderr]
    error: there is no schema `nothing`
    hint: `rehearsal schema` lists all of them
    [exit 2]
    ");
}
