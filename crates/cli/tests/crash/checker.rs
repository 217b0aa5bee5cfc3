//! What must hold at the end of every story.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Clock, EventKind, RunId, Task, TaskId};
use rehearsal_engine::SystemClock;
use rehearsal_forge::{GcMode, sweep_references};
use rehearsal_store::EventQuery;

use crate::processes::FOR_EVER;
use crate::stage::{KEPT_WARM, Machine, Stage, git, wait_for};

const A_MONTH: Duration = Duration::from_hours(30 * 24);

/// All is done, once, and nothing is left over.
pub(crate) fn check(stage: &Stage) {
    nothing_lives(stage);
    let doctor = stage.first().json(&["doctor", "--store"]);
    assert_eq!((&doctor["healthy"], &doctor["findings"]), (&true.into(), &serde_json::json!([])), "{doctor}");
    let tasks = stage.tasks();
    for task in &tasks {
        let (status, rejections) = (task.status(), task.rejections);
        assert_eq!((status, rejections), ("done", 0), "{} {:?}", task.title, task.feedback);
    }
    each_thing_happened_once(stage, &tasks);
    each_work_landed_once(stage, &tasks);
    stage.machines.iter().for_each(|machine| nothing_is_left_on(machine, &tasks));
    no_private_references_in(&stage.remote());
}

/// Waits until no process of the stage lives.
pub(crate) fn nothing_lives(stage: &Stage) {
    let deadline = Instant::now() + FOR_EVER;
    loop {
        let left = stage.processes();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still alive: {left:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// By the log: each task was finished once, each run began and ended once, and fences only rise.
fn each_thing_happened_once(stage: &Stage, tasks: &[Task]) {
    let events = wait_for(async { stage.store().await.events(&EventQuery::default()).await.unwrap() });
    let (mut finished, mut fences) = (BTreeMap::new(), BTreeMap::new());
    let (mut starts, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for event in &events {
        match &event.kind {
            EventKind::TaskChanged { task, from, to, .. } if from != to && to.as_str() == "done" => {
                *finished.entry(task).or_insert(0) += 1;
            }
            EventKind::RunStarted { run } => {
                *starts.entry(&run.id).or_insert(0) += 1;
                let before = fences.insert(&run.task, run.fence);
                assert!(before < Some(run.fence), "the fence of `{}` does not rise", run.task);
            }
            EventKind::RunEnded { run, .. } => *ends.entry(run).or_insert(0) += 1,
            _ => {}
        }
    }
    let ids: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    assert_eq!(finished, once(&ids), "each task is finished once");
    let runs: BTreeSet<&RunId> = starts.keys().copied().collect();
    assert_eq!(starts, once(&runs), "each run began once");
    assert_eq!(ends, once(&runs), "each run ended once");
}

/// By the remote: one pull request and one merge for each task of that flow, and its work on the base once.
fn each_work_landed_once(stage: &Stage, tasks: &[Task]) {
    let remote = stage.remote();
    git(&remote, &["fsck", "--strict", "--no-progress"]);
    let for_base: Vec<&Task> = tasks.iter().filter(|task| task.flow.as_str() == "pull-request").collect();
    let log = git(&remote, &["log", "--no-merges", "--format=%s", "main"]);
    let mut landed: Vec<&str> = log.lines().filter(|subject| *subject != "Begin").collect();
    landed.sort_unstable();
    let mut expected: Vec<String> = for_base.iter().map(|task| format!("Work on {}", task.id)).collect();
    expected.sort();
    assert_eq!(landed, expected, "each work is on the base once");
    let pull_requests = git(&remote, &["for-each-ref", "--format=%(refname)", "refs/rehearsal/pr"]);
    assert_eq!(pull_requests.lines().count(), for_base.len(), "one pull request a task");
    let merged: BTreeSet<&str> =
        for_base.iter().map(|task| task.delivery.merged.as_ref().unwrap().as_str()).collect();
    assert_eq!(merged.len(), for_base.len(), "one merge a task");
    for merge in merged {
        git(&remote, &["merge-base", "--is-ancestor", merge, "main"]);
    }
}

fn nothing_is_left_on(machine: &Machine, tasks: &[Task]) {
    assert_eq!(git(&machine.repo, &["status", "--short"]), "", "the checkout is not touched");
    let worktrees = git(&machine.repo, &["worktree", "list", "--porcelain"]);
    // What a flow does not push stays where it is.
    let pushed = |id: &str| tasks.iter().any(|task| task.id.as_str() == id && task.delivery.pushed.is_some());
    let stays = |entry: &str| {
        let owner = entry.split("locked rehearsal ").nth(1).and_then(|lock| lock.split('/').next());
        owner.is_some_and(|owner| tasks.iter().any(|task| task.id.as_str() == owner) && !pushed(owner))
    };
    let count = worktrees.trim_end().split("\n\n").filter(|entry| !stays(entry)).count();
    assert!(count <= 1 + KEPT_WARM, "more worktrees than are kept warm:\n{worktrees}");
    assert!(!worktrees.contains("prunable"), "{worktrees}");
    let mut locks = files_ending(&machine.repo.join(".git"), ".lock");
    // Ours, which is held by who has it open, and is there for good.
    locks.retain(|lock| lock.file_name() != Some("rehearsal.lock"));
    assert_eq!(locks, Vec::<Utf8PathBuf>::new(), "locks of git are left");
    no_private_references_in(&machine.repo);
    let workers = files_ending(&machine.state_dir().join("workers"), "");
    assert_eq!(workers, Vec::<Utf8PathBuf>::new(), "traces of dead workers are left");
    let shims = files_ending(&machine.state_dir().join("shims"), "");
    assert_eq!(shims, Vec::<Utf8PathBuf>::new(), "sockets of agents are left");
}

/// A fetch that was killed leaves its reference until `gc` sees that it is old: then none may stay.
fn no_private_references_in(repository: &Utf8Path) {
    let later = SystemClock.now().plus(A_MONTH);
    wait_for(sweep_references(repository, later, GcMode::Delete)).unwrap();
    let left = git(repository, &["for-each-ref", "refs/rehearsal/fetch", "refs/rehearsal/staging"]);
    assert_eq!(left, "", "private references are left in {repository}");
}

fn files_ending(directory: &Utf8Path, ending: &str) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir_utf8().into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.into_path());
            } else if entry.file_name().ends_with(ending) {
                found.push(entry.into_path());
            }
        }
    }
    found
}

fn once<T: Ord + Copy>(things: &BTreeSet<T>) -> BTreeMap<T, u32> {
    things.iter().map(|thing| (*thing, 1)).collect()
}
