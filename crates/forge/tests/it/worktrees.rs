//! Worktrees: made, used again, given back.

use std::collections::BTreeSet;

use rehearsal_core::Fence;
use rehearsal_forge::{CheckoutPrint, Collected, GcMode, Origin, Released, WorktreeError, WorktreeSettings};

use crate::env::{TestEnv, agent_commits, git, head, status, task};

#[tokio::test]
async fn a_task_works_outside_the_repository_at_the_tip_of_its_base() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    assert!(!worktree.path.starts_with(&env.repo));
    assert_eq!((&worktree.head, &worktree.origin), (&head(&env.repo), &Origin::Fresh));
    assert_eq!(head(&worktree.path), head(&env.repo));
    assert_eq!(git(&worktree.path, &["branch", "--show-current"]), "");
    assert_eq!(status(&worktree.path).await, "");
    let list = git(&env.repo, &["worktree", "list", "--porcelain"]);
    assert!(list.contains("locked rehearsal t1/1 "), "{list}");
    let environment = worktree.environment();
    assert!(environment.contains(&("REHEARSAL_PORT".into(), "20000".into())));
    assert!(environment.contains(&("TASK_WORKTREE".into(), worktree.path.to_string())));
}

#[tokio::test]
async fn the_next_attempt_finds_the_work_of_the_last_one() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let first = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    let commit = agent_commits(&first.path, "a.txt", "done\n");
    fs_err::write(first.path.join("b.txt"), "half\n").unwrap();
    env.lands("c.txt", "elsewhere\n");
    let second = worktrees.prepare(&task("t1"), Fence(2), "main").await.unwrap();
    assert_eq!((&second.path, &second.head, &second.origin), (&first.path, &commit, &Origin::Reused));
    assert_eq!(fs_err::read_to_string(second.path.join("b.txt")).unwrap(), "half\n");
    let error = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap_err();
    assert_eq!(error.to_string(), "the worktree of task t1 is held with fence 2, and 1 is older");
    let error = worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Superseded { .. }));
}

#[tokio::test]
async fn a_worktree_that_is_worked_in_is_busy_until_it_is_left() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let worktree = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    let held = worktrees.occupy(&worktree).await.unwrap();
    let error = worktrees.occupy(&worktree).await.unwrap_err();
    assert_eq!(error.to_string(), "someone else is still busy with the worktree of task t1");
    drop(held);
    let held = worktrees.occupy(&worktree).await.unwrap();
    let others = env.worktrees();
    let error = others.occupy(&worktree).await.unwrap_err();
    assert_eq!(error.to_string(), "someone else is still busy with the worktree of task t1");
    drop(held);
    others.occupy(&worktree).await.unwrap();
}

#[tokio::test]
async fn a_finished_worktree_is_clean_for_the_next_task() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let first = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    git(&first.path, &["checkout", "--quiet", "-b", "feature"]);
    agent_commits(&first.path, "a.txt", "done\n");
    git(&first.path, &["update-ref", "refs/worktree/mine", "HEAD"]);
    git(&first.path, &["tag", "seen"]);
    fs_err::create_dir_all(first.path.join("target/deep")).unwrap();
    fs_err::write(first.path.join("target/deep/x.o"), "").unwrap();
    let released = worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap();
    assert_eq!(released, Released::Warm { branch: Some("feature".into()) });
    let tip = env.lands("c.txt", "new on the base\n");

    let second = worktrees.prepare(&task("t2"), Fence(7), "main").await.unwrap();
    assert_eq!((&second.path, &second.origin), (&first.path, &Origin::Warm));
    assert_eq!(head(&second.path), tip);
    assert_eq!(status(&second.path).await, "");
    assert!(!second.path.join("a.txt").exists() && !second.path.join("target").exists());
    assert_eq!(git(&second.path, &["for-each-ref", "refs/worktree"]), "");
    let log = git(&second.path, &["reflog", "HEAD"]);
    assert!(!log.contains("Write a.txt"), "{log}");
    assert_eq!(git(&env.repo, &["log", "--format=%s", "-1", "feature"]), "Write a.txt");
    let list = git(&env.repo, &["worktree", "list", "--porcelain"]);
    assert!(list.contains("locked rehearsal t2/7 "), "{list}");
}

