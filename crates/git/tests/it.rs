//! How git is called, and how its failures are named.
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_git::{Git, GitError, Oid, Repository, version};

/// A repository with one commit in a directory that is removed with this.
struct TestEnv {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
    repo: Utf8PathBuf,
}

impl TestEnv {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let env = Self { _dir: dir, repo: root.join("repo"), root };
        fs_err::create_dir(&env.repo).unwrap();
        git(&env.repo, &["init", "--quiet", "--initial-branch=main"]);
        env.write("README.md", "# A test\n");
        env.commit("begin");
        env
    }

    fn write(&self, path: &str, content: &str) {
        fs_err::write(self.repo.join(path), content).unwrap();
    }

    fn commit(&self, message: &str) -> Oid {
        git(&self.repo, &["add", "--all"]);
        git(&self.repo, &["commit", "--quiet", "--allow-empty", "--message", message]);
        head(&self.repo)
    }
}

fn head(dir: &Utf8Path) -> Oid {
    Oid::new(&git(dir, &["rev-parse", "HEAD"])).unwrap()
}

/// git as a person calls it.
fn git(dir: &Utf8Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn hooks_of_the_repository_do_not_run() {
    let env = TestEnv::new();
    let (hook, mark) = (env.repo.join(".git/hooks/post-checkout"), env.root.join("ran"));
    fs_err::create_dir_all(hook.parent().unwrap()).unwrap();
    fs_err::write(&hook, format!("#!/bin/sh\ntouch {mark}\n")).unwrap();
    fs_err::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    Git::at(&env.repo).run(&["checkout", "--quiet", "-b", "topic"]).await.unwrap();
    assert!(!mark.exists());
    git(&env.repo, &["checkout", "--quiet", "main"]);
    assert!(mark.exists(), "by hand it does run");
}

#[tokio::test]
async fn each_failure_has_a_name() {
    let env = TestEnv::new();
    let failure = async |dir: &str, args: &[&str]| Git::at(env.root.join(dir)).run(args).await.unwrap_err();
    let error = failure("repo", &["checkout", "nowhere"]).await;
    assert_eq!(
        error.to_string(),
        "`git checkout nowhere` failed: error: pathspec 'nowhere' did not match any file(s) known to git"
    );
    fs_err::create_dir(env.root.join("plain")).unwrap();
    let error = failure("plain", &["status"]).await;
    assert_eq!(error.to_string(), format!("`{}` is not in a git repository", env.root.join("plain")));
    assert!(matches!(failure("gone", &["status"]).await, GitError::Io { .. }));

    fs_err::write(env.repo.join(".git/index.lock"), "").unwrap();
    let GitError::LockHeld { lock, .. } = failure("repo", &["reset", "--hard"]).await else { panic!() };
    assert_eq!(lock, env.repo.join(".git/index.lock"));
    fs_err::write(env.repo.join(".git/config.lock"), "").unwrap();
    let GitError::LockHeld { lock, .. } = failure("repo", &["config", "a.b", "c"]).await else { panic!() };
    assert_eq!(lock, env.repo.join(".git/config.lock"));
}

#[tokio::test]
async fn a_name_that_is_no_commit_is_told() {
    let env = TestEnv::new();
    let error = Git::at(&env.repo).commit("--output=x").await.unwrap_err();
    assert_eq!(error.to_string(), "`--output=x` is not a commit of this repository");
}

#[tokio::test]
async fn a_name_stands_for_the_same_commit_wherever_git_keeps_it() {
    let env = TestEnv::new();
    let first = env.commit("first");
    git(&env.repo, &["branch", "feature/packed"]);
    git(&env.repo, &["pack-refs", "--all"]);
    let second = env.commit("second");
    let linked = env.root.join("linked");
    git(&env.repo, &["worktree", "add", "--quiet", "-b", "feature/linked", linked.as_str(), "HEAD~1"]);
    let detached = env.root.join("detached");
    git(&env.repo, &["worktree", "add", "--quiet", "--detach", detached.as_str(), "HEAD~1"]);
    fs_err::create_dir(env.repo.join("below")).unwrap();
    for (dir, name, commit) in [
        (&env.repo, "HEAD", &second),
        (&env.repo.join("below"), "HEAD", &second),
        (&env.repo, "refs/heads/main", &second),
        (&env.repo, "refs/heads/feature/packed", &first),
        (&linked, "HEAD", &first),
        (&linked, "refs/heads/main", &second),
        (&linked, "refs/heads/feature/linked", &first),
        (&detached, "HEAD", &first),
    ] {
        assert_eq!(Git::at(dir).commit(name).await.unwrap(), *commit, "{name} in {dir}");
    }
    // A branch that is packed and moved counts as it was moved.
    git(&env.repo, &["branch", "--force", "feature/packed", "main"]);
    assert_eq!(Git::at(&env.repo).commit("refs/heads/feature/packed").await.unwrap(), second);
    let error = Git::at(&env.repo).commit("refs/heads/../../HEAD").await.unwrap_err();
    assert!(
        error.to_string().ends_with("`refs/heads/../../HEAD` is not a commit of this repository"),
        "{error}"
    );
}

#[tokio::test]
async fn history_is_the_same_whether_it_is_packed_or_not() {
    let env = TestEnv::new();
    let first = env.commit("first");
    git(&env.repo, &["checkout", "--quiet", "-b", "side"]);
    let side = env.commit("side");
    git(&env.repo, &["checkout", "--quiet", "main"]);
    let second = env.commit("second");
    git(&env.repo, &["merge", "--quiet", "--no-edit", "side"]);
    let merge = head(&env.repo);
    let repository = Git::at(&env.repo);
    for packed in [false, true] {
        if packed {
            git(&env.repo, &["repack", "-a", "-d", "--quiet"]);
        }
        for (ancestor, of, expected) in [
            (&first, &merge, true),
            (&side, &merge, true),
            (&merge, &merge, true),
            (&side, &second, false),
            (&merge, &first, false),
        ] {
            let found = repository.is_ancestor(ancestor, of).await.unwrap();
            assert_eq!(found, expected, "{ancestor} in {of}, packed: {packed}");
        }
        assert_eq!(repository.commit(merge.as_str()).await.unwrap(), merge);
    }
    let unknown = "0123456789012345678901234567890123456789";
    let error = repository.commit(unknown).await.unwrap_err().to_string();
    assert!(error.ends_with(&format!("`{unknown}` is not a commit of this repository")), "{error}");
}

#[tokio::test]
async fn an_object_under_anothers_name_is_not_believed() {
    let env = TestEnv::new();
    let honest = env.commit("honest");
    env.write("evil.txt", "evil\n");
    let forged = env.commit("forged");
    let file = |oid: &Oid| env.repo.join(".git/objects").join(&oid.as_str()[..2]).join(&oid.as_str()[2..]);
    fs_err::remove_file(file(&honest)).unwrap();
    fs_err::copy(file(&forged), file(&honest)).unwrap();
    assert!(Git::at(&env.repo).commit(honest.as_str()).await.is_err());
}

#[tokio::test]
async fn many_files_of_a_commit_come_with_one_call() {
    let env = TestEnv::new();
    let names = ["main:README.md", "main:nowhere", "main:a\nb", "main:README.md"].map(str::to_owned);
    let found = Git::at(&env.repo).contents(&names).await.unwrap();
    let found: Vec<_> = found.iter().map(|it| it.as_deref().map(String::from_utf8_lossy)).collect();
    assert_eq!(found, [Some("# A test\n".into()), None, None, Some("# A test\n".into())]);
}

#[tokio::test]
async fn nobody_waits_for_what_stands_in_the_place_of_a_repository() {
    let env = TestEnv::new();
    let odd = env.root.join("odd");
    fs_err::create_dir(&odd).unwrap();
    let made = std::process::Command::new("mkfifo").arg(odd.join(".git")).status().unwrap();
    assert!(made.success());
    assert!(Git::at(&odd).commit("HEAD").await.is_err());
    assert!(Repository::around(&odd).is_err());
}

#[tokio::test]
async fn nobody_waits_for_a_git_that_was_given_up() {
    let env = TestEnv::new();
    let pid: Utf8PathBuf = env.root.join("pid");
    let alias = format!("alias.hang=!echo $$ > {pid}; exec sleep 1000");
    let git = Git::at(&env.repo);
    let args = ["-c", alias.as_str(), "hang"];
    let hang = git.run(&args);
    let begun = async {
        loop {
            if let Some(pid) = fs_err::read_to_string(&pid).ok().and_then(|it| it.trim().parse::<i32>().ok())
            {
                break pid;
            }
            tokio::task::yield_now().await;
        }
    };
    let process = tokio::select! { _ = hang => unreachable!(), pid = begun => pid };
    let process = format!("/proc/{process}/stat");
    let alive = || fs_err::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z "));
    while alive() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_base_branch_is_the_remotes_own_or_main() {
    let env = TestEnv::new();
    let base_branch = async || Repository::around(&env.repo).unwrap().base_branch().await.unwrap();
    assert_eq!(base_branch().await, "main");
    git(&env.repo, &["checkout", "-q", "-b", "feature"]);
    assert_eq!(base_branch().await, "main");
    git(&env.repo, &["branch", "-q", "-D", "main"]);
    assert_eq!(base_branch().await, "feature");
    git(&env.repo, &["update-ref", "refs/remotes/origin/trunk", "HEAD"]);
    git(&env.repo, &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
    assert_eq!(base_branch().await, "trunk");
}

#[tokio::test]
async fn a_repository_is_found_from_below_and_from_a_worktree() {
    let env = TestEnv::new();
    fs_err::create_dir(env.repo.join("below")).unwrap();
    let found = Repository::around(&env.repo.join("below")).unwrap();
    let git_dir = env.repo.join(".git");
    assert_eq!((&found.root, &found.git_dir, &found.common_dir), (&env.repo, &git_dir, &git_dir));
    let linked = env.root.join("linked");
    git(&env.repo, &["worktree", "add", "--quiet", "--detach", linked.as_str()]);
    let found = Repository::around(&linked).unwrap();
    assert_eq!((&found.root, &found.common_dir), (&linked, &git_dir));
    assert_eq!(found.git_dir, git_dir.join("worktrees/linked"));
    assert_eq!(Repository::find(&env.root).unwrap(), None);
    let error = Repository::around(&env.root).unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` is not in a git repository", env.root));
}

#[tokio::test]
async fn a_long_answer_is_cut_on_request() {
    let env = TestEnv::new();
    let git = Git::at(&env.repo);
    let whole = git.head(&["show", "main:README.md"], 100).await.unwrap();
    assert_eq!((whole.text.as_str(), whole.is_cut), ("# A test\n", false));
    let cut = git.head(&["show", "main:README.md"], 3).await.unwrap();
    assert_eq!((cut.text.as_str(), cut.is_cut), ("# A", true));
    assert!(matches!(git.head(&["show", "main:nowhere"], 3).await, Err(GitError::Failed { .. })));
}

#[tokio::test]
async fn git_says_its_version() {
    let version = version().await.unwrap();
    assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
}
