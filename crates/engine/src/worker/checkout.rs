//! The user's checkout around a run: what was in it before, what the run did to it, and what of that is put back.
//!
//! A record of each run lies where agents cannot write. It stays for as long as the run's work is in the checkout and in no commit: then
//! it is that task's work, and no other task's.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::{Permission, RunReport};
use rehearsal_core::{Blame, Damage, FileList, Notice, Outcome, Run, RunId, RunStart, TaskId};
use rehearsal_forge::{Aftermath, CheckoutPrint, Checkpoint, FilePrint};
use rehearsal_git::GitError;
use rehearsal_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::slot::{ClaimExit, Slot};
use super::{Role, WorkError, WorkerState, left_runs};

/// Where the records are.
const PLACES: &str = "checkouts";

/// What is known of the checkout around a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CheckoutRecord {
    run: RunId,
    task: TaskId,
    checkpoint: Checkpoint,
    /// Files with uncommitted work of earlier runs of this task.
    pub(crate) own: Vec<String>,
    /// What the run left uncommitted; none while it is at work.
    left: Option<BTreeMap<String, FilePrint>>,
}

/// Uncommitted work of a run in the user's checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftWork {
    /// The task.
    pub task: TaskId,
    /// The run.
    pub run: RunId,
    /// The files.
    pub files: Vec<String>,
}

impl CheckoutRecord {
    /// The record of a run.
    pub(crate) fn read(state_dir: &Utf8Path, run: &RunId) -> Option<Self> {
        let bytes = fs_err::read(place_of(state_dir, run)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn write(&self, state_dir: &Utf8Path) -> std::io::Result<()> {
        fs_err::create_dir_all(state_dir.join(PLACES))?;
        let place = place_of(state_dir, &self.run);
        let unfinished = place.with_extension("tmp");
        fs_err::write(&unfinished, serde_json::to_vec(self).map_err(std::io::Error::other)?)?;
        fs_err::rename(unfinished, place)
    }

    /// The files with uncommitted changes from before the run that are not its task's.
    pub(crate) fn others(&self) -> Vec<String> {
        let mut files = self.checkpoint.dirty();
        files.retain(|file| !self.own.contains(file));
        files
    }

    /// What of its work is still in the checkout and in no commit.
    async fn still_left(&self) -> Result<Vec<String>, GitError> {
        match &self.left {
            Some(left) if left.is_empty() => Ok(Vec::new()),
            Some(left) => CheckoutPrint::unchanged(self.checkpoint.root(), left).await,
            None => Ok(self.checkpoint.aftermath(&self.own).await?.left.into_keys().collect()),
        }
    }
}

fn place_of(state_dir: &Utf8Path, run: &RunId) -> Utf8PathBuf {
    state_dir.join(PLACES).join(format!("{run}.json"))
}

/// The records of all runs, oldest first.
fn records(state_dir: &Utf8Path) -> Vec<CheckoutRecord> {
    let Ok(entries) = state_dir.join(PLACES).read_dir_utf8() else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let run = RunId::new(entry.file_name().strip_suffix(".json")?).ok()?;
            let written = entry.metadata().and_then(|file| file.modified()).ok();
            Some((written, CheckoutRecord::read(state_dir, &run)?))
        })
        .collect();
    found.sort_by_key(|(written, _)| *written);
    found.into_iter().map(|(_, record)| record).collect()
}

/// Uncommitted work in a checkout, by whose it is. A run that is at work is left out.
async fn left_by(
    state_dir: &Utf8Path,
    root: &Utf8Path,
    is_dead: impl Fn(&RunId) -> bool,
) -> Result<Vec<LeftWork>, GitError> {
    let mut found: Vec<LeftWork> = Vec::new();
    for record in records(state_dir).into_iter().rev() {
        if record.checkpoint.root() != root || (record.left.is_none() && !is_dead(&record.run)) {
            continue;
        }
        let mut files = record.still_left().await?;
        // Whoever wrote to a file last has it.
        files.retain(|file| !found.iter().any(|later| later.files.contains(file)));
        if !files.is_empty() {
            found.push(LeftWork { task: record.task, run: record.run, files });
        }
    }
    found.reverse();
    Ok(found)
}