#[tokio::test]
async fn a_worktree_in_which_git_was_told_to_look_away_is_not_kept() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let env = TestEnv::new();
        let worktrees = env.worktrees();
        let first = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
        git(&first.path, &["update-index", flag, "README.md"]);
        fs_err::write(first.path.join("README.md"), "hidden\n").unwrap();
        let released = worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap();
        assert_eq!(released, Released::Removed { branch: None }, "{flag}");
        let second = worktrees.prepare(&task("t2"), Fence(2), "main").await.unwrap();
        assert_eq!(fs_err::read_to_string(second.path.join("README.md")).unwrap(), "# A test\n", "{flag}");
    }
}

#[tokio::test]
async fn what_wrote_to_a_warm_worktree_is_undone() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let first = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap();
    fs_err::write(first.path.join("late.txt"), "an orphan wrote this").unwrap();
    fs_err::write(first.path.join(".env"), "and this").unwrap();
    fs_err::write(first.path.join("README.md"), "and this").unwrap();
    let second = worktrees.prepare(&task("t2"), Fence(1), "main").await.unwrap();
    assert_eq!((status(&second.path).await, second.origin), (String::new(), Origin::Warm));
}

#[tokio::test]
async fn work_that_is_nowhere_else_is_not_given_up() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let worktree = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    let refusal = async || worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap_err().to_string();
    let told = format!("the worktree `{}` has work that is nowhere else: ", worktree.path);

    fs_err::write(worktree.path.join("new.txt"), "x").unwrap();
    assert_eq!(refusal().await, format!("{told}1 uncommitted file: new.txt"));
    let commit = agent_commits(&worktree.path, "new.txt", "x");
    let unpushed = format!("1 commit that nothing else has, up to {commit:.10}");
    assert_eq!(refusal().await, format!("{told}{unpushed}"));
    let plan = worktrees.gc(&BTreeSet::new(), &[], GcMode::Delete).await.unwrap();
    assert!(matches!(&plan[0].collected, Collected::Kept(unsaved) if unsaved[0].to_string() == unpushed));

    fs_err::write(worktree.path.join("new.txt"), "y").unwrap();
    git(&worktree.path, &["stash"]);
    assert_eq!(refusal().await, format!("{told}{unpushed}; 1 stashed change"));
    git(&worktree.path, &["stash", "drop"]);
    assert_eq!(head(&worktree.path), commit, "nothing was touched");

    let released = worktrees.release(&task("t1"), Fence(1), &[commit]).await.unwrap();
    assert_eq!(released, Released::Warm { branch: None });
    assert_eq!(worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap(), Released::Nothing);
}

#[tokio::test]
async fn a_stash_of_the_users_own_stands_in_nobodys_way() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    env.write("README.md", "changed by hand\n");
    git(&env.repo, &["stash"]);
    worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap();
    assert_eq!(git(&env.repo, &["stash", "list"]).lines().count(), 1);
}

#[tokio::test]
async fn a_rebase_that_was_begun_hides_no_work() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let worktree = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    agent_commits(&worktree.path, "README.md", "mine\n");
    env.lands("README.md", "theirs\n");
    crate::env::try_git(&worktree.path, &["rebase", "main"]);
    git(&worktree.path, &["checkout", "--force", "--detach", "main"]);
    let error = worktrees.release(&task("t1"), Fence(1), &[]).await.unwrap_err().to_string();
    assert!(error.contains("1 commit that nothing else has"), "{error}");
}

