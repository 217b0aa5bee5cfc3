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
    env.run(&["doctor"]).says("local: [SCRATCH]/origin.git (remote origin, branch main)");
    env.run(&["work", "--until-idle"]).ends_with(0).says("next: git pull --no-rebase --no-edit origin main");
    env.git(&["pull", "--quiet", "origin", "main"]);
    assert_eq!(env.read("hello.txt"), "hi\n");
    let branches = env.git(&["ls-remote", "--heads", "origin"]);
    assert!(branches.contains("refs/heads/rehearsal/"), "{branches}");
}

#[test]
fn github_is_used_through_its_own_program() {
    let env =
        with_origin(a_team()).config("forge: { kind: github }").task_of("pull-request", "Say hello", &[]);
    env.git(&["push", "--quiet", "origin", "main"]);
    env.git(&["remote", "set-url", "origin", env.scratch.join("origin.git").as_str()]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: `gh` was not found, and GitHub is used through it
    hint: install it from https://cli.github.com and run `gh auth login`
    hint: set `kind: local` under `forge:` in .rehearsal/config.yaml to work without GitHub
    [exit 5]
    ");
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
        .says("https://github.com/test/repo/pull/99")
        .says("1 task done");
    env.git(&["pull", "--quiet", "origin", "main"]);
    assert_eq!(env.read("hello.txt"), "hi\n");
    let calls = std::fs::read_to_string(&log).unwrap();
    assert_eq!(calls.matches("\"pr\",\"create\"").count(), 1, "{calls}");
    assert_eq!(calls.matches("\"pr\",\"merge\"").count(), 1, "{calls}");
}

#[test]
fn a_destination_that_cannot_be_used_is_told_before_anything_is_begun() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    env.git(&["remote", "add", "origin", "https://ada:secret@gitlab.example/ada/greet.git"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: the remote `origin` is on `gitlab.example`, and pull requests there are not known
    hint: set `kind: local` under `forge:` in .rehearsal/config.yaml: work is merged into a repository on this machine
    hint: set `kind: github` if it is a GitHub of your own that `gh` is logged in to
    [exit 5]
    ");
    env.git(&["remote", "set-url", "origin", "../nowhere.git"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: the remote `origin` is not there: fatal: '../nowhere.git' does not appear to be a git repository
    fatal: Could not read from remote repository.

    Please make sure you have the correct access rights
    and the repository exists.
    hint: `git remote -v` shows where it points
    [exit 4]
    ");
    env.git(&["init", "--quiet", "--bare", "../empty.git"]);
    env.git(&["remote", "set-url", "origin", "../empty.git"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: the remote `origin` has no branch `main`
    hint: `git push origin main` brings it there
    [exit 4]
    ");
    env.git(&["clone", "--quiet", ".", "../clone"]);
    env.git(&["remote", "set-url", "origin", "../clone"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: `[SCRATCH]/clone`, the remote `origin`, has `main` checked out: it cannot be moved
    hint: use a bare repository as the remote (`git clone --bare`), or check out another branch there
    [exit 4]
    ");
    env.git(&["remote", "remove", "origin"]);
    let env = env.config("forge: { remote: upstream }");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: there is no remote `upstream`, which .rehearsal/config.yaml names
    hint: `git remote -v` lists those that there are
    [exit 2]
    ");
    assert_eq!(env.runs().len(), 0);
}

#[test]
fn worktrees_cannot_be_inside_of_the_repository() {
    let env = a_team().config("worktrees: { directory: trees }");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: worktrees cannot be kept in `[REPO]/trees`, inside of the repository `[REPO]`
    hint: set `directory:` under `worktrees:` to a directory outside of the repository
    [exit 4]
    ");
}

/// Puts a git in the way that refuses what this line of shell does not like, and is the real one otherwise.
fn with_a_git_that(env: &TestEnv, refuses: &str) {
    use std::os::unix::fs::PermissionsExt;
    let git = env.scratch.join("bin/git");
    let real = std::fs::read_link(&git).unwrap();
    std::fs::remove_file(&git).unwrap();
    let script = format!("#!/bin/sh\n{refuses}\nexec {} \"$@\"\n", real.display());
    std::fs::write(&git, script).unwrap();
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_git_that_is_some_years_old_is_enough() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    // Such as 2.39, which many systems have: `fetch` does not know it yet.
    with_a_git_that(
        &env,
        "case \" $* \" in *' fetch '*' --porcelain '*) echo \"error: unknown option porcelain\" >&2; exit 129;; esac",
    );
    env.run(&["work", "--until-idle"]).ends_with(0);
    // Now the base is ahead of the checkout, and has to be fetched.
    let env = env.task_of("pull-request", "Say it again", &[]);
    env.run(&["work", "--until-idle"]).ends_with(0).says("1 task done");
}

#[test]
fn a_git_that_is_too_old_is_told_by_the_doctor() {
    let env = TestEnv::new();
    with_a_git_that(&env, "case \" $* \" in *' --version '*) echo git version 2.30.2; exit 0;; esac");
    env.run(&["doctor"])
        .ends_with(3)
        .says("is too old: merges are tried out with 2.38 or newer")
        .says("hint: upgrade git");
}
