//! What the store says, read as another program would: by opening its file.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use rehearsal_core::{Event, EventKind, Outcome, RunId, SessionName, Task, TaskId};
use rehearsal_store::{EventQuery, SqliteStore, Store, TaskQuery};

use crate::stage::SESSION;

/// Everything in a store at one moment.
pub(crate) struct Ledger {
    pub(crate) events: Vec<Event>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) open: u64,
    pub(crate) done: u64,
    /// What does not fit together.
    pub(crate) faults: Vec<String>,
}

impl Ledger {
    pub(crate) fn read(state_dir: &Utf8Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = SqliteStore::open(state_dir.as_std_path()).await.unwrap();
            let session = SessionName::new(SESSION).unwrap();
            let counts = store.count_tasks(Some(&session)).await.unwrap();
            Self {
                events: store.events(&EventQuery::default()).await.unwrap(),
                tasks: store.tasks(&TaskQuery::default()).await.unwrap(),
                open: counts.open,
                done: counts.done,
                faults: store.verify().await.unwrap(),
            }
        })
    }

    /// Nothing that an earlier look saw is gone or different.
    pub(crate) fn assert_continues(&self, earlier: &Self) {
        assert_eq!(self.faults, Vec::<String>::new());
        assert!(self.events.len() >= earlier.events.len(), "events are lost");
        assert_eq!(self.events[..earlier.events.len()], earlier.events[..], "the log was rewritten");
        let ids = |tasks: &[Task]| tasks.iter().map(|task| task.id.clone()).collect::<BTreeSet<_>>();
        assert!(ids(&self.tasks).is_superset(&ids(&earlier.tasks)), "tasks are lost");
        assert!(self.done >= earlier.done, "a task that was done is not done any more");
    }

    /// Every task was done, once; every run began once and ended once.
    pub(crate) fn assert_each_thing_happened_once(&self) {
        assert_eq!(self.faults, Vec::<String>::new());
        let tasks: BTreeSet<&TaskId> = self.tasks.iter().map(|task| &task.id).collect();
        let mut finished = BTreeMap::new();
        let mut fences = BTreeMap::new();
        let mut starts = BTreeMap::new();
        let mut ends = BTreeMap::new();
        for event in &self.events {
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
        assert_eq!(finished, once(&tasks), "each task is finished once");
        let runs: BTreeSet<&RunId> = starts.keys().copied().collect();
        assert_eq!(starts, once(&runs), "each run began once");
        assert_eq!(ends, once(&runs), "each run ended once");
    }

    /// What a run reported is in the journal exactly if its end counted.
    pub(crate) fn assert_the_journal_has_each_good_run_once(&self) {
        let mut expected: Vec<String> = self.good_runs().map(|task| format!("worked on {task}")).collect();
        let mut journal: Vec<String> = self
            .events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ProgressAdded { text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect();
        expected.sort();
        journal.sort();
        assert_eq!(journal, expected);
    }

    /// The tasks of the runs that ended well.
    fn good_runs(&self) -> impl Iterator<Item = &TaskId> {
        let starts: BTreeMap<&RunId, &TaskId> = self
            .events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::RunStarted { run } => Some((&run.id, &run.task)),
                _ => None,
            })
            .collect();
        self.events.iter().filter_map(move |event| match &event.kind {
            EventKind::RunEnded { run, end } if end.verdict.outcome == Outcome::Done => Some(starts[run]),
            _ => None,
        })
    }

    /// Commits that the store knows of.
    pub(crate) fn commits(&self) -> Vec<String> {
        let ends = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::RunEnded { end, .. } => Some(&end.commits),
            _ => None,
        });
        ends.flatten().map(|commit| commit.id.to_string()).collect()
    }
}

fn once<T: Ord + Copy>(things: &BTreeSet<T>) -> BTreeMap<T, u32> {
    things.iter().map(|thing| (*thing, 1)).collect()
}
