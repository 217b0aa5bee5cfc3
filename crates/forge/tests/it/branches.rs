//! Work on its way out: rebased, pushed, merged.

use rehearsal_forge::{
    Candidate, CandidateError, ErrorClass, LandError, LeftoversError, Pushed, RebaseError, Rebased,
    RemoteError, Work, fetch, remote_head, tree_of,
};
use rehearsal_git::Git;

use crate::env::{TestEnv, agent_commits, git, head, status, try_git};

#[tokio::test]
async fn a_fetch_leaves_nothing_but_the_commit() {
    let env = TestEnv::new();
    let other = env.root.join("other");
    git(&env.root, &["clone", "--quiet", env.remote.as_str(), "other"]);
    for (name, value) in [("user.name", "Bob"), ("user.email", "bob@example.org")] {
        git(&other, &["config", name, value]);
    }
    let theirs = agent_commits(&other, "b.txt", "b\n");
    git(&other, &["push", "--quiet", "origin", "main"]);
    let before = git(&env.repo, &["for-each-ref"]);
    let here = Git::at(&env.repo);
    assert_eq!(fetch(&here, "origin", "main").await.unwrap(), theirs);
    assert_eq!(git(&env.repo, &["for-each-ref"]), before);
    assert!(!env.repo.join(".git/FETCH_HEAD").exists());
    let error = fetch(&here, "origin", "nope").await.unwrap_err();
    assert_eq!(error.to_string(), "the remote `origin` has no branch `nope`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_fetches_of_a_moving_remote_all_succeed() {
    let env = TestEnv::new();
    for round in 0..5 {
        env.lands("a.txt", &format!("{round}\n"));
        let mut fetches = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let here = Git::at(&env.repo);
            fetches.spawn(async move { fetch(&here, "origin", "main").await.unwrap() });
        }
        assert!(fetches.join_all().await.iter().all(|commit| *commit == head(&env.repo)));
    }
    assert_eq!(git(&env.repo, &["for-each-ref", "refs/rehearsal"]), "");
}

#[tokio::test]
async fn a_lock_that_a_killed_git_left_does_not_stop_a_fetch() {
    let env = TestEnv::new();
    fs_err::write(env.repo.join(".git/packed-refs.lock"), "").unwrap();
    assert_eq!(fetch(&Git::at(&env.repo), "origin", "main").await.unwrap(), head(&env.repo));
    assert_eq!(env.leftover_locks(), Vec::<String>::new());
    assert_eq!(git(&env.repo, &["for-each-ref", "refs/rehearsal"]), "");
}

#[tokio::test]
async fn leftovers_are_committed_by_someone() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let work = Work::at(&worktree.path);
    assert_eq!(work.commit_leftovers("Leftovers").await.unwrap(), None);
    fs_err::write(worktree.path.join("a.txt"), "a\n").unwrap();
    fs_err::write(worktree.path.join(".env"), "KEY=1\n").unwrap();
    fs_err::remove_file(worktree.path.join("README.md")).unwrap();
    let commit = work.commit_leftovers("Leftovers\n\n# not a comment").await.unwrap().unwrap();
    assert_eq!(commit, head(&worktree.path));
    let shown = git(&worktree.path, &["show", "--format=%an%n%B", "--name-status", "--no-renames"]);
    assert_eq!(shown, "Ada\nLeftovers\n\n# not a comment\n\n\nD\tREADME.md\nA\ta.txt");
    git(&env.repo, &["config", "--unset", "user.email"]);
    git(&env.repo, &["config", "user.useConfigOnly", "true"]);
    fs_err::write(worktree.path.join("b.txt"), "b\n").unwrap();
    work.commit_leftovers("More").await.unwrap().unwrap();
}

#[tokio::test]
async fn marks_of_a_conflict_are_not_committed() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    agent_commits(&worktree.path, "README.md", "mine\n");
    env.lands("README.md", "theirs\n");
    assert!(!try_git(&worktree.path, &["merge", "main"]).status.success());
    let error = Work::at(&worktree.path).commit_leftovers("x").await.unwrap_err();
    assert!(matches!(error, LeftoversError::Unmerged { .. }));
    assert_eq!(error.to_string(), "a merge is not finished in README.md");
}

#[tokio::test]
async fn work_is_moved_onto_the_tip_of_its_base() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let work = Work::at(&worktree.path);
    let commit = agent_commits(&worktree.path, "a.txt", "a\n");
    assert_eq!(work.rebase(&worktree.head).await.unwrap(), Rebased::Already(commit));
    let tip = env.lands("b.txt", "b\n");
    let Rebased::Moved(moved) = work.rebase(&tip).await.unwrap() else { panic!() };
    assert_eq!(git(&worktree.path, &["rev-parse", "HEAD^"]), tip.as_str());
    assert_eq!(work.rebase(&tip).await.unwrap(), Rebased::Already(moved));
}

