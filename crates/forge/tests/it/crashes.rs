//! What a crash can leave, and that the next attempt heals it.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Fence;
use rehearsal_forge::{Collected, GcMode, Origin, Worktree, WorktreeSettings, Worktrees};
use rustix::process::{Pid, Signal, kill_process};

use crate::env::{TestEnv, agent_commits, git, head, status, task};

/// Tells the helper which place to prepare.
const HELPER: &str = "REHEARSAL_TEST_PREPARE";
/// The setup command of the helper.
const SETUP: &str = "REHEARSAL_TEST_FORGE_SETUP";

/// A slot as a crash in the middle of `prepare` leaves it, and one thing more that is wrong.
async fn heals(name: &str, damage: impl Fn(&TestEnv, &Utf8Path, &Utf8Path)) {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let record = env.under.join("rehearsal-0.json");
    let text = fs_err::read_to_string(&record).unwrap().replace("\"ready\"", "\"preparing\"");
    fs_err::write(&record, text.replace("}}", "},\"from\":null}")).unwrap();
    let admin = env.repo.join(".git/worktrees/rehearsal-0");
    damage(&env, &worktree.path, &admin);
    let healed = env.worktrees().prepare(&task("t1"), Fence(2), "main").await;
    let healed = healed.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_whole(name, &env, &healed).await;
}

async fn assert_whole(name: &str, env: &TestEnv, worktree: &Worktree) {
    assert_eq!(status(&worktree.path).await, "", "{name}");
    assert_eq!(head(&worktree.path), head(&env.repo), "{name}");
    assert_eq!(git(&env.repo, &["worktree", "list"]).lines().count(), 2, "{name}");
    assert_eq!(env.leftover_locks(), Vec::<String>::new(), "{name}");
}

fn touch(path: impl AsRef<Utf8Path>) {
    fs_err::write(path.as_ref(), "").unwrap();
}

#[tokio::test]
async fn whatever_a_killed_git_left_of_a_new_worktree_is_healed() {
    heals("nothing but the record", |env, dir, admin| {
        fs_err::remove_dir_all(dir).unwrap();
        fs_err::remove_dir_all(admin).unwrap();
        fs_err::remove_dir(env.repo.join(".git/worktrees")).unwrap();
    })
    .await;
    heals("an entry with nothing in it", |_, dir, admin| {
        fs_err::remove_dir_all(dir).unwrap();
        fs_err::remove_dir_all(admin).unwrap();
        fs_err::create_dir(admin).unwrap();
    })
    .await;
    heals("an entry that is being made", |_, dir, admin| {
        fs_err::remove_dir_all(dir).unwrap();
        fs_err::remove_dir_all(admin).unwrap();
        fs_err::create_dir(admin).unwrap();
        fs_err::write(admin.join("locked"), "initializing").unwrap();
        touch(admin.join("gitdir"));
    })
    .await;
    heals("no directory", |_, dir, _| fs_err::remove_dir_all(dir).unwrap()).await;
    heals("no entry", |_, _, admin| fs_err::remove_dir_all(admin).unwrap()).await;
    heals("an empty directory", |_, dir, _| {
        fs_err::remove_dir_all(dir).unwrap();
        fs_err::create_dir(dir).unwrap();
    })
    .await;
    heals("initializing, with a broken HEAD", |_, _, admin| {
        fs_err::write(admin.join("locked"), "initializing").unwrap();
        fs_err::write(admin.join("HEAD"), "0000000000000000000000000000000000000000\n").unwrap();
    })
    .await;
    heals("an empty HEAD", |_, _, admin| touch(admin.join("HEAD"))).await;
    heals("no commondir", |_, _, admin| fs_err::remove_file(admin.join("commondir")).unwrap()).await;
    heals("HEAD.lock", |_, _, admin| touch(admin.join("HEAD.lock"))).await;
    heals("index.lock on a part of the files", |_, dir, admin| {
        touch(admin.join("index.lock"));
        fs_err::remove_file(admin.join("index")).unwrap();
        fs_err::remove_file(dir.join("README.md")).unwrap();
    })
    .await;
    heals("a torn index", |_, _, admin| fs_err::write(admin.join("index"), "DIRC").unwrap()).await;
    heals("no link back", |_, dir, _| fs_err::remove_file(dir.join(".git")).unwrap()).await;
}

