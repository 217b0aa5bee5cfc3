//! No space left, where tasks are kept and where they are worked on.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::small_disk::SmallDisk;
use crate::work::a_team;

/// What is in `place` lives on a small disk from now on; none where one may not mount.
fn on_a_small_disk(env: &TestEnv, place: &str, size: &str) -> Option<SmallDisk> {
    let place = env.scratch.join(place);
    std::fs::create_dir_all(&place).unwrap();
    SmallDisk::mount(place, size)
}

#[test]
fn a_worker_without_room_for_its_state_says_so_and_goes_on_when_there_is_some() {
    let env = a_team();
    let Some(disk) = on_a_small_disk(&env, "home/.local/share/rehearsal/state", "4m") else { return };
    let env = env.task_of("pull-request", "Say hello", &[]);
    disk.fill();
    for command in [&["work", "--until-idle"][..], &["task", "add", "More", "--flow", "pull-request"]] {
        let said = env.run(command).ends_with(1).to_string();
        let error = said.split("error: ").nth(1).unwrap();
        // Where it is short of room first is a matter of a few bytes.
        assert!(error.to_lowercase().contains("no space left"), "{said}");
        assert!(
            error.contains("\nhint: free some space and run the command again; nothing is lost\n"),
            "{said}"
        );
    }
    disk.free();
    assert_eq!(env.task_now(1)["status"], "incoming");
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
    env.run(&["work", "--until-idle"]).ends_with(0);
    assert_eq!(env.outcomes(), ["done", "approved"]);
    env.must(&["doctor", "--store"]);
}

#[test]
fn a_worker_without_room_for_worktrees_holds_the_line_and_blames_no_task() {
    let env = a_team();
    env.file("large.bin", vec![b'x'; 3 << 20]).commit("Something large");
    let Some(disk) = on_a_small_disk(&env, "home/.local/share/rehearsal/worktrees", "8m") else { return };
    let env = env.task_of("pull-request", "Say hello", &[]).task_of("pull-request", "Say goodbye", &[]);
    disk.fill();
    assert_snapshot!(env.run(&["work", "--workers", "1", "--until-idle"]), @"

    TASK      STATUS   BRANCH  PULL REQUEST  MERGED  RUNS  COST     TITLE
    [TASK-1]  waiting  -       -             -       2     unknown  Say hello
    [TASK-1]: its wait is over (disk_full: no space left: cannot take `[SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]/rehearsal-0`)

    2 runs in [TIME], cost unknown
    0 done; nothing more can be done now: 2 open
    agent:implementer is held: disk_full: no space left: cannot take `[SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]/rehearsal-0`
    next: rehearsal resume agent:implementer
    [stderr]
    work at most 1 task at once
    [TASK-1]  incoming: implementer (run [RUN-01])  Say hello
    [TASK-1]  disk_full: no space left: cannot take `[SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]/rehearsal-0` in [TIME], 0 commits, cost unknown
    [TASK-1]  incoming → incoming, waiting (disk_full: no space left: cannot take `[SCRATCH]/home/.local/share/rehears…)
    [TASK-1]  incoming: implementer (run [RUN-02])  Say hello
    [TASK-1]  disk_full: no space left: cannot take `[SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]/rehearsal-0` in [TIME], 0 commits, cost unknown
    agent:implementer is held: disk_full: no space left: cannot take `[SCRATCH]/home/.local/share/rehearsal/worktrees/repo-[HASH]/rehearsal-0`, until `rehearsal resume agent:implementer`
    [TASK-1]  incoming → incoming, waiting (disk_full: no space left: cannot take `[SCRATCH]/home/.local/share/rehears…)
    [exit 6]
    ");
    for number in [1, 2] {
        assert_eq!(env.task_now(number)["task"]["attempts"], 0);
    }
    disk.free();
    env.must(&["resume", "agent:implementer"]);
    env.run(&["work", "--workers", "1", "--until-idle"]).ends_with(0);
    assert_eq!(env.task_now(2)["status"], "done");
    env.must(&["doctor", "--store"]);
}
