//! What a run changed, in real repositories.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::git::Snapshot;
use rehearsal_core::{GitFacts, Oid, Outcome};

use crate::support::Bench;

struct Repo {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl Repo {
    /// A repository without a commit.
    fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let repo = Self { _dir: dir, root };
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    /// One with a commit that holds `a.txt`.
    fn new() -> Self {
        let repo = Self::empty();
        repo.write("a.txt", "one\n");
        repo.commit("begin");
        repo
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.root, args)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn commit(&self, message: &str) -> Oid {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--no-verify", "-m", message]);
        self.head()
    }

    fn head(&self) -> Oid {
        Oid::new(&self.git(&["rev-parse", "HEAD"])).unwrap()
    }

    async fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.root).await.unwrap().unwrap()
    }

    async fn since(&self, before: &Snapshot) -> GitFacts {
        before.facts_since(&self.root).await.unwrap()
    }
}

pub(crate) fn git_in(dir: &Utf8Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn subjects(facts: &GitFacts) -> Vec<&str> {
    facts.commits.iter().map(|commit| commit.subject.as_str()).collect()
}

#[tokio::test]
async fn nothing_done_is_nothing_changed() {
    let repo = Repo::new();
    let before = repo.snapshot().await;
    let facts = repo.since(&before).await;
    assert!(!facts.changed() && !facts.uncommitted);
    assert_eq!(before, repo.snapshot().await);
}

#[tokio::test]
async fn commits_are_told_oldest_first_with_their_files() {
    let repo = Repo::new();
    let before = repo.snapshot().await;
    repo.write("b.txt", "b");
    let first = repo.commit("add b");
    repo.write("dir/c d.txt", "c");
    repo.write("a.txt", "two\n");
    let second = repo.commit("add c: with words");
    let facts = repo.since(&before).await;
    assert_eq!(subjects(&facts), ["add b", "add c: with words"]);
    assert_eq!(facts.commits.iter().map(|commit| &commit.id).collect::<Vec<_>>(), [&first, &second]);
    assert_eq!(facts.head_after, Some(second));
    assert_eq!(facts.files_changed, ["a.txt", "b.txt", "dir/c d.txt"]);
    assert!(!facts.uncommitted);
}

#[tokio::test]
async fn uncommitted_work_is_seen_tracked_or_not() {
    let repo = Repo::new();
    let before = repo.snapshot().await;
    repo.write("a.txt", "changed\n");
    repo.write("new/deep.txt", "x");
    let facts = repo.since(&before).await;
    assert_eq!(facts.files_changed, ["a.txt", "new/deep.txt"]);
    assert!(facts.uncommitted && facts.commits.is_empty() && facts.changed());
}

#[tokio::test]
async fn a_further_edit_of_a_dirty_file_is_noticed_and_its_rest_is_not_counted() {
    let repo = Repo::new();
    repo.write("a.txt", "1234\n");
    repo.write("untracked.txt", "mine");
    let before = repo.snapshot().await;
    let facts = repo.since(&before).await;
    assert!(!facts.changed() && facts.uncommitted, "what was dirty before is not the run's doing");
    repo.write("a.txt", "4321\n");
    assert_eq!(repo.since(&before).await.files_changed, ["a.txt"], "same size, same moment, other content");
    repo.write("a.txt", "one\n");
    assert_eq!(repo.since(&before).await.files_changed, ["a.txt"], "taken back: also a change");
    repo.write("a.txt", "1234\n");
    assert!(!repo.since(&before).await.changed());
    std::fs::remove_file(repo.root.join("untracked.txt")).unwrap();
    assert_eq!(repo.since(&before).await.files_changed, ["untracked.txt"]);
}

#[tokio::test]
async fn a_deleted_file_is_a_change() {
    let repo = Repo::new();
    let before = repo.snapshot().await;
    std::fs::remove_file(repo.root.join("a.txt")).unwrap();
    assert_eq!(repo.since(&before).await.files_changed, ["a.txt"]);
}

#[tokio::test]
async fn an_amended_commit_is_a_new_one() {
    let repo = Repo::new();
    let before = repo.snapshot().await;
    repo.write("a.txt", "two\n");
    repo.git(&["commit", "-q", "-a", "--amend", "-m", "begin, better"]);
    let facts = repo.since(&before).await;
    assert_eq!(subjects(&facts), ["begin, better"]);
    assert_eq!(facts.files_changed, ["a.txt"]);
}

#[tokio::test]
async fn commits_taken_back_are_a_change_without_commits() {
    let repo = Repo::new();
    repo.write("b.txt", "b");
    repo.commit("add b");
    let before = repo.snapshot().await;
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let facts = repo.since(&before).await;
    assert_eq!((facts.commits.len(), facts.changed()), (0, true));
    assert_eq!(facts.files_changed, ["b.txt"]);
}

#[tokio::test]
async fn a_detached_head_is_read() {
    let repo = Repo::new();
    repo.git(&["checkout", "-q", "--detach"]);
    let before = repo.snapshot().await;
    repo.write("b.txt", "b");
    let id = repo.commit("add b");
    let facts = repo.since(&before).await;
    assert_eq!((subjects(&facts), &facts.head_after), (vec!["add b"], &Some(id)));
}

#[tokio::test]
async fn the_first_commit_of_all_is_seen() {
    let repo = Repo::empty();
    let before = repo.snapshot().await;
    assert_eq!(before.head, None);
    repo.write("a.txt", "a");
    repo.write(".rehearsal/state/db", "ours");
    repo.commit("first");
    let facts = repo.since(&before).await;
    assert_eq!((facts.head_before.clone(), subjects(&facts)), (None, vec!["first"]));
    assert_eq!(facts.files_changed, ["a.txt"]);
}

#[tokio::test]
async fn a_worktree_has_its_own_head_and_shares_the_branches() {
    let repo = Repo::new();
    let place = tempfile::tempdir().unwrap();
    let tree = Utf8PathBuf::from_path_buf(place.path().join("tree")).unwrap();
    repo.git(&["worktree", "add", "-q", "-b", "task/one", tree.as_str()]);
    let before = Snapshot::take(&tree).await.unwrap().unwrap();
    assert_eq!(before.head, Some(repo.head()));
    std::fs::write(tree.join("b.txt"), "b").unwrap();
    git_in(&tree, &["add", "-A"]);
    git_in(&tree, &["commit", "-q", "-m", "in the tree"]);
    let facts = before.facts_since(&tree).await.unwrap();
    assert_eq!(subjects(&facts), ["in the tree"]);
    assert!(!repo.since(&repo.snapshot().await).await.changed());
}

#[tokio::test]
async fn packed_references_are_read() {
    let repo = Repo::new();
    let id = repo.head();
    repo.git(&["pack-refs", "--all", "--prune"]);
    assert!(!repo.root.join(".git/refs/heads/main").exists());
    assert_eq!(repo.snapshot().await.head, Some(id));
}

#[tokio::test]
async fn another_store_of_references_is_left_to_git() {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
    git_in(&root, &["init", "-q", "-b", "main", "--ref-format=reftable"]);
    assert_eq!(Snapshot::take(&root).await.unwrap().unwrap().head, None);
    std::fs::write(root.join("a"), "a").unwrap();
    git_in(&root, &["add", "-A"]);
    git_in(&root, &["commit", "-q", "-m", "x"]);
    assert_eq!(
        Snapshot::take(&root).await.unwrap().unwrap().head,
        Some(Oid::new(&git_in(&root, &["rev-parse", "HEAD"])).unwrap())
    );
}

#[tokio::test]
async fn what_the_repository_configures_is_not_executed() {
    let repo = Repo::new();
    let program = repo.root.join(".git/evil");
    std::fs::write(&program, "#!/bin/sh\ntouch \"$(dirname \"$0\")/executed\"\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for key in ["core.fsmonitor", "core.pager", "diff.external"] {
        repo.git(&["config", key, program.as_str()]);
    }
    repo.git(&["config", "core.fsmonitor", program.as_str()]);
    let before = repo.snapshot().await;
    repo.write("a.txt", "two\n");
    std::fs::remove_file(repo.root.join(".git/executed")).ok();
    git_in(&repo.root, &["-c", "core.fsmonitor=false", "commit", "-q", "-am", "x"]);
    assert_eq!(repo.since(&before).await.files_changed, ["a.txt"]);
    assert!(!repo.root.join(".git/executed").exists());
}

#[tokio::test]
async fn our_own_state_is_no_change() {
    let repo = Repo::new();
    let before = repo.snapshot().await;
    repo.write(".rehearsal/state/runs/1/log", "x");
    assert!(!repo.since(&before).await.changed());
    assert!(repo.snapshot().await.is_clean());
    repo.write(".rehearsal/config.yaml", "x");
    assert!(!repo.snapshot().await.is_clean());
}

#[tokio::test]
async fn a_directory_outside_any_repository_is_told_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
    assert_eq!(Snapshot::take(&root).await.unwrap(), None);
}

#[tokio::test]
async fn a_run_is_judged_by_what_it_committed() {
    let mut bench = Bench::new();
    let repo = Repo::new();
    bench.request.working_dir.clone_from(&repo.root);
    bench.request.run_dir = repo.root.join(".rehearsal/state/runs/1");
    let script = "echo x > b.txt; git add b.txt
        git -c user.name=A -c user.email=a@example.com commit -q -m 'add b'; echo more >> a.txt; echo fine";
    let report = bench.sh(script).await;
    assert_eq!(report.verdict.outcome, Outcome::Done);
    let facts = report.evidence.git.unwrap();
    assert_eq!((subjects(&facts), facts.uncommitted), (vec!["add b"], true));
    assert_eq!(facts.files_changed, ["a.txt", "b.txt"]);
    assert_eq!(bench.sh("echo I did a lot").await.verdict.outcome, Outcome::NoChanges);
    assert_eq!(bench.sh("true").await.verdict.outcome, Outcome::EmptyOutput);
}
