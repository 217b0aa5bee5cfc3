//! `gc`: clears away what is not needed any more, and says why it keeps the rest.

use std::collections::BTreeSet;

use clap::Args;
use rehearsal_core::config::{Overrides, Settings};
use rehearsal_core::{Task, TaskId, WorkerId};
use rehearsal_engine::forget_dead_workers;
use rehearsal_forge::{Collected, GcEntry, GcMode, Worktrees, remote_head, sweep_references};
use rehearsal_git::{Git, Oid};
use rehearsal_store::{StatusFilter, Store, TaskQuery};
use serde::Serialize;

use super::Done;
use super::work::open_worktrees;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;
use crate::outlet::{Destination, git_error};
use crate::project::Project;
use crate::ui::harmless;
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rehearsal gc --dry-run      # only say what would go\n  rehearsal gc

Removes worktrees that no open task needs, warm ones too, and what processes that were killed have left: references \
under refs/rehearsal that are older than a day, and traces of dead workers. Work that is nowhere else is never removed: \
not uncommitted files, not commits that nothing else has.")]
pub(crate) struct GcArgs {
    /// Only say what would be removed
    #[arg(long, short = 'n')]
    dry_run: bool,
}

/// `gc --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct GcDocument {
    /// Whether it was only said.
    dry_run: bool,
    /// Each worktree, and what becomes of it.
    worktrees: Vec<WorktreeView>,
    /// References of processes that were killed, removed from the repository.
    references: Vec<String>,
    /// Traces of dead workers, removed.
    workers: Vec<WorkerId>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorktreeView {
    path: String,
    task: Option<TaskId>,
    fate: Fate,
    /// Why it is kept.
    because: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Fate {
    /// It is removed, or would be.
    Removed,
    /// It stays.
    Kept,
}

pub(crate) async fn run(args: GcArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let project = context.project()?;
    let settings = project.settings(Overrides::default())?;
    let store = project.store().await?;
    let mode = if args.dry_run { GcMode::DryRun } else { GcMode::Delete };
    let worktrees = open_worktrees(&settings, &project).await?;
    let saved = saved_elsewhere(&worktrees, &*store, &settings, &project).await?;
    let entries = worktrees.gc(&needed(&*store).await?, &saved, mode).await;
    let entries = entries.map_err(|error| CliError::of(Exit::Git, &error))?;
    let references = sweep_references(&project.root, context.now(), mode).await;
    let document = GcDocument {
        dry_run: args.dry_run,
        worktrees: entries.iter().map(view).collect(),
        references: references.map_err(|error| git_error(&error))?,
        workers: forget_dead_workers(&*store, &project.state_dir(), mode).await?,
    };
    show(&document, context);
    context.ui.document(document);
    Ok(Exit::Ok)
}

/// The tasks that are not over, and the checkouts in which their merges are tested.
async fn needed(store: &dyn Store) -> Result<BTreeSet<TaskId>, CliError> {
    let query = TaskQuery { status: StatusFilter::Open, ..TaskQuery::default() };
    let mut needed = BTreeSet::new();
    for task in store.tasks(&query).await? {
        needed.extend(TaskId::new(format!("{}-gate", task.id)).ok());
        needed.insert(task.id);
    }
    Ok(needed)
}

/// The commits of tasks that are over which the remote has: on its base, or on a branch where they are still now.
async fn saved_elsewhere(
    worktrees: &Worktrees,
    store: &dyn Store,
    settings: &Settings,
    project: &Project,
) -> Result<Vec<Oid>, CliError> {
    let git = Git::at(project.root.clone());
    // Where there is no remote, nothing was pushed.
    let destination = Destination::choose(settings, project).await.ok();
    let mut saved = Vec::new();
    for owner in worktrees.owners() {
        let Some(task) = store.task(&owner).await?.filter(Task::is_ended) else { continue };
        let delivery = task.delivery;
        saved.extend(delivery.merged);
        if let (Some(to), Some(branch), Some(pushed)) = (&destination, delivery.branch, delivery.pushed) {
            let there = remote_head(&git, to.remote(), &branch).await.ok().flatten();
            saved.extend(there.filter(|there| *there == pushed));
        }
    }
    Ok(saved)
}

fn view(entry: &GcEntry) -> WorktreeView {
    let because = match &entry.collected {
        Collected::Removed => None,
        Collected::InUse => Some("its task is not over".to_owned()),
        Collected::Busy => Some("another process is busy with it".to_owned()),
        Collected::Kept(unsaved) => {
            Some(unsaved.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
    };
    WorktreeView {
        path: entry.path.to_string(),
        task: entry.task.clone(),
        fate: if because.is_none() { Fate::Removed } else { Fate::Kept },
        because,
    }
}

fn show(document: &GcDocument, context: &Context) {
    let ui = context.ui;
    let verb = if document.dry_run { "would be removed" } else { "removed" };
    for worktree in &document.worktrees {
        let whose =
            worktree.task.as_ref().map_or_else(|| "no task".to_owned(), |task| format!("task {task}"));
        let fate = worktree.because.as_ref().map_or_else(|| verb.to_owned(), |why| format!("kept: {why}"));
        ui.say(harmless(&format!("{} ({whose}): {fate}", worktree.path)));
    }
    for name in &document.references {
        ui.say(harmless(&format!("{name}: {verb}")));
    }
    for worker in &document.workers {
        ui.say(format!("trace of the dead worker {worker}: {verb}"));
    }
    let gone = document.worktrees.iter().filter(|worktree| worktree.fate == Fate::Removed).count()
        + document.references.len()
        + document.workers.len();
    let kept = document.worktrees.len() + document.references.len() + document.workers.len() - gone;
    ui.say(format!("{} {verb}, {kept} kept", words::count(gone as u64, "thing")));
}
