//! Pull requests without an account.

use rehearsal_forge::{
    Candidate, Checks, Comment, ErrorClass, Forge, ForgeError, Local, Mergeable, NewPullRequest, PrState,
    Review, ReviewVerdict, Work,
};
use rehearsal_git::{Git, Oid};

use crate::env::{TestEnv, agent_commits, git, head};

/// A task's branch on the remote, with one file.
pub(crate) async fn pushed(env: &TestEnv, name: &str, file: &str, content: &str) -> Oid {
    let worktree = env.worktree(name).await;
    let commit = agent_commits(&worktree.path, file, content);
    Work::at(&worktree.path).push("origin", &format!("agent/{name}"), &commit, &[None]).await.unwrap();
    commit
}

pub(crate) fn new_pr(name: &str) -> NewPullRequest {
    NewPullRequest {
        title: format!("Do {name}"),
        body: "With \"evidence\"\nand more".into(),
        head: format!("agent/{name}"),
        base: "main".into(),
    }
}

#[tokio::test]
async fn a_pull_request_lives_from_branch_to_merge() {
    let env = TestEnv::new();
    let commit = pushed(&env, "t1", "a.txt", "a\n").await;
    let forge = Local::open(&env.remote).await.unwrap();
    assert_eq!(forge.find_pr("agent/t1").await.unwrap(), None);
    let opened = forge.create_pr(&new_pr("t1")).await.unwrap();
    assert!(!opened.adopted);
    let again = forge.create_pr(&new_pr("t1")).await.unwrap();
    assert!(again.adopted);
    assert_eq!(opened.pull_request, again.pull_request);
    let shown = forge.find_pr("agent/t1").await.unwrap().unwrap();
    assert_eq!((shown.number, &shown.state, &shown.mergeable), (1, &PrState::Open, &Mergeable::Clean));
    assert_eq!(
        (shown.head_commit.as_ref(), shown.body.as_str()),
        (Some(&commit), "With \"evidence\"\nand more")
    );
    assert_eq!(forge.checks(&commit).await.unwrap(), Checks::Never);

    let comment = Comment { key: "tests".into(), body: "12 passed".into() };
    forge.comment(1, &comment).await.unwrap();
    forge.comment(1, &comment).await.unwrap();
    forge.review(1, &Review { verdict: ReviewVerdict::Approve, body: "good".into() }).await.unwrap();
    let kept = git(&env.remote, &["cat-file", "blob", "refs/rehearsal/pr/1"]);
    assert_eq!(kept.matches("12 passed").count(), 1);

    let merged = forge.merge(1, &commit).await.unwrap();
    assert!(!merged.already);
    assert!(forge.merge(1, &commit).await.unwrap().already);
    assert_eq!(git(&env.remote, &["rev-parse", "main"]), merged.commit.clone().unwrap().as_str());
    git(&env.remote, &["branch", "-D", "agent/t1"]);
    assert_eq!(forge.view(1).await.unwrap().state, PrState::Merged { commit: merged.commit });
}

#[tokio::test]
async fn what_was_landed_by_a_push_is_merged() {
    let env = TestEnv::new();
    let work = pushed(&env, "t1", "a.txt", "a\n").await;
    let forge = Local::open(&env.remote).await.unwrap();
    forge.create_pr(&new_pr("t1")).await.unwrap();
    let tip = env.lands("b.txt", "b\n");
    let here = Git::at(&env.repo);
    let candidate = Candidate::build(&here, &tip, &work, "Merge").await.unwrap();
    candidate.land(&here, "origin", "main", &candidate.tree).await.unwrap();
    let merged = forge.merge(1, &work).await.unwrap();
    assert_eq!((merged.already, merged.commit), (true, Some(candidate.commit)));
}

#[tokio::test]
async fn a_merge_names_the_commit_that_was_looked_at() {
    let env = TestEnv::new();
    let commit = pushed(&env, "t1", "a.txt", "a\n").await;
    let forge = Local::open(&env.remote).await.unwrap();
    forge.create_pr(&new_pr("t1")).await.unwrap();
    let stale = head(&env.repo);
    let error = forge.merge(1, &stale).await.unwrap_err();
    assert_eq!(error.to_string(), format!("pull request 1 has another head than {stale:.10}"));
    assert!(matches!(error, ForgeError::HeadMoved { found: Some(found), .. } if found == commit));
}

