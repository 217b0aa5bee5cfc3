//! What is known without asking: the tasks that this process works on, as it wrote them last, and what time it is on the
//! server. A task that is as it is believed to be can be changed with one statement, on one way to the server and back.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rehearsal_core::{Standing, Task, TaskId, Timestamp};
use rustix::time::{ClockId, clock_gettime};

use crate::Committed;

/// More than any process works on at once.
const MOST_TASKS: usize = 1_000;
/// Clocks do not run alike: what the server said is good for so long.
const GOOD_FOR: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Facts>);

#[derive(Debug, Default)]
struct Facts {
    tasks: HashMap<TaskId, Task>,
    /// What the server's clock showed, and how long this machine was up when we heard it.
    time: Option<(Timestamp, Duration)>,
}

impl Known {
    /// A task as it was when it was last written here.
    pub(super) fn task(&self, id: &TaskId) -> Option<Task> {
        self.facts().tasks.get(id).cloned()
    }

    /// The time on the server: never later than its clock shows, and never earlier than what it has shown.
    pub(super) fn time(&self) -> Option<Timestamp> {
        let (shown, heard) = self.facts().time?;
        let since = uptime().saturating_sub(heard);
        (since < GOOD_FOR).then(|| shown.plus(since))
    }

    pub(super) fn note_time(&self, shown: Timestamp) {
        self.facts().time = Some((shown, uptime()));
    }

    /// Tasks in nobody's hands are anybody's: what was written of them is soon not true any more.
    pub(super) fn note(&self, committed: &[Committed]) {
        for committed in committed {
            let task = match committed {
                Committed::Task(task) => task,
                Committed::Claimed(Some(claimed)) => &claimed.task,
                _ => continue,
            };
            let mut facts = self.facts();
            if !matches!(task.standing, Standing::Claimed(_)) {
                facts.tasks.remove(&task.id);
                continue;
            }
            if facts.tasks.len() >= MOST_TASKS {
                facts.tasks.clear();
            }
            facts.tasks.insert(task.id.clone(), Task::clone(task));
        }
    }

    pub(super) fn forget(&self, id: &TaskId) {
        self.facts().tasks.remove(id);
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        // A fact that is not true is found out before it is of use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Also while the machine sleeps.
fn uptime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
