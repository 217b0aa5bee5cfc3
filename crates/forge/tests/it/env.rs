//! A place with a remote, a user's clone of it, and room for worktrees.

use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Fence, TaskId};
use rehearsal_forge::{Worktree, WorktreeSettings, Worktrees};
use rehearsal_git::{Git, Oid};

/// Gone with its end.
pub(crate) struct TestEnv {
    _dir: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) remote: Utf8PathBuf,
    pub(crate) repo: Utf8PathBuf,
    pub(crate) under: Utf8PathBuf,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let (remote, repo, under) = (root.join("remote.git"), root.join("repo"), root.join("worktrees"));
        git(&root, &["init", "--quiet", "--bare", "-b", "main", "remote.git"]);
        git(&root, &["init", "--quiet", "-b", "main", "repo"]);
        for (name, value) in [("user.name", "Ada"), ("user.email", "ada@example.org")] {
            git(&repo, &["config", name, value]);
        }
        git(&repo, &["remote", "add", "origin", remote.as_str()]);
        fs_err::write(repo.join("README.md"), "# A test\n").unwrap();
        fs_err::write(repo.join(".gitignore"), "target/\n.env\n*.local\n").unwrap();
        let env = Self { _dir: dir, root, remote, repo, under };
        env.commit("begin");
        git(&env.repo, &["push", "--quiet", "-u", "origin", "main"]);
        env
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let file = self.repo.join(path);
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(file, content).unwrap();
    }

    /// Commits all in the user's checkout.
    pub(crate) fn commit(&self, message: &str) -> Oid {
        git(&self.repo, &["add", "--all"]);
        git(&self.repo, &["commit", "--quiet", "--allow-empty", "-m", message]);
        head(&self.repo)
    }

    /// A file with a text, committed and pushed to the base.
    pub(crate) fn lands(&self, path: &str, content: &str) -> Oid {
        self.write(path, content);
        let commit = self.commit(&format!("change {path}"));
        git(&self.repo, &["push", "--quiet", "origin", "main"]);
        commit
    }

    pub(crate) fn worktrees(&self) -> Worktrees {
        self.worktrees_with(WorktreeSettings { setup: None, keep_warm: 4 })
    }

    pub(crate) fn worktrees_with(&self, settings: WorktreeSettings) -> Worktrees {
        Worktrees::open(&self.repo, &self.under, settings).unwrap()
    }

    /// The worktree of a task's first attempt.
    pub(crate) async fn worktree(&self, name: &str) -> Worktree {
        self.worktrees().prepare(&task(name), Fence(1), "main").await.unwrap()
    }

    /// All files of git's locks and entries that are left under `.git`.
    pub(crate) fn leftover_locks(&self) -> Vec<String> {
        let (mut found, mut open) = (Vec::new(), vec![self.repo.join(".git")]);
        while let Some(dir) = open.pop() {
            for entry in dir.read_dir_utf8().unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    open.push(entry.path().to_owned());
                } else if entry.file_name().ends_with(".lock") && entry.file_name() != "rehearsal.lock" {
                    found.push(entry.path().strip_prefix(&self.repo).unwrap().to_string());
                }
            }
        }
        found
    }
}

pub(crate) fn task(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

/// git by hand, as a user or an agent has it.
pub(crate) fn git(dir: &Utf8Path, args: &[&str]) -> String {
    let output = try_git(dir, args);
    assert!(output.status.success(), "git {args:?} in {dir}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub(crate) fn try_git(dir: &Utf8Path, args: &[&str]) -> Output {
    Command::new("git")
        .args(["-c", "gc.auto=0", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap()
}

pub(crate) fn head(dir: &Utf8Path) -> Oid {
    Oid::new(&git(dir, &["rev-parse", "HEAD"])).unwrap()
}

/// A commit of one file, as an agent makes it.
pub(crate) fn agent_commits(worktree: &Utf8Path, path: &str, content: &str) -> Oid {
    fs_err::write(worktree.join(path), content).unwrap();
    git(worktree, &["add", path]);
    git(worktree, &["commit", "--quiet", "-m", &format!("Write {path}")]);
    head(worktree)
}

/// What differs from the commit, ignored files too.
pub(crate) async fn status(dir: &Utf8Path) -> String {
    Git::at(dir).line(&["status", "--porcelain", "--ignored"]).await.unwrap()
}