#[tokio::test]
async fn a_conflict_keeps_the_work_and_says_where() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    agent_commits(&worktree.path, "a.txt", "a\n");
    let commit = agent_commits(&worktree.path, "README.md", "mine\n");
    let tip = env.lands("README.md", "theirs\n");
    let work = Work::at(&worktree.path);
    for _ in 0..2 {
        let error = work.rebase(&tip).await.unwrap_err();
        assert_eq!(error.to_string(), "conflicts with the base in README.md");
        assert_eq!((head(&worktree.path), status(&worktree.path).await), (commit.clone(), String::new()));
    }
    // Cut short in the middle.
    try_git(&worktree.path, &["rebase", tip.as_str()]);
    assert_ne!(head(&worktree.path), commit);
    assert!(matches!(work.rebase(&tip).await.unwrap_err(), RebaseError::Conflict { .. }));
    assert_eq!(head(&worktree.path), commit);
}

#[tokio::test]
async fn uncommitted_changes_are_not_carried_along() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let tip = env.lands("b.txt", "b\n");
    fs_err::write(worktree.path.join("README.md"), "half\n").unwrap();
    let error = Work::at(&worktree.path).rebase(&tip).await.unwrap_err();
    assert_eq!(error.to_string(), "there are uncommitted changes");
    assert_eq!(fs_err::read_to_string(worktree.path.join("README.md")).unwrap(), "half\n");
}

#[tokio::test]
async fn a_push_compares_what_is_there() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let work = Work::at(&worktree.path);
    let first = agent_commits(&worktree.path, "a.txt", "a\n");
    let push = async |commit, expected| work.push("origin", "agent/t1", commit, expected).await;
    assert_eq!(push(&first, &[None]).await.unwrap(), Pushed::Now);
    assert_eq!(push(&first, &[None]).await.unwrap(), Pushed::Already);
    git(&worktree.path, &["commit", "--quiet", "--amend", "-m", "after a rebase"]);
    let second = head(&worktree.path);
    let error = push(&second, &[None]).await.unwrap_err();
    let told =
        format!("the branch `agent/t1` was moved by someone else: expected no branch, found {first:.10}");
    assert_eq!((error.to_string(), error.class()), (told, ErrorClass::Task));
    // From any commit that may be there by our doing.
    assert_eq!(push(&second, &[None, Some(first.clone())]).await.unwrap(), Pushed::Now);
    assert_eq!(remote_head(work.git(), "origin", "agent/t1").await.unwrap(), Some(second));
    assert_eq!(remote_head(work.git(), "origin", "t1").await.unwrap(), None);
}

#[tokio::test]
async fn a_push_that_lost_a_race_is_told() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let work = Work::at(&worktree.path);
    let first = agent_commits(&worktree.path, "a.txt", "a\n");
    work.push("origin", "agent/t1", &first, &[None]).await.unwrap();
    // The remote lets someone else in between our look and our push.
    let other = head(&env.repo);
    let hook = env.remote.join("hooks/pre-receive");
    let steal = format!("#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/agent/t1 {other}\n");
    fs_err::write(&hook, steal).unwrap();
    fs_err::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let second = agent_commits(&worktree.path, "a.txt", "b\n");
    let error = work.push("origin", "agent/t1", &second, &[Some(first.clone())]).await.unwrap_err();
    let told =
        format!("the branch `agent/t1` was moved by someone else: expected {first:.10}, found {other:.10}");
    assert_eq!(error.to_string(), told);
}

#[tokio::test]
async fn rules_of_the_remote_are_told_in_its_words() {
    let env = TestEnv::new();
    let hook = env.remote.join("hooks/pre-receive");
    fs_err::write(&hook, "#!/bin/sh\necho no friday deploys >&2\nexit 1\n").unwrap();
    fs_err::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let worktree = env.worktree("t1").await;
    let commit = agent_commits(&worktree.path, "a.txt", "a\n");
    let error = Work::at(&worktree.path).push("origin", "agent/t1", &commit, &[None]).await.unwrap_err();
    assert!(error.to_string().starts_with("the remote refused `agent/t1`: "), "{error}");
    assert!(error.to_string().contains("no friday deploys"), "{error}");
}