#[tokio::test]
async fn locks_of_the_users_checkout_stand_in_nobodys_way_and_stay() {
    let env = TestEnv::new();
    let locks = ["index.lock", "HEAD.lock", "config.lock", "refs/heads/main.lock", "shallow.lock"];
    let locks = locks.map(|name| env.repo.join(".git").join(name));
    locks.iter().for_each(touch);
    let worktrees = env.worktrees();
    for (fence, name) in [(1, "t1"), (2, "t1"), (1, "t2")] {
        worktrees.prepare(&task(name), Fence(fence), "main").await.unwrap();
        assert!(locks.iter().all(|lock| lock.exists()));
    }
    worktrees.release(&task("t1"), Fence(2), &[]).await.unwrap();
    assert_eq!(worktrees.prepare(&task("t3"), Fence(2), "main").await.unwrap().origin, Origin::Warm);
}

#[tokio::test]
async fn a_lock_of_all_references_that_a_killed_git_left_is_removed() {
    let env = TestEnv::new();
    let lock = env.repo.join(".git/packed-refs.lock");
    touch(&lock);
    env.worktree("t1").await;
    assert!(!lock.exists());
}

#[tokio::test]
async fn files_in_the_way_that_are_not_ours_are_left_alone() {
    let env = TestEnv::new();
    fs_err::create_dir_all(env.under.join("rehearsal-0")).unwrap();
    touch(env.under.join("rehearsal-0/mine.txt"));
    let worktree = env.worktree("t1").await;
    assert_eq!(worktree.slot, 1);
    assert!(env.under.join("rehearsal-0/mine.txt").exists());
}

#[tokio::test]
async fn work_survives_the_loss_of_its_directory() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let first = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    let commit = agent_commits(&first.path, "a.txt", "work\n");
    fs_err::remove_dir_all(&first.path).unwrap();
    let error = worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap_err();
    assert!(error.to_string().contains("1 commit that nothing else has"), "{error}");
    let second = worktrees.prepare(&task("t1"), Fence(2), "main").await.unwrap();
    assert_eq!((second.head, second.origin), (commit, Origin::Rebuilt { is_own: true, set_aside: None }));
    assert_eq!(status(&second.path).await, "");
}

#[tokio::test]
async fn files_survive_the_loss_of_their_entry() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let first = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    fs_err::write(first.path.join("a.txt"), "not committed\n").unwrap();
    fs_err::remove_dir_all(env.repo.join(".git/worktrees")).unwrap();
    let error = worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap_err();
    assert!(error.to_string().ends_with("it cannot be read: git has lost its entry"), "{error}");
    let second = worktrees.prepare(&task("t1"), Fence(2), "main").await.unwrap();
    let Origin::Rebuilt { set_aside: Some(aside), .. } = second.origin else { panic!("{:?}", second.origin) };
    assert_eq!(fs_err::read_to_string(aside.join("a.txt")).unwrap(), "not committed\n");
    assert_eq!(status(&second.path).await, "");
}

#[tokio::test]
async fn a_killed_git_of_the_last_attempt_does_not_stop_the_next() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let first = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    fs_err::write(first.path.join("a.txt"), "half\n").unwrap();
    touch(env.repo.join(".git/worktrees/rehearsal-0/index.lock"));
    let second = worktrees.prepare(&task("t1"), Fence(2), "main").await.unwrap();
    git(&second.path, &["add", "a.txt"]);
    assert_eq!(second.origin, Origin::Reused);
}