#[tokio::test]
async fn clearing_up_says_what_it_would_do_and_then_does_it() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    for name in ["live", "over", "warm"] {
        worktrees.prepare(&task(name), Fence(1), "main").await.unwrap();
    }
    worktrees.release(&task("warm"), Fence(1), &[]).await.unwrap();
    let live = BTreeSet::from([task("live")]);
    let expected = [
        (Some(task("live")), Collected::InUse),
        (Some(task("over")), Collected::Removed),
        (None, Collected::Removed),
    ];
    for mode in [GcMode::DryRun, GcMode::Delete] {
        let plan = worktrees.gc(&live, &[], mode).await.unwrap();
        let plan: Vec<_> = plan.into_iter().map(|entry| (entry.task, entry.collected)).collect();
        assert_eq!(plan, expected);
    }
    assert_eq!(worktrees.gc(&live, &[], GcMode::DryRun).await.unwrap().len(), 1);
    assert_eq!(git(&env.repo, &["worktree", "list"]).lines().count(), 2);
}

#[tokio::test]
async fn no_more_worktrees_are_kept_warm_than_was_said() {
    let env = TestEnv::new();
    let worktrees = env.worktrees_with(WorktreeSettings { setup: None, keep_warm: 1 });
    for name in ["a", "b"] {
        worktrees.prepare(&task(name), Fence(1), "main").await.unwrap();
    }
    assert_eq!(worktrees.release(&task("a"), Fence(1), &[]).await.unwrap(), Released::Warm { branch: None });
    assert_eq!(
        worktrees.release(&task("b"), Fence(1), &[]).await.unwrap(),
        Released::Removed { branch: None }
    );
    assert_eq!(git(&env.repo, &["worktree", "list"]).lines().count(), 2);
}

#[tokio::test]
async fn read_only_directories_are_removed_too() {
    let env = TestEnv::new();
    let worktrees = env.worktrees_with(WorktreeSettings { setup: None, keep_warm: 0 });
    let worktree = worktrees.prepare(&task("a"), Fence(1), "main").await.unwrap();
    fs_err::create_dir_all(worktree.path.join("target/mod")).unwrap();
    fs_err::write(worktree.path.join("target/mod/x.go"), "").unwrap();
    let locked = std::os::unix::fs::PermissionsExt::from_mode(0o500);
    fs_err::set_permissions(worktree.path.join("target/mod"), locked).unwrap();
    worktrees.release(&task("a"), Fence(1), &[]).await.unwrap();
    assert!(!worktree.path.exists());
}

#[tokio::test]
async fn ignored_files_that_are_named_come_along() {
    let env = TestEnv::new();
    fs_err::write(env.root.join("outside"), "secret of another").unwrap();
    env.write(".worktreeinclude", "# settings\n.env\n*.local\n!no.local\nREADME.md\nnot-ignored.txt\n");
    env.commit("name what comes along");
    env.write(".env", "KEY=1\n");
    env.write("conf/a.local", "a\n");
    env.write("no.local", "b\n");
    env.write("not-ignored.txt", "would be committed by mistake\n");
    env.write("target/x.o", "built\n");
    std::os::unix::fs::symlink("../outside", env.repo.join("out.local")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", env.repo.join("abs.local")).unwrap();
    std::os::unix::fs::symlink("conf/a.local", env.repo.join("in.local")).unwrap();
    let worktree = env.worktree("t1").await;
    let come: Vec<String> = status(&worktree.path).await.lines().map(str::to_owned).collect();
    assert_eq!(come, ["!! .env", "!! conf/", "!! in.local"]);
    assert_eq!(fs_err::read_to_string(worktree.path.join("in.local")).unwrap(), "a\n");
}

#[tokio::test]
async fn nothing_is_copied_through_a_link_that_leads_out() {
    let env = TestEnv::new();
    let outside = env.root.join("elsewhere");
    fs_err::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, env.repo.join("conf")).unwrap();
    env.write(".worktreeinclude", "*.local\n");
    env.commit("a directory that is a link");
    fs_err::remove_file(env.repo.join("conf")).unwrap();
    env.write("conf/a.local", "a\n");
    let worktree = env.worktree("t1").await;
    assert!(outside.read_dir_utf8().unwrap().next().is_none());
    assert_eq!(status(&worktree.path).await, "");
}

