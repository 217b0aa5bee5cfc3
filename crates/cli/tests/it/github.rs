//! `mock-gh`: GitHub's program, played.

use insta::assert_snapshot;

use crate::env::{PROGRAM, TestEnv};

#[test]
fn a_shell_script_that_calls_gh_gets_the_stand_in() {
    let env = TestEnv::new();
    std::os::unix::fs::symlink(PROGRAM, env.scratch.join("bin/gh")).unwrap();
    let script = "export GH_STATE_FILE=../gh.json GH_MOCK_LOG=../gh.log GH_MOCK_PR_NUMBER=42
        gh pr create --head topic --base main --title 'Say hello' --body-file - < README.md
        gh pr view 42
        gh pr view 42 --json title,state --jq .title
        GH_MOCK_MERGE_FAIL=true gh pr merge 42 --merge || echo refused
        gh pr merge 42 --merge
        gh pr view --json state
        gh pr frobnicate 42 || echo loud
        cat ../gh.log";
    let output = env.command("sh").args(["-c", script]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_snapshot!(said, @r##"
    https://github.com/test/repo/pull/42
    {"mergeStateStatus":"CLEAN","number":42,"url":"https://github.com/test/repo/pull/42"}
    Say hello
    refused
    ✓ Merged pull request #42 (Say hello)
    {"state":"MERGED"}
    loud
    {"args":["pr","create","--head","topic","--base","main","--title","Say hello","--body-file","-"],"input":"# Greetings\n","exit":0}
    {"args":["pr","view","42"],"exit":0}
    {"args":["pr","view","42","--json","title,state","--jq",".title"],"exit":0}
    {"args":["pr","merge","42","--merge"],"exit":1}
    {"args":["pr","merge","42","--merge"],"exit":0}
    {"args":["pr","view","--json","state"],"exit":0}
    {"args":["pr","frobnicate","42"],"exit":2}
    "##);
}

#[test]
fn its_help_is_ours_and_its_flags_are_not() {
    let env = TestEnv::without_repository();
    assert!(env.run(&["mock-gh", "--help"]).ends_with(0).stdout.contains("GH_STATE_FILE"));
    assert!(env.run(&["mock-gh", "--version"]).ends_with(0).stdout.starts_with("gh version "));
}
