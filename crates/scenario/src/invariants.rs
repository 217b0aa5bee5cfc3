//! What must hold after every rehearsal.

use std::collections::{BTreeMap, BTreeSet};

use rehearsal_agent::mock::CLOCK_VARIABLE;
use rehearsal_core::flow::Step;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Event, EventKind, TaskId};
use rehearsal_forge::{Collected, GcMode, tree_of};
use rehearsal_git::Oid;
use rehearsal_store::Store;

use crate::actors::Actors;
use crate::environment::{Environment, ScenarioError};
use crate::observed::Observed;
use crate::repository::{ORIGIN, WORK};

/// Describes the broken invariants.
pub(crate) async fn broken(
    environment: &Environment,
    store: &dyn Store,
    events: &[Event],
    observed: &Observed,
    actors: &Actors,
) -> Result<Vec<String>, ScenarioError> {
    let mut broken = store.verify().await?;
    broken.extend(processes(actors).await);
    broken.extend(pull_requests(observed));
    broken.extend(merges(events));
    broken.extend(untested(environment, store, events, observed).await?);
    broken.extend(worktrees(environment, observed).await?);
    broken.extend(references(environment).await?);
    broken.extend(locks(environment)?);
    Ok(broken)
}

/// No process outlives its run.
async fn processes(actors: &Actors) -> Option<String> {
    let mark = format!("{CLOCK_VARIABLE}={}", actors.socket.path);
    let mut left = rehearsal_process::processes_marked(&mark);
    // The supervisor of a killed worker needs a moment to end its processes.
    for _ in 0..200 {
        if left.is_empty() {
            return None;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        left = rehearsal_process::processes_marked(&mark);
    }
    Some(format!("{} processes are still alive", left.len()))
}

/// A branch has one pull request.
fn pull_requests(observed: &Observed) -> Vec<String> {
    let mut heads = BTreeMap::new();
    for head in &observed.pull_requests {
        *heads.entry(head).or_insert(0) += 1;
    }
    let twice = heads.into_iter().filter(|(_, count)| *count > 1);
    twice.map(|(head, count)| format!("branch `{head}` has {count} pull requests")).collect()
}

/// A task is merged once.
fn merges(events: &[Event]) -> Vec<String> {
    let mut merged: BTreeMap<&TaskId, BTreeSet<&Oid>> = BTreeMap::new();
    for event in events {
        let EventKind::TaskChanged { task, input: TaskInput::StepDone { delivery, .. }, .. } = &event.kind
        else {
            continue;
        };
        merged.entry(task).or_default().extend(&delivery.merged);
    }
    let twice = merged.into_iter().filter(|(_, commits)| commits.len() > 1);
    twice.map(|(task, commits)| format!("task {task} was merged {} times", commits.len())).collect()
}

/// Every tree that was on the base was tested, if the flow runs tests.
async fn untested(
    environment: &Environment,
    store: &dyn Store,
    events: &[Event],
    observed: &Observed,
) -> Result<Vec<String>, ScenarioError> {
    let mut tests = false;
    for observed in observed.tasks.values() {
        let flow = store.flow(&observed.task.flow_version).await?;
        tests |= flow.states.keys().any(|state| flow.steps_of(state).contains(&Step::RunTests));
    }
    if !tests {
        return Ok(Vec::new());
    }
    if !observed.base_moved {
        return Ok(Vec::new());
    }
    let (mut tested, mut gates) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        match &event.kind {
            EventKind::TaskChanged { input: TaskInput::StepDone { delivery, .. }, .. } => {
                tested.extend(delivery.tested_tree.clone());
            }
            EventKind::TestsRan { run } if run.verdict == "passed" => {
                gates.extend(run.commit.clone());
            }
            _ => {}
        }
    }
    for commit in gates {
        // A discarded candidate may be gone by now.
        tested.extend(tree_of(&environment.checkout(), &commit).await.ok());
    }
    let merged = observed.tasks.values().filter_map(|observed| observed.task.delivery.merged.clone());
    let tips: BTreeSet<Oid> = merged.chain([environment.base_tip().await?]).collect();
    let mut untested = Vec::new();
    for tip in tips {
        let is_untested = environment.tree_on_remote(&tip).await.is_some_and(|tree| !tested.contains(&tree));
        if is_untested && !environment.is_foreign(&tip).await {
            untested.push(format!("the base had {tip:.10}, which was never tested"));
        }
    }
    Ok(untested)
}

/// A worktree exists only for a task that may need it, or for work that is nowhere else.
async fn worktrees(environment: &Environment, observed: &Observed) -> Result<Vec<String>, ScenarioError> {
    let live: BTreeSet<TaskId> = observed
        .tasks
        .values()
        .filter(|observed| !observed.task.is_ended())
        .map(|observed| observed.task.id.clone())
        .collect();
    let entries = environment.worktrees.gc(&live, &[], GcMode::DryRun).await?;
    let stray = entries.into_iter().filter_map(|entry| match (entry.collected, entry.task) {
        (Collected::Removed, Some(task)) => Some(format!("the worktree of task {task} was not given back")),
        (Collected::Busy, task) => Some(format!(
            "the worktree of {} is locked",
            task.map_or_else(|| "nobody".to_owned(), |task| format!("task {task}"))
        )),
        (Collected::Removed, None) | (Collected::InUse | Collected::Kept(_), _) => None,
    });
    Ok(stray.collect())
}

/// Our private references are deleted.
async fn references(environment: &Environment) -> Result<Option<String>, ScenarioError> {
    let listed =
        environment.checkout().line(&["for-each-ref", "--format=%(refname)", "refs/rehearsal/"]).await?;
    let names: Vec<&str> = listed.lines().collect();
    Ok((!names.is_empty()).then(|| format!("references were left: {}", names.join(", "))))
}

/// git's locks do not outlive git.
fn locks(environment: &Environment) -> Result<Option<String>, ScenarioError> {
    let mut left = Vec::new();
    let mut directories = vec![environment.root.join(WORK).join(".git"), environment.root.join(ORIGIN)];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && entry.file_name() != "objects" {
                directories.push(entry.path().to_owned());
            } else if entry.file_name().ends_with(".lock") && !entry.file_name().starts_with("rehearsal") {
                left.push(entry.path().strip_prefix(&environment.root).unwrap_or(entry.path()).to_string());
            }
        }
    }
    Ok((!left.is_empty()).then(|| format!("locks were left: {}", left.join(", "))))
}