#[tokio::test]
async fn a_setup_command_runs_in_each_fresh_worktree() {
    let env = TestEnv::new();
    let setup = Some("echo $REHEARSAL_PORT > setup.local; test ! -e fail.local".to_owned());
    let worktrees = env.worktrees_with(WorktreeSettings { setup, keep_warm: 1 });
    let first = worktrees.prepare(&task("a"), Fence(1), "main").await.unwrap();
    assert_eq!(fs_err::read_to_string(first.path.join("setup.local")).unwrap(), "20000\n");
    worktrees.release(&task("a"), Fence(1), &[]).await.unwrap();
    let second = worktrees.prepare(&task("b"), Fence(1), "main").await.unwrap();
    assert_eq!(second.origin, Origin::Warm);
    assert!(second.path.join("setup.local").exists());
}

#[tokio::test]
async fn a_setup_that_fails_is_told_and_tried_again() {
    let env = TestEnv::new();
    let (gate, setup) = (env.root.join("gate"), format!("echo no network >&2; test -e {}/gate", env.root));
    let worktrees = env.worktrees_with(WorktreeSettings { setup: Some(setup.clone()), keep_warm: 1 });
    let error = worktrees.prepare(&task("a"), Fence(1), "main").await.unwrap_err();
    assert_eq!(error.to_string(), format!("the setup command `{setup}` failed: exit status: 1: no network"));
    fs_err::write(gate, "").unwrap();
    let worktree = worktrees.prepare(&task("a"), Fence(2), "main").await.unwrap();
    assert_eq!((worktree.slot, worktree.origin), (0, Origin::Fresh));
}

#[tokio::test]
async fn worktrees_inside_of_the_repository_are_refused() {
    let env = TestEnv::new();
    let under = env.repo.join("wt");
    let opened = rehearsal_forge::Worktrees::open(&env.repo, &under, WorktreeSettings::default());
    let expected = format!("worktrees cannot be kept in `{under}`, inside of the repository `{}`", env.repo);
    assert_eq!(opened.unwrap_err().to_string(), expected);
}

#[tokio::test]
async fn a_write_to_the_main_checkout_is_noticed() {
    let env = TestEnv::new();
    env.write("draft.txt", "the user's own\n");
    let before = CheckoutPrint::take(&env.repo).await.unwrap();
    assert_eq!(before.trespass_since().await.unwrap(), None);
    let worktree = env.worktree("t1").await;
    agent_commits(&worktree.path, "a.txt", "in its own place\n");
    assert_eq!(before.trespass_since().await.unwrap(), None);
    env.write("draft.txt", "written over\n");
    env.write("new.txt", "left behind\n");
    let trespass = before.trespass_since().await.unwrap().unwrap();
    assert_eq!(
        (trespass.head_moved, trespass.files),
        (false, vec!["draft.txt".to_owned(), "new.txt".to_owned()])
    );
    env.commit("in the wrong place");
    assert!(before.trespass_since().await.unwrap().unwrap().head_moved);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_at_once_all_succeed() {
    let env = TestEnv::new();
    for number in 0..200 {
        env.write(&format!("src/{number}.txt"), &"text\n".repeat(50));
    }
    env.commit("some files");
    for round in 0..20 {
        // As many processes would: each with its own handle.
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..8 {
            let worktrees = env.worktrees_with(WorktreeSettings { setup: None, keep_warm: 4 });
            let name = task(&format!("r{round}-{number}"));
            tasks.spawn(async move {
                let worktree = worktrees.prepare(&name, Fence(1), "main").await.unwrap();
                assert_eq!(status(&worktree.path).await, "");
                (name, worktree.slot)
            });
        }
        let done = tasks.join_all().await;
        let slots: BTreeSet<u32> = done.iter().map(|(_, slot)| *slot).collect();
        assert_eq!(slots, (0..8).collect());
        let mut tasks = tokio::task::JoinSet::new();
        for (name, _) in done {
            let worktrees = env.worktrees();
            tasks.spawn(async move { worktrees.release(&name, Fence(1), &[]).await.unwrap() });
        }
        tasks.join_all().await;
        let kept = git(&env.repo, &["worktree", "list"]).lines().count() - 1;
        assert!(kept <= 4, "{kept} are kept warm");
    }
    assert_eq!(env.leftover_locks(), Vec::<String>::new());
}

#[tokio::test]
async fn a_place_is_brought_to_what_was_done_in_another_one() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let mut here = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    let elsewhere = env.lands("a.txt", "from elsewhere\n");
    assert!(here.has_seen(&here.head).await.unwrap());
    assert!(!here.has_seen(&elsewhere).await.unwrap());
    here.origin = Origin::Reused;
    let brought = worktrees.bring(&here, &elsewhere).await.unwrap();
    assert_eq!((&brought.path, &brought.head), (&here.path, &elsewhere));
    assert_eq!(brought.origin, Origin::Brought { set_aside: None });
    assert_eq!((status(&here.path).await, head(&here.path)), (String::new(), elsewhere.clone()));
    // What was once checked out is known, whatever came after it.
    let again = worktrees.prepare(&task("t1"), Fence(2), "main").await.unwrap();
    git(&again.path, &["reset", "--quiet", "--hard", here.head.as_str()]);
    let again = worktrees.prepare(&task("t1"), Fence(3), "main").await.unwrap();
    assert_eq!((&again.head, &again.origin), (&here.head, &Origin::Reused));
    assert!(again.has_seen(&elsewhere).await.unwrap());
}

