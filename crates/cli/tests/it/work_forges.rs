//! Where work goes: a directory, GitHub played by `mock-gh`, nowhere yet.

use insta::assert_snapshot;

use crate::env::{PROGRAM, TestEnv};
use crate::work::a_team;

/// A bare repository beside the checkout, as its `origin`.
fn with_origin(env: TestEnv) -> TestEnv {
    env.git(&["init", "--quiet", "--bare", "--initial-branch=main", "../origin.git"]);
    env.git(&["remote", "add", "origin", "../origin.git"]);
    env.git(&["push", "--quiet", "origin", "main"]);
    env
}

#[test]
fn a_remote_that_is_a_directory_gets_the_work() {
    let env = with_origin(a_team()).task_of("pull-request", "Say hello", &[]);
    env.run(&["doctor"]).says("local: [REPO]/../origin.git (remote origin, branch main)");
    env.run(&["work", "--until-idle"]).ends_with(0).says("next: git pull origin main");
    env.git(&["pull", "--quiet", "origin", "main"]);
    assert_eq!(env.read("hello.txt"), "hi");
    let branches = env.git(&["ls-remote", "--heads", "origin"]);
    assert!(branches.contains("refs/heads/rehearsal/"), "{branches}");
}

#[test]
fn github_is_used_through_its_own_program() {
    let env = with_origin(a_team()).config("forge: { kind: github }").task_of("pull-request", "Say hello", &[]);
    env.git(&["push", "--quiet", "origin", "main"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    let gh = env.scratch.join("gh/gh");
    std::fs::create_dir(gh.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(PROGRAM, &gh).unwrap();
    let (state, log) = (env.scratch.join("gh/state.json"), env.scratch.join("gh/calls.log"));
    let env = env
        .var("REHEARSAL_GH", gh.as_str())
        .var("GH_STATE_FILE", state.as_str())
        .var("GH_MOCK_LOG", log.as_str());
    env.run(&["work", "--until-idle"])
        .ends_with(0)
        .says("https://github.com/test/repo/pull/1")
        .says("1 task done");
    env.git(&["pull", "--quiet", "origin", "main"]);
    assert_eq!(env.read("hello.txt"), "hi");
    let calls = std::fs::read_to_string(&log).unwrap();
    assert_eq!(calls.matches("\"pr\",\"create\"").count(), 1, "{calls}");
    assert_eq!(calls.matches("\"pr\",\"merge\"").count(), 1, "{calls}");
}

#[test]
fn a_destination_that_cannot_be_used_is_told_before_anything_is_begun() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    env.git(&["remote", "add", "origin", "https://ada:secret@gitlab.example/ada/greet.git"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    env.git(&["remote", "set-url", "origin", "../nowhere.git"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    env.git(&["init", "--quiet", "--bare", "../empty.git"]);
    env.git(&["remote", "set-url", "origin", "../empty.git"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    env.git(&["clone", "--quiet", ".", "../clone"]);
    env.git(&["remote", "set-url", "origin", "../clone"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    env.git(&["remote", "remove", "origin"]);
    let env = env.config("forge: { remote: upstream }");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    assert_eq!(env.runs().len(), 0);
}

#[test]
fn worktrees_cannot_be_inside_of_the_repository() {
    let env = a_team().config("worktrees: { directory: trees }");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
}
