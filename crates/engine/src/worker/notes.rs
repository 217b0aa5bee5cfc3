//! What the next prompt of a task says because of its last run.

use rehearsal_core::{Denial, FileList, Notice, Outcome, Run, RunEnd, Task};
use rehearsal_store::{RunQuery, Scope, Store, StoreError};

use super::Worker;

/// Another agent's runs may lie between two of one agent.
const RUNS_SEEN: u32 = 10;

impl Worker {
    /// What the agent must know of its last run for this task: what was denied, and what it did that no run may do.
    pub(super) async fn notes_for(&self, task: &Task, left: &[String]) -> Result<Vec<String>, StoreError> {
        let Some(named) = self.options.stand_in().or(task.next_agent()) else { return Ok(Vec::new()) };
        let others = self.options.limits.fallbacks_of(named);
        let query = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(RUNS_SEEN) };
        let runs = self.store.runs(&query).await?;
        let is_its = |run: &Run| run.start.agent == *named || others.contains(&run.start.agent);
        let last = runs.into_iter().filter(is_its).find_map(|run| run.end);
        let mut notes = last.map_or_else(Vec::new, |end| notes_on(&end));
        if !left.is_empty() {
            let files = FileList::of(left);
            notes.push(format!(
                "an earlier run left work on this task uncommitted, in {files}. Continue with it; commit it when it is done."
            ));
        }
        Ok(notes)
    }
}

fn notes_on(end: &RunEnd) -> Vec<String> {
    let mut notes = Vec::new();
    if let Outcome::Violated { rule } = &end.verdict.outcome {
        let mut note = format!(
            "the last run for this task did not count, because it {rule}. The working tree was put back as it was."
        );
        for notice in &end.notices {
            if let Notice::LeftWorkKept { reference, .. } = notice {
                note += &format!(" What it had done is kept in `{reference}`: use `git show` to look at it.");
            }
        }
        notes.push(note);
    }
    notes.extend(denied(end).map(|denied| {
        format!(
            "in the last run for this task {denied}. Do it another way, or say that you are blocked by it."
        )
    }));
    notes
}

/// The tool calls that were denied in a run, in a sentence.
fn denied(end: &RunEnd) -> Option<String> {
    end.notices.iter().find_map(|notice| match notice {
        Notice::ToolsDenied { denials, more, .. } => Some(denied_in_words(denials, *more)),
        _ => None,
    })
}

fn denied_in_words(denials: &[Denial], more: usize) -> String {
    let named: Vec<String> = denials.iter().map(ToString::to_string).collect();
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    named.join(", ") + &more
}

/// What was denied in the last run of a task, for whoever asks why it is not moving.
pub(crate) async fn denied_in_last_run(store: &dyn Store, task: &Task) -> Result<Option<String>, StoreError> {
    let query = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(2) };
    let last = store.runs(&query).await?.into_iter().find_map(|run| Some((run.start.id, run.end?)));
    Ok(last.and_then(|(run, end)| denied(&end).map(|denied| format!("in its last run ({run}) {denied}"))))
}