#[tokio::test]
async fn what_only_a_place_has_is_set_aside_before_it_is_brought_elsewhere() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let here = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    agent_commits(&here.path, "mine.txt", "never pushed\n");
    fs_err::write(here.path.join("half.txt"), "not committed\n").unwrap();
    let here = worktrees.prepare(&task("t1"), Fence(2), "main").await.unwrap();
    let elsewhere = env.lands("a.txt", "from elsewhere\n");
    let brought = worktrees.bring(&here, &elsewhere).await.unwrap();
    let Origin::Brought { set_aside: Some(aside) } = &brought.origin else { panic!("{:?}", brought.origin) };
    assert_eq!(fs_err::read_to_string(aside.join("mine.txt")).unwrap(), "never pushed\n");
    assert_eq!(fs_err::read_to_string(aside.join("half.txt")).unwrap(), "not committed\n");
    assert_eq!((status(&brought.path).await, head(&brought.path)), (String::new(), elsewhere));
    assert!(!brought.path.join("half.txt").exists());
}

#[tokio::test]
async fn a_rebase_that_was_begun_does_not_lead_back() {
    let env = TestEnv::new();
    let worktrees = env.worktrees();
    let here = worktrees.prepare(&task("t1"), Fence(1), "main").await.unwrap();
    let mine = agent_commits(&here.path, "README.md", "mine\n");
    let theirs = env.lands("README.md", "theirs\n");
    let rebase =
        ["-c", "user.name=A", "-c", "user.email=a@example.org", "rebase", "--quiet", theirs.as_str()];
    assert!(!crate::env::try_git(&here.path, &rebase).status.success());
    git(&here.path, &["checkout", "--quiet", "--force", theirs.as_str()]);
    // Somebody has it: on a branch.
    git(&env.repo, &["branch", "kept", mine.as_str()]);
    let here = worktrees.prepare(&task("t1"), Fence(2), "main").await.unwrap();
    let brought = worktrees.bring(&here, &theirs).await.unwrap();
    assert_eq!(brought.origin, Origin::Brought { set_aside: None });
    let rebased = rehearsal_forge::Work::at(&brought.path).rebase(&theirs).await.unwrap();
    assert_eq!(rebased, rehearsal_forge::Rebased::Already(theirs));
}