/// Why it is unknown whose work is in a checkout.
#[derive(Debug, thiserror::Error)]
pub enum LeftWorkError {
    /// git could not tell.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Uncommitted work of runs in a checkout, also of those that were killed.
pub async fn left_work(
    store: &dyn Store,
    state_dir: &Utf8Path,
    root: &Utf8Path,
) -> Result<Vec<LeftWork>, LeftWorkError> {
    if !state_dir.join(PLACES).exists() {
        return Ok(Vec::new());
    }
    let dead = left_runs(store, state_dir).await?;
    Ok(left_by(state_dir, root, |run| dead.iter().any(|dead| dead.start.id == *run)).await?)
}

impl WorkerState {
    /// Says what is in the checkout before anything begins: work that was left, and changes of the user's.
    pub(super) async fn announce_checkout(&self) -> Result<(), WorkError> {
        let (state_dir, root) = (&self.worker.state_dir, self.worker.workspace.root());
        let looked = async {
            let left = left_by(state_dir, root, |_| true).await?;
            let dirty = match Checkpoint::of_files(root, "").await? {
                Some(point) => point.dirty(),
                None => Vec::new(),
            };
            Ok::<_, GitError>((left, dirty))
        };
        let (left, mut dirty) = match looked.await {
            Ok(found) => found,
            Err(error) => {
                self.warn(Notice::ChangesUnknown { error: error.to_string() });
                return Ok(());
            }
        };
        for LeftWork { task, run, files } in &left {
            let (task, run, files) = (task.clone(), run.clone(), FileList::of(files));
            self.warn(Notice::LeftUncommitted { run, task, files });
        }
        dirty.retain(|file| !left.iter().any(|left| left.files.contains(file)));
        if !dirty.is_empty() {
            self.warn(Notice::DirtyCheckout { files: FileList::of(&dirty) });
        }
        for record in records(state_dir) {
            if !left.iter().any(|left| left.run == record.run) {
                let _ = fs_err::remove_file(place_of(state_dir, &record.run));
            }
        }
        Ok(())
    }

    /// Files with uncommitted work of earlier runs of a task.
    pub(super) async fn own_left(&self, task: &TaskId) -> Vec<String> {
        let left = left_by(&self.worker.state_dir, self.worker.workspace.root(), |_| true).await;
        let own = left.unwrap_or_default().into_iter().filter(|left| left.task == *task);
        own.flat_map(|left| left.files).collect()
    }

