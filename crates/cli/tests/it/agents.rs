//! `agent list|check|explain`.

use insta::assert_snapshot;

use crate::env::TestEnv;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../agent/tests/fixtures");

fn explain(driver: &str, case: &str, exit: &str) -> String {
    let file = format!("{FIXTURES}/{driver}/{case}.stdout");
    let output =
        TestEnv::without_repository().run(&["agent", "explain", driver, "--stdout", &file, "--exit", exit]);
    output.ends_with(0).to_string()
}

#[test]
fn recorded_outputs_of_claude_are_explained() {
    assert_snapshot!(explain("claude", "err-401-maxretries0-stream", "1"), @r"
    auth_failed: Invalid API key · Fix external API key
    - the structured output ends with an error (HTTP 401): Invalid API key · Fix external API key
    blame: system, costs no attempt
    cost $0.00, tokens 0 in, 0 out, turns 1
    final text: Invalid API key · Fix external API key
    ");
    assert_snapshot!(explain("claude", "max-turns-1", "1"), @r"
    needs_continuation: the turn limit was reached
    - the structured output ends with its turn limit
    blame: nobody, costs no attempt
    cost $0.0008, tokens 100 in, 20 out, turns 2
    ");
    assert_snapshot!(explain("claude", "err-529-forever-maxretries2", "1"), @r"
    overloaded
    - the structured output ends with an error (HTTP 529): API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment. If it persists, check your inference gateway (127.0.0.1:40999).
    blame: system, costs no attempt
    cost $0.00, tokens 0 in, 0 out, turns 1
    final text: API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try …
    ");
}

#[test]
fn recorded_outputs_of_the_others_are_explained() {
    let first = |driver: &str| {
        let mut names: Vec<String> = std::fs::read_dir(format!("{FIXTURES}/{driver}"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".stdout").map(ToOwned::to_owned))
            .collect();
        names.sort();
        names.remove(0)
    };
    for driver in ["codex", "gemini", "opencode"] {
        let text = explain(driver, &first(driver), "0");
        assert!(text.contains("blame: "), "{driver}: {text}");
    }
}

#[test]
fn a_killed_agent_is_explained_by_its_signal() {
    let env = TestEnv::without_repository();
    env.run_with_input(&["agent", "explain", "command", "--stdout", "-", "--exit", "-9"], "half a sen")
        .ends_with(0)
        .says("crashed: signal 9 (SIGKILL)");
}

#[test]
fn what_cannot_be_explained_says_why() {
    let env = TestEnv::without_repository();
    assert_snapshot!(env.run(&["agent", "explain", "claude", "--stdout", "missing.json", "--exit", "0"]), @r"
    [stderr]
    error: failed to open file `[REPO]/missing.json`: No such file or directory (os error 2)
    [exit 2]
    ");
    assert_snapshot!(env.run(&["agent", "explain", "clod", "--stdout", "-", "--exit", "0"]), @r"
    [stderr]
    error: invalid value 'clod' for '<DRIVER>': unknown driver `clod`: there are claude, codex, gemini, opencode, crew and command

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn agents_are_listed_with_where_their_programs_are() {
    let env = TestEnv::new().agent_script("runs: []");
    let list = env.json(&["agent", "list"]);
    assert_eq!(list["agents"][0]["name"], "implementer");
    assert_eq!(list["agents"][0]["program"], crate::env::PROGRAM);
    assert_snapshot!(TestEnv::new().run(&["agent", "list"]), @"
    AGENT          DRIVER           MODEL  PROGRAM
    implementer *  claude           -      not found
    code           crew (code)      -      [PROGRAM]
    docs           crew (docs)      -      [PROGRAM]
    gatekeeper     claude           -      not found
    init           crew (init)      -      [PROGRAM]
    qa             crew (qa)        -      [PROGRAM]
    research       crew (research)  -      [PROGRAM]
    review         crew (review)    -      [PROGRAM]
    reviewer       claude           -      not found
    search         crew (search)    -      [PROGRAM]
    test           crew (test)      -      [PROGRAM]
    ");
}

#[test]
fn an_agent_that_is_missing_does_not_conform() {
    assert_snapshot!(TestEnv::new().run(&["agent", "check", "implementer"]), @r"
    bad  found               program `claude` was not found
         hint: install it with `npm install -g @anthropic-ai/claude-code`, or set `program:` for this agent
    [exit 3]
    ");
    assert_snapshot!(TestEnv::new().run(&["agent", "check", "nobody"]), @r"
    [stderr]
    error: unknown agent `nobody`
      --> .rehearsal/config.yaml
    hint: no agents are configured; without a configuration there are `implementer` and the roles of the crew: search, research, code, review, test, qa, docs, init
    [exit 2]
    ");
}

/// What a check says of the agent, without the program's path and what is granted.
fn checked(env: &TestEnv, flags: &[&str]) -> String {
    let output = env.run(&[&["agent", "check", "implementer"], flags].concat()).ends_with(3);
    output.to_string().split("\n\n").next().unwrap().to_owned()
}

#[test]
fn a_mock_that_does_it_all_conforms() {
    let work = "[{ write: { path: hello.txt, content: hello } }, { run: { command: sh check, status: 0 } }, \
                { commit: { message: Greet } }, { say: 'Done. <promise>DONE</promise>' }]";
    let review = "[{ say: '<promise>APPROVE: it greets</promise>' }]";
    let wait = "[{ run: { command: sh check wait } }]";
    let env = TestEnv::new().agent_script(&format!("runs: [{work}, {review}, {wait}]"));
    let output = env.run(&["agent", "check", "implementer", "--timeout", "1m"]).ends_with(0);
    assert_snapshot!(output.to_string().split("\n\nFEATURE").next().unwrap(), @r"
    ok   found               [PROGRAM]
    ok   version             2.1.325
    ok   flags               all that are needed
    ok   confinement         not confined: `sandbox: off`; only the agent's own permission rules apply
    ok   edits               changed a file
    ok   runs the tests      ran the test command
    ok   commits             committed its work
    ok   reports             said that it is done
    ok   decides             approved a change
    ok   ends when killed    ended while a command ran, nothing left

    in a run: not confined: `sandbox: off`; only the agent's own permission rules apply
    - `permission: accept_edits`: it may edit files
    - may write: [REPO], [STATE]/runs/RUN
    - allowed commands: git add, git commit, rehearsal, [PROGRAM]
    ");
}

#[test]
fn an_agent_that_changes_nothing_does_not_conform() {
    let script = "run: [{ say: 'I may not edit. <promise>DONE</promise>' }]";
    assert_snapshot!(checked(&TestEnv::new().agent_script(script), &["--timeout", "1m"]), @r"
    ok   found               [PROGRAM]
    ok   version             2.1.325
    ok   flags               all that are needed
    ok   confinement         not confined: `sandbox: off`; only the agent's own permission rules apply
    bad  edits               not done; its last words: I may not edit. <promise>DONE</promise>
         hint: remove what forbids it from `args:`, `env:` and `permission:` of this agent, or run it in the sandbox: `sandbox: auto`
    bad  runs the tests      not done; its last words: I may not edit. <promise>DONE</promise>
    bad  commits             not done; its last words: I may not edit. <promise>DONE</promise>
    ok   reports             said that it is done
    bad  decides             not done; its last words: I may not edit. <promise>DONE</promise>
         hint: its last message must have the signal that the prompt asks for: see what `args:`, `system_prompt:` and a wrapper of the program change
    bad  ends when killed    not done; its last words: I may not edit. <promise>DONE</promise>
         hint: it ended by itself before it could be killed: look at the rows above
    ");
}

#[test]
fn an_agent_that_hangs_does_not_conform() {
    let env = TestEnv::new().agent_script("run: [hang]");
    assert_snapshot!(checked(&env, &["--timeout", "8s"]), @r"
    ok   found               [PROGRAM]
    ok   version             2.1.325
    ok   flags               all that are needed
    ok   confinement         not confined: `sandbox: off`; only the agent's own permission rules apply
    bad  edits               not done within [TIME]
         hint: give it more time with `--timeout 2m`; `rehearsal run --dry-run` shows its command, to try by hand
    bad  runs the tests      not done within [TIME]
    bad  commits             not done within [TIME]
    bad  reports             not done within [TIME]
    bad  decides             not done within [TIME]
    bad  ends when killed    not done within [TIME]
    ");
}

#[test]
fn an_agent_without_its_login_does_not_conform() {
    let env = TestEnv::new().agent_script("run: [{ error: { kind: auth } }]");
    assert_snapshot!(checked(&env, &["--timeout", "1m"]), @r"
    ok   found               [PROGRAM]
    ok   version             2.1.325
    ok   flags               all that are needed
    ok   confinement         not confined: `sandbox: off`; only the agent's own permission rules apply
    bad  edits               not done: the run ended with auth_failed: Invalid API key · Fix external API key
         hint: `args:`, `env:` or a wrapper of its program keep it from the fake model; `rehearsal run --dry-run` shows its command, to try by hand
    bad  runs the tests      not done: the run ended with auth_failed: Invalid API key · Fix external API key
    bad  commits             not done: the run ended with auth_failed: Invalid API key · Fix external API key
    bad  reports             not done: the run ended with auth_failed: Invalid API key · Fix external API key
    bad  decides             not tried, because of what failed before
    bad  ends when killed    not tried, because of what failed before
    ");
}

#[test]
fn an_agent_without_a_flag_that_protects_is_not_run() {
    let help = "case \"$*\" in *--version*) echo 2.0.0;; *--help*) echo 'Options:'; echo '  -p, --print  Print'; echo \
                '  --output-format <format>  Format'; echo '  --verbose  More';; *) touch ../ran;; esac";
    let env = TestEnv::new().program("claude", help);
    assert_snapshot!(checked(&env, &[]), @r"
    ok   found               [SCRATCH]/bin/claude
    ok   version             2.0.0
    bad  flags               missing: --permission-mode, --dangerously-skip-permissions, --allowedTools, --add-dir
         hint: install a version that has them: `npm install -g @anthropic-ai/claude-code`
    ");
    assert!(!env.scratch.join("ran").exists());
}

#[test]
fn an_agent_that_does_not_answer_is_not_waited_for() {
    let env = TestEnv::new().program("claude", "sleep 600");
    assert_snapshot!(checked(&env, &["--timeout", "1s"]), @r"
    bad  version             no answer to `--help` and `--version` in time
         hint: run the program with `--version` by hand, and install it again if it does not answer
    [exit 3]
    ");
}

#[test]
fn a_required_sandbox_that_cannot_be_had_fails_the_check() {
    let env = TestEnv::new().agent_script("run: [{ say: hi }]").agent_setting("sandbox: required");
    let output =
        env.run_without_namespaces(&["agent", "check", "implementer", "--timeout", "1m"]).ends_with(3);
    output.says("bad  confinement").says("hint: `rehearsal doctor` shows what the sandbox needs");
}
