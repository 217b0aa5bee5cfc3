use crate::stage::{Ended, Stage, ended};

fn call(stage: &Stage, prompt: &str) -> Ended {
    let path = stage.root.join("script.yaml");
    ended(stage.mock(&["--script", path.as_str()], &[]).spawn().unwrap(), prompt)
}

#[test]
fn a_script_edits_commits_and_reports_as_an_agent_does() {
    let stage = Stage::new();
    fs_err::write(stage.repo.join("old.txt"), "old").unwrap();
    let script = r#"
run:
  - say: Working on {task}.
  - write: { path: src/hello.txt, content: "hello world of {task}\n" }
  - append: { path: src/hello.txt, content: "bye\n" }
  - patch: { path: src/hello.txt, find: world, replace: moon }
  - delete: old.txt
  - commit: { message: "Say hello for {task}" }
  - run: { command: "echo made > made.txt; exit 3", status: 3 }
  - task_done: current
  - task_done: [a, b]
  - task_block: { id: c, reason: no key }
  - progress: Greeted in iteration {iteration}.
  - result: { outcome: success, decision: approve, comment: "{task} is fine" }
  - say: <promise>COMPLETE</promise>
"#;
    let played = stage.play(script).well();
    assert_eq!(played.stdout, "Working on t42.\n<promise>COMPLETE</promise>\n");
    assert_eq!(stage.read("repo/src/hello.txt"), "hello moon of t42\nbye\n");
    assert_eq!(stage.read("repo/made.txt"), "made\n");
    assert_eq!(stage.git(&["log", "-1", "--format=%s", "--name-only"]), "Say hello for t42\n\nsrc/hello.txt");
    let result = r#"{"outcome":"success","decision":"approve","comment":"t42 is fine"}"#;
    assert_eq!(stage.read("task/result.json").trim_end(), result);
    assert_eq!(
        stage.read("task/report.jsonl"),
        r#"{"type":"task_done","id":"t42","reason":"as scripted"}
{"type":"task_done","id":"a","reason":"as scripted"}
{"type":"task_done","id":"b","reason":"as scripted"}
{"type":"task_blocked","id":"c","reason":"no key"}
{"type":"progress","text":"Greeted in iteration 1."}
"#
    );
}

#[test]
fn each_call_plays_the_next_run_and_one_too_many_is_loud() {
    let stage = Stage::new();
    let path = stage.script("runs:\n  - - say: one\n  - - say: two, iteration {iteration}\n");
    assert_eq!(call(&stage, "").well().stdout, "one\n");
    assert_eq!(call(&stage, "").well().stdout, "two, iteration 2\n");
    let third = call(&stage, "");
    assert_eq!((third.code(), third.stdout.as_str()), (3, ""));
    let expected = format!(
        "mock-agent: {path} has 2 runs, and this is call 3 (counted in {path}.state): it was asked for more than it was \
         told\n"
    );
    assert_eq!(third.stderr, expected);
}

#[test]
fn one_run_for_every_call_has_no_end() {
    let stage = Stage::new();
    stage.script("run:\n  - say: iteration {iteration}\n");
    for iteration in 1..=3 {
        assert_eq!(call(&stage, "").well().stdout, format!("iteration {iteration}\n"));
    }
}

#[test]
fn script_and_state_may_be_named_by_the_environment() {
    let stage = Stage::new();
    let path = stage.script("runs:\n  - - say: one\n");
    let calls = stage.root.join("calls");
    let env = [("REHEARSAL_MOCK_SCRIPT", path.as_str()), ("REHEARSAL_MOCK_STATE", calls.as_str())];
    assert_eq!(ended(stage.mock(&[], &env).spawn().unwrap(), "").well().stdout, "one\n");
    assert_eq!(stage.read("calls"), "1\n");
}

#[test]
fn calls_at_the_same_time_each_get_a_run_of_their_own() {
    let stage = Stage::new();
    let path = stage.script("runs:\n  - - say: a\n  - - say: b\n  - - say: c\n  - - say: d\n");
    let children: Vec<_> =
        (0..4).map(|_| stage.mock(&["--script", path.as_str()], &[]).spawn().unwrap()).collect();
    let mut said: Vec<String> = children.into_iter().map(|child| ended(child, "").well().stdout).collect();
    said.sort();
    assert_eq!(said, ["a\n", "b\n", "c\n", "d\n"]);
}

#[test]
fn a_prompt_that_is_not_the_expected_one_is_shown() {
    let stage = Stage::new();
    stage.script("run:\n  - expect_prompt: { contains: \"Task {task}: add a greeting\" }\n  - say: ok\n");
    assert_eq!(call(&stage, "# Task t42: add a greeting\n").well().stdout, "ok\n");
    let wrong = call(&stage, "# You are an agent\n\nTask t42: remove the greeting\nBe kind.\n");
    assert_eq!(wrong.code(), 3);
    assert_eq!(
        wrong.stderr,
        "mock-agent: the prompt does not contain \"Task t42: add a greeting\"; the nearest part of it is\n    \
         1 | # You are an agent\n    2 | \n    3 | Task t42: remove the greeting\n    4 | Be kind.\n\n"
    );
}

#[test]
fn a_mistake_in_the_script_is_shown_with_its_place_and_uses_up_no_call() {
    let stage = Stage::new();
    let path = stage.script("runs:\n  - - say: hi\n    - wirte: { path: a }\n");
    let refused = call(&stage, "");
    assert_eq!(refused.code(), 2);
    let expected = format!("mock-agent: {path}:3:7: unknown variant `wirte`, expected one of say, write, ");
    assert!(refused.stderr.starts_with(&expected), "{}", refused.stderr);
    assert!(!stage.root.join("script.yaml.state").exists());
}

#[test]
fn what_cannot_be_done_is_told() {
    let stage = Stage::new();
    let error = |script: &str| {
        let refused = stage.play(script);
        assert_eq!(refused.code(), 2, "{script}");
        refused.stderr.replace(stage.root.as_str(), "ROOT")
    };
    fs_err::write(stage.repo.join("a.txt"), "hello world\n").unwrap();
    assert_eq!(
        error("run: [{ patch: { path: a.txt, find: hello moon, replace: x } }]"),
        "mock-agent: `ROOT/repo/a.txt` does not contain \"hello moon\"; the nearest part of it is\n    1 | hello world\n\n"
    );
    assert_eq!(
        error("run: [{ usage: { input: 1, cached: 2, output: 0 } }]"),
        "mock-agent: `cached` is `2`: expected no more than `input`, of which it is a part\n"
    );
    assert_eq!(
        error("run: [{ write: { path: ../a.txt, content: x } }]"),
        "mock-agent: `../a.txt` is outside the worktree; `write_outside` is for that\n"
    );
    assert_eq!(
        error("run: [{ run: { command: \"echo no; exit 1\", status: 0 } }]"),
        "mock-agent: `echo no; exit 1` ended with exit status: 1 instead of exit status 0:\nno\n\n"
    );
}

#[test]
fn a_missing_variable_is_named() {
    let stage = Stage::new();
    let path = stage.script("run: [{ task_done: current }]");
    let args = ["--script", path.as_str()];
    let mut command = stage.mock(&args, &[]);
    command.env_remove("REHEARSAL_TASK_ID");
    let refused = ended(command.spawn().unwrap(), "");
    assert_eq!(refused.stderr, "mock-agent: `REHEARSAL_TASK_ID` is not set\n");
    assert_eq!(refused.code(), 2);
}
