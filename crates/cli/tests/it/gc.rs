//! `gc`: what nobody needs goes; work that is nowhere else stays.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::work::a_team;

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
    env.file(".rehearsal/state/workers/01890000-0000-7000-8000-000000000000", "");
    assert_snapshot!(env.run(&["gc"]), @"
    refs/rehearsal/fetch/[UUID]: removed
    trace of the dead worker [UUID]: removed
    2 things removed, 0 kept
    ");
    assert_eq!(env.git(&["for-each-ref", "--format=%(refname)", "refs/rehearsal"]), "refs/rehearsal/pr/1");
}