#[tokio::test]
async fn a_conflict_is_told_before_and_at_the_merge() {
    let env = TestEnv::new();
    let commit = pushed(&env, "t1", "README.md", "mine\n").await;
    let forge = Local::open(&env.remote).await.unwrap();
    forge.create_pr(&new_pr("t1")).await.unwrap();
    env.lands("README.md", "theirs\n");
    assert_eq!(forge.view(1).await.unwrap().mergeable, Mergeable::Conflicting);
    let error = forge.merge(1, &commit).await.unwrap_err();
    assert_eq!(error.to_string(), "pull request 1 cannot be merged: conflicts with the base in README.md");
    assert_eq!(error.class(), ErrorClass::Task);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let env = TestEnv::new();
    let forge = Local::open(&env.remote).await.unwrap();
    let error = forge.create_pr(&new_pr("t1")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no branch `agent/t1` in {}", env.remote));
    git(&env.repo, &["push", "--quiet", "origin", "main:agent/t1"]);
    let error = forge.create_pr(&new_pr("t1")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the forge refused to open a pull request: no commits between main and agent/t1"
    );
    assert_eq!(forge.view(7).await.unwrap_err().to_string(), "there is no pull request 7");
}

#[tokio::test]
async fn a_branch_whose_pull_request_was_closed_gets_a_new_one() {
    let env = TestEnv::new();
    let commit = pushed(&env, "t1", "a.txt", "a\n").await;
    let forge = Local::open(&env.remote).await.unwrap();
    forge.create_pr(&new_pr("t1")).await.unwrap();
    forge.close(1).await.unwrap();
    forge.close(1).await.unwrap();
    let error = forge.merge(1, &commit).await.unwrap_err();
    assert_eq!(error.to_string(), "pull request 1 cannot be merged: it was closed");
    let opened = forge.create_pr(&new_pr("t1")).await.unwrap();
    assert_eq!((opened.pull_request.number, opened.adopted), (2, false));
    assert_eq!(forge.find_pr("agent/t1").await.unwrap().unwrap().number, 2);
    assert_eq!(forge.view(1).await.unwrap().state, PrState::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_who_open_one_at_once_get_the_same() {
    let env = TestEnv::new();
    pushed(&env, "t1", "a.txt", "a\n").await;
    let forge = Local::open(&env.remote).await.unwrap();
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let forge = forge.clone();
        all.spawn(async move { forge.create_pr(&new_pr("t1")).await.unwrap() });
    }
    let opened = all.join_all().await;
    assert!(opened.iter().all(|opened| opened.pull_request.number == 1));
    assert_eq!(opened.iter().filter(|opened| !opened.adopted).count(), 1);
    let mut all = tokio::task::JoinSet::new();
    for number in 0..6 {
        let forge = forge.clone();
        let comment = Comment { key: number.to_string(), body: format!("remark {number}") };
        all.spawn(async move { forge.comment(1, &comment).await.unwrap() });
    }
    all.join_all().await;
    let kept = git(&env.remote, &["cat-file", "blob", "refs/rehearsal/pr/1"]);
    assert_eq!(kept.matches("remark").count(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_merges_at_once_none_is_lost_and_the_slower_is_told() {
    let env = TestEnv::new();
    let one = pushed(&env, "t1", "a.txt", "a\n").await;
    let two = pushed(&env, "t2", "b.txt", "b\n").await;
    let forge = Local::open(&env.remote).await.unwrap();
    for name in ["t1", "t2"] {
        forge.create_pr(&new_pr(name)).await.unwrap();
    }
    let (first, second) = tokio::join!(forge.merge(1, &one), forge.merge(2, &two));
    assert!(first.is_ok() || second.is_ok());
    for (number, commit, merged) in [(1, &one, first), (2, &two, second)] {
        if let Err(error) = merged {
            assert!(matches!(error, ForgeError::BaseMoved { .. }), "{error}");
            assert_eq!(error.class(), ErrorClass::Transient { retry_after: None });
            forge.merge(number, commit).await.unwrap();
        }
    }
    assert_eq!(git(&env.remote, &["ls-tree", "--name-only", "main"]), ".gitignore\nREADME.md\na.txt\nb.txt");
}
