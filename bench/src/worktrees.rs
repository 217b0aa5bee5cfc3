//! A place to work in a repository of 5,000 files: ours beside bare `git worktree add`, one after the other and eight at
//! once.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Fence, TaskId};
use rehearsal_forge::{WorktreeSettings, Worktrees};

const FILES: usize = 5_000;
const ROUNDS: usize = 7;
const AT_ONCE: usize = 8;

pub(crate) fn measure() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
    let repository = root.join("repository");
    fill(&repository);
    runtime.block_on(async {
        one_by_one(&root, &repository).await;
        at_once(&root, &repository).await;
    });
}

/// One fresh place of ours, one of git's, and so on; after each of ours it is left, and taken again by the next task.
async fn one_by_one(root: &Utf8Path, repository: &Utf8Path) {
    let (mut fresh, mut warm, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let settings = WorktreeSettings { keep_warm: 1, ..WorktreeSettings::default() };
        let ours = Worktrees::open(repository, &root.join(format!("ours-{round}")), settings).unwrap();
        fresh.push(prepare(&ours, "first").await);
        ours.release(&task("first"), Fence(1), &[]).await.unwrap();
        warm.push(prepare(&ours, "second").await);
        let start = Instant::now();
        assert!(add(repository, &root.join(format!("bare-{round}"))).status().unwrap().success());
        bare.push(start.elapsed());
    }
    let (fresh, warm, bare) = (crate::median(fresh), crate::median(warm), crate::median(bare));
    crate::row("worktrees: fresh, bare `git worktree add`", fresh, bare, "<= 1.1x");
    crate::row("worktrees: the second, bare", warm, bare, "<= 0.1x");
}

async fn at_once(root: &Utf8Path, repository: &Utf8Path) {
    let ours = Worktrees::open(repository, &root.join("crowd"), WorktreeSettings::default()).unwrap();
    let ours = std::sync::Arc::new(ours);
    let start = Instant::now();
    let preparing: tokio::task::JoinSet<bool> = (0..AT_ONCE)
        .map(|number| {
            let ours = std::sync::Arc::clone(&ours);
            async move { ours.prepare(&task(&format!("t{number}")), Fence(1), "main").await.is_ok() }
        })
        .collect();
    let failed = preparing.join_all().await.iter().filter(|is_ok| !**is_ok).count();
    let took = start.elapsed();
    let start = Instant::now();
    let adding: Vec<_> = (0..AT_ONCE)
        .map(|number| add(repository, &root.join(format!("crowd-bare-{number}"))).spawn().unwrap())
        .collect();
    let failed_bare =
        adding.into_iter().filter_map(|mut git| git.wait().ok()).filter(|s| !s.success()).count();
    let what = format!("worktrees: {AT_ONCE} at once, bare");
    let goal = format!("none fails: {failed} of ours, {failed_bare} of git's");
    crate::row(&what, took, start.elapsed(), &goal);
}

async fn prepare(worktrees: &Worktrees, name: &str) -> Duration {
    let start = Instant::now();
    worktrees.prepare(&task(name), Fence(1), "main").await.unwrap();
    start.elapsed()
}

fn task(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

fn add(repository: &Utf8Path, place: &Utf8Path) -> Command {
    let mut git = Command::new("git");
    git.args(["worktree", "add", "--quiet", "--detach", place.as_str(), "main"]);
    git.current_dir(repository).stderr(Stdio::null());
    git
}

/// Files of a few kilobytes, fifty a directory.
fn fill(repository: &Utf8Path) {
    for number in 0..FILES {
        let directory = repository.join(format!("part-{}", number / 50));
        std::fs::create_dir_all(&directory).unwrap();
        let text = format!("line {number}\n").repeat(50 + number % 200);
        std::fs::write(directory.join(format!("file-{number}.txt")), text).unwrap();
    }
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        let done = Command::new("git").args(identity).args(args).current_dir(repository).status().unwrap();
        assert!(done.success());
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message=bench"]);
}