/// Not a test of its own: what the next ones kill.
#[tokio::test]
async fn helper_prepares_and_clears() {
    let Ok(root) = std::env::var(HELPER) else { return };
    let root = Utf8PathBuf::from(root);
    let settings = WorktreeSettings { setup: std::env::var(SETUP).ok(), keep_warm: 1 };
    let worktrees = Worktrees::open(&root.join("repo"), &root.join("worktrees"), settings).unwrap();
    for fence in 1.. {
        worktrees.prepare(&task("t1"), Fence(fence), "main").await.unwrap();
        worktrees.release(&task("t1"), Fence(fence), &[]).await.unwrap();
        if fence % 3 == 0 {
            worktrees.gc(&BTreeSet::new(), &[], GcMode::Delete).await.unwrap();
        }
    }
}

fn start_helper(env: &TestEnv) -> Child {
    helper(env).spawn().unwrap()
}

fn helper(env: &TestEnv) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "crashes::helper_prepares_and_clears", "--nocapture"])
        .env(HELPER, env.root.as_str())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    command
}

#[tokio::test]
async fn a_setup_that_outlives_its_worker_is_ended_before_the_place_is_made_anew() {
    let env = TestEnv::new();
    let there = &env.root;
    // In a shell of its own, as package managers have them.
    let setup = format!("(echo $$ >> {there}/begun; [ -e {there}/go ] || sleep 600; touch {there}/over)");
    let mut helper = helper(&env).env(SETUP, &setup).spawn().unwrap();
    let begun = || fs_err::read_to_string(there.join("begun")).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !begun().ends_with('\n') {
        assert!(Instant::now() < deadline, "the setup does not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
    let left = descendants(helper.id());
    helper.kill().unwrap();
    helper.wait().unwrap();
    fs_err::write(there.join("go"), "").unwrap();
    let worktrees = env.worktrees_with(WorktreeSettings { setup: Some(setup), keep_warm: 1 });
    worktrees.prepare(&task("t1"), Fence(2), "main").await.unwrap();
    assert_eq!(begun().lines().count(), 2);
    assert!(left.len() >= 2, "{left:?}");
    let is_alive = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains("State:") && !status.contains("State:\tZ")
    };
    assert_eq!(left.into_iter().filter(is_alive).collect::<Vec<_>>(), Vec::<i32>::new());
}

/// Every process that descends from one, itself not.
fn descendants(of: u32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let (mut found, mut open) = (Vec::new(), vec![i32::try_from(of).unwrap()]);
    while let Some(parent) = open.pop() {
        let children = parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid);
        open.extend(children.inspect(|pid| found.push(*pid)));
    }
    found
}

fn kill(pid: i32, signal: Signal) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

#[tokio::test]
async fn a_kill_at_any_moment_is_healed() {
    let env = TestEnv::new();
    for number in 0..100 {
        env.write(&format!("src/{number}.txt"), "text\n");
    }
    env.commit("some files");
    for round in 0..40_u64 {
        let mut helper = start_helper(&env);
        // Any moment will do: the pause is what makes them differ, and no result depends on it.
        std::thread::sleep(Duration::from_micros(15_000 + 3_700 * round));
        let pid = i32::try_from(helper.id()).unwrap();
        kill(pid, Signal::STOP);
        // Every other time its git outlives it.
        if round % 2 == 0 {
            for child in descendants(helper.id()) {
                kill(child, Signal::KILL);
            }
        }
        kill(pid, Signal::KILL);
        helper.wait().unwrap();
        let worktrees = env.worktrees_with(WorktreeSettings { setup: None, keep_warm: 1 });
        let healed = worktrees.prepare(&task("t1"), Fence(i64::MAX), "main").await;
        let healed = healed.unwrap_or_else(|error| panic!("round {round}: {error}"));
        // It may be another place than the last: a git that still clears that one has it until it is done.
        assert_eq!(status(&healed.path).await, "", "round {round}");
        assert_eq!(head(&healed.path), head(&env.repo), "round {round}");
        worktrees.release(&task("t1"), Fence(i64::MAX), &[]).await.unwrap();
    }
    let all = env.worktrees().gc(&BTreeSet::new(), &[], GcMode::Delete).await.unwrap();
    assert!(all.iter().all(|entry| entry.collected == Collected::Removed), "{all:?}");
    assert_eq!(git(&env.repo, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(env.leftover_locks(), Vec::<String>::new());
}