#[tokio::test]
async fn a_remote_that_is_gone_is_not_a_race_lost() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let commit = agent_commits(&worktree.path, "a.txt", "a\n");
    fs_err::rename(&env.remote, env.root.join("moved.git")).unwrap();
    let error = Work::at(&worktree.path).push("origin", "agent/t1", &commit, &[None]).await.unwrap_err();
    assert!(error.to_string().starts_with("the remote `origin` is not there: "), "{error}");
    assert_eq!(error.class(), ErrorClass::Systemic);
    git(&env.repo, &["remote", "set-url", "origin", "http://127.0.0.1:1/x.git"]);
    let error = fetch(&Git::at(&env.repo), "origin", "main").await.unwrap_err();
    assert!(matches!(error, RemoteError::Unreachable { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Transient { retry_after: None });
}

#[tokio::test]
async fn what_lands_is_what_was_tested() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let here = Git::at(&env.repo);
    let work = agent_commits(&worktree.path, "a.txt", "a\n");
    let tip = env.lands("b.txt", "b\n");
    let candidate = Candidate::build(&here, &tip, &work, "Merge t1").await.unwrap();
    assert_eq!(
        git(&env.repo, &["ls-tree", "--name-only", candidate.tree.as_str()]),
        ".gitignore\nREADME.md\na.txt\nb.txt"
    );
    let untested = tree_of(&here, &work).await.unwrap();
    let error = candidate.land(&here, "origin", "main", &untested).await.unwrap_err();
    assert!(error.to_string().starts_with("the tested tree "), "{error}");
    assert_eq!(candidate.land(&here, "origin", "main", &candidate.tree).await.unwrap(), Pushed::Now);
    assert_eq!(candidate.land(&here, "origin", "main", &candidate.tree).await.unwrap(), Pushed::Already);
    assert_eq!(remote_head(&here, "origin", "main").await.unwrap(), Some(candidate.commit.clone()));
    candidate.discard(&here).await.unwrap();
    assert_eq!(git(&env.repo, &["for-each-ref", "refs/rehearsal"]), "");
}

#[tokio::test]
async fn of_two_that_land_at_once_one_is_told_that_the_base_moved() {
    let env = TestEnv::new();
    let here = Git::at(&env.repo);
    let tip = head(&env.repo);
    let (one, two) = (env.worktree("t1").await, env.worktree("t2").await);
    let (one, two) = (agent_commits(&one.path, "a.txt", "a\n"), agent_commits(&two.path, "b.txt", "b\n"));
    let build = async |work| Candidate::build(&here, &tip, work, "Merge").await.unwrap();
    let (one, two) = (build(&one).await, build(&two).await);
    let land = async |candidate: &Candidate| candidate.land(&here, "origin", "main", &candidate.tree).await;
    let (first, second) = tokio::join!(land(&one), land(&two));
    let (landed, lost) = if first.is_ok() { (&one, second) } else { (&two, first) };
    let Err(LandError::BaseMoved { found, .. }) = lost else { panic!("both landed") };
    assert_eq!(found, Some(landed.commit.clone()));
    assert_eq!(remote_head(&here, "origin", "main").await.unwrap(), Some(landed.commit.clone()));
}

#[tokio::test]
async fn a_candidate_that_conflicts_says_where() {
    let env = TestEnv::new();
    let worktree = env.worktree("t1").await;
    let work = agent_commits(&worktree.path, "README.md", "mine\n");
    let tip = env.lands("README.md", "theirs\n");
    let error = Candidate::build(&Git::at(&env.repo), &tip, &work, "Merge").await.unwrap_err();
    assert!(matches!(error, CandidateError::Conflict { .. }));
    assert_eq!(error.to_string(), "conflicts with the base in README.md");
}

#[tokio::test]
async fn a_remote_that_is_a_directory_is_read_where_it_is() {
    let env = TestEnv::new();
    let (git_here, remote) = (Git::at(&env.repo), env.remote.as_str());
    let begin = head(&env.repo);
    for packed in [false, true] {
        if packed {
            git(&env.remote, &["pack-refs", "--all"]);
        }
        assert_eq!(remote_head(&git_here, remote, "main").await.unwrap(), Some(begin.clone()));
        assert_eq!(remote_head(&git_here, remote, "nowhere").await.unwrap(), None);
        assert_eq!(fetch(&git_here, remote, "main").await.unwrap(), begin);
    }
    // Someone else's commit is not here yet: it comes with all that it needs.
    let other = env.root.join("other");
    git(&env.root, &["clone", "--quiet", remote, "other"]);
    git(&other, &["config", "user.name", "Eve"]);
    git(&other, &["config", "user.email", "eve@example.org"]);
    let theirs = agent_commits(&other, "theirs.txt", "theirs\n");
    git(&other, &["push", "--quiet", "origin", "HEAD:main"]);
    assert_eq!(remote_head(&git_here, remote, "main").await.unwrap(), Some(theirs.clone()));
    assert_eq!(fetch(&git_here, remote, "main").await.unwrap(), theirs);
    assert_eq!(git(&env.repo, &["show", &format!("{theirs}:theirs.txt")]), "theirs");
    let error = fetch(&git_here, remote, "nowhere").await.unwrap_err().to_string();
    assert_eq!(error, format!("the remote `{remote}` has no branch `nowhere`"));
}
