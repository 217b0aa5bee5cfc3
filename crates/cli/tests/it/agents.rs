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
    bad  found                 program `claude` was not found
    hint: install claude, or set `program:` for this agent
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
