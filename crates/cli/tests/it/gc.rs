//! `gc`: what nobody needs goes; work that is nowhere else stays.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::work::{a_team, own_remote};

#[test]
fn a_warm_worktree_goes_and_a_needed_one_stays() {
    let env = a_team().task_of("pull-request", "Say hello", &[]).task_of("approve", "Say goodbye", &[]);
    env.run(&["work", "--workers", "2", "--until-idle"]).ends_with(7);
    let worktrees = || env.git(&["worktree", "list"]).lines().count();
    let before = worktrees();
    // Which of the two got which place is a matter of chance.
    let said = env.run(&["gc", "--dry-run"]);
    said.says("(no task): would be removed")
        .says("(task [TASK-2]): kept: its task is not over")
        .says("1 thing would be removed, 1 kept");
    assert_eq!(worktrees(), before);
    env.run(&["gc"]).ends_with(0);
    assert!(worktrees() < before);
    env.must(&["approve", &env.task_id(2)]);
    env.run(&["work", "--until-idle"]).ends_with(0);
}

#[test]
fn work_that_is_nowhere_else_is_kept() {
    let env = TestEnv::new()
        .agent_script("run: [{ write: { path: hello.txt, content: hi } }, { commit: { message: Say hi } }, { write: { path: more.txt, content: hi } }, { result: { outcome: failure, reason: no idea } }, { say: no }]")
        .task_of("pull-request", "Say hello", &[]);
    env.run(&["work", "--until-idle"]).ends_with(6);
    assert_snapshot!(env.run(&["gc"]), @"
    [SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]/rehearsal-0 (task [TASK-1]): kept: 1 uncommitted file: more.txt; 1 commit that nothing else has, up to [COMMIT10]
    0 things removed, 1 kept
    ");
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn what_a_killed_process_left_is_swept() {
    let env = a_team();
    let old = "refs/rehearsal/fetch/01890000-0000-7000-8000-000000000000";
    env.git(&["update-ref", old, "HEAD"]);
    env.git(&["update-ref", "refs/rehearsal/pr/1", "HEAD"]);
    env.must(&["config", "show"]);
    let workers = env.state_dir().join("workers");
    std::fs::create_dir_all(&workers).unwrap();
    std::fs::write(workers.join("01890000-0000-7000-8000-000000000000"), "").unwrap();
    assert_snapshot!(env.run(&["gc"]), @"
    refs/rehearsal/fetch/[UUID]: removed
    trace of the dead worker [UUID]: removed
    2 things removed, 0 kept
    ");
    assert_eq!(env.git(&["for-each-ref", "--format=%(refname)", "refs/rehearsal"]), "refs/rehearsal/pr/1");
}

/// Work is pushed, then more is done that stays here, and the task fails.
const FAILS_LATER: &str = "\
name: later
start: todo
states:
  todo: { agent: implementer, steps: [commit_leftovers, push_branch], on: { done: more }, otherwise: failed }
  more: { agent: finisher, steps: [commit_leftovers, run_tests], on: { done: done }, otherwise: failed }
  done: { end: success }
  failed: { end: failure }
";

fn fails_after_a_push(finisher: &str) -> TestEnv {
    let env = a_team().other_agent("finisher", finisher);
    env.file(".rehearsal/flows/later.yaml", FAILS_LATER);
    env.file("run-tests", "test ! -e broken && echo ok\n").commit("A flow");
    let env = env.task_of("later", "Say hello", &[]);
    env.run(&["work", "--until-idle"]).ends_with(6);
    env
}

#[test]
fn what_was_done_after_the_last_push_of_a_failed_task_is_kept() {
    let env = fails_after_a_push(
        "run: [{ write: { path: broken, content: x } }, { commit: { message: Break it } }, { say: done }]",
    );
    assert_snapshot!(env.run(&["gc"]), @"
    [SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]/rehearsal-0 (task [TASK-1]): kept: 1 commit that nothing else has, up to [COMMIT10]
    0 things removed, 1 kept
    ");
    let worktree = env.json(&["gc", "--dry-run"])["worktrees"][0]["path"].as_str().unwrap().to_owned();
    assert_eq!(env.git(&["-C", &worktree, "log", "-1", "--format=%s"]), "Break it");
}

#[test]
fn the_worktree_of_a_failed_task_goes_when_the_remote_has_all_of_it() {
    let env = fails_after_a_push(
        "run: [{ write: { path: notes.txt, content: x } }, { result: { outcome: failure, reason: no idea } }, { say: no }]",
    );
    env.run(&["gc"]).ends_with(0).says("kept: 1 uncommitted file: notes.txt");
    let worktree = env.json(&["gc", "--dry-run"])["worktrees"][0]["path"].as_str().unwrap().to_owned();
    std::fs::remove_file(format!("{worktree}/notes.txt")).unwrap();
    // As long as the branch is there.
    let remote = own_remote(&env);
    let branch = format!("rehearsal/{}", env.task_id(1));
    env.git(&["-C", &remote, "branch", "--quiet", "-m", &branch, "elsewhere"]);
    env.run(&["gc"]).ends_with(0).says("kept: 1 commit that nothing else has");
    env.git(&["-C", &remote, "branch", "--quiet", "-m", "elsewhere", &branch]);
    env.run(&["gc", "--dry-run"]).says("(task [TASK-1]): would be removed");
    env.run(&["gc"]).says("(task [TASK-1]): removed");
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
}