    /// What a run that was killed did to the checkout, and left there. Whether that or the user moved a branch since is unknown, so
    /// nothing is put back.
    pub(super) async fn after_a_kill(&self, run: &Run) -> Vec<Notice> {
        let state_dir = &self.worker.state_dir;
        let Some(mut record) = CheckoutRecord::read(state_dir, &run.start.id) else { return Vec::new() };
        let found = match record.checkpoint.aftermath(&record.own).await {
            Ok(found) => found,
            Err(error) => return vec![Notice::ChangesUnknown { error: error.to_string() }],
        };
        let mut notices = damaged(&run.start.id, &found, false);
        notices.extend(record.touched(&found));
        if !found.left.is_empty() {
            let files: Vec<&String> = found.left.keys().collect();
            let (run, task, files) = (record.run.clone(), record.task.clone(), FileList::of(&files));
            notices.push(Notice::LeftUncommitted { run, task, files });
        }
        record.left = Some(found.left);
        if let Err(error) = record.write(state_dir) {
            notices.push(Notice::ChangesUnknown { error: error.to_string() });
        }
        notices
    }
}

impl CheckoutRecord {
    /// What happened to changes that were there before.
    fn touched(&self, found: &Aftermath) -> Vec<Notice> {
        let copy = self.checkpoint.has_copy().then(|| self.checkpoint.reference());
        let mut notices = Vec::new();
        if !found.committed.is_empty() {
            let (run, files) = (self.run.clone(), FileList::of(&found.committed));
            notices.push(Notice::EditsCommitted { run, files, reference: copy.clone() });
        }
        if let (false, Some(reference)) = (found.changed.is_empty(), copy) {
            let (run, files) = (self.run.clone(), FileList::of(&found.changed));
            notices.push(Notice::EditsChanged { run, files, reference });
        }
        if found.touched_edits() && !self.checkpoint.not_copied().is_empty() {
            notices.push(Notice::EditsNotCopied { files: FileList::of(self.checkpoint.not_copied()) });
        }
        notices
    }
}

fn damaged(run: &RunId, found: &Aftermath, restored: bool) -> Vec<Notice> {
    let notice =
        |damage: &Damage| Notice::CheckoutDamaged { run: run.clone(), damage: damage.clone(), restored };
    found.damages.iter().map(notice).collect()
}

impl Slot<'_> {
    /// Runs the agent in the user's checkout.
    pub(super) async fn run_in_checkout(
        &mut self,
        role: &Role,
        start: &RunStart,
        root: &Utf8Path,
    ) -> Result<Result<RunReport, Outcome>, ClaimExit> {
        let own = self.state.own_left(&self.task.id).await;
        let (request, was_capped) = match self.request(role, start, root, &own).await? {
            Ok(request) => request,
            Err(outcome) => return Ok(Err(outcome)),
        };
        self.was_capped = was_capped;
        let record = match Checkpoint::take(root, start.id.as_str()).await {
            Ok(checkpoint) => checkpoint.map(|checkpoint| CheckoutRecord {
                run: start.id.clone(),
                task: self.task.id.clone(),
                checkpoint,
                own,
                left: None,
            }),
            Err(error) => {
                self.state.warn(Notice::ChangesUnknown { error: error.to_string() });
                None
            }
        };
        if let Some(record) = &record {
            record.write(&self.state.worker.state_dir)?;
        }
        let mut report = role.agent.run(request, self.watch(), self.cancel.clone()).await;
        self.note_denials(&mut report);
        if let Some(record) = record {
            let may_only_read = role.profile.permission == Permission::Plan;
            if let Err(error) = self.look_at_checkout(record, may_only_read, &mut report).await {
                report.warnings.push(Notice::ChangesUnknown { error: error.to_string() });
            }
        }
        Ok(Ok(report))
    }

    /// Finds out what the run did to the checkout beside its work, and puts it back.
    async fn look_at_checkout(
        &self,
        mut record: CheckoutRecord,
        may_only_read: bool,
        report: &mut RunReport,
    ) -> Result<(), GitError> {
        let checkpoint = &record.checkpoint;
        let mut found = checkpoint.aftermath(&record.own).await?;
        if may_only_read && let Some(files) = checkpoint.changed_files().await? {
            found.damages.push(Damage::ReadOnly { files: FileList::of(&files) });
        }
        if found.damages.is_empty() {
            report.warnings.extend(record.touched(&found));
            if !found.touched_edits() {
                checkpoint.forget_copy().await?;
            }
        } else {
            let restored = checkpoint.restore(&found).await;
            report.warnings.extend(damaged(&record.run, &found, restored.is_ok()));
            if let Ok(Some(reference)) = &restored {
                let (run, reference) = (record.run.clone(), reference.clone());
                report.warnings.push(Notice::LeftWorkKept { run, reference });
            }
            is_violated(report, &found.damages);
            restored?;
            let after = checkpoint.aftermath(&record.own).await?;
            report.warnings.extend(record.touched(&after));
            found = after;
        }
        record.left = Some(found.left);
        record.write(&self.state.worker.state_dir).map_err(GitError::io("write the record of the checkout"))
    }
}

/// What the system or a person ended is not judged by what was left half done.
pub(super) fn is_violated(report: &mut RunReport, damages: &[Damage]) {
    if matches!(report.verdict.outcome.blame(), Blame::System | Blame::User) {
        return;
    }
    let rule = damages.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    report.verdict.because.insert(0, format!("the run {rule}"));
    report.verdict.outcome = Outcome::Violated { rule };
}
