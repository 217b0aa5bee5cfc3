//! What tasks said in the end, on its way into the prompts of those that depend on them.

use rehearsal_core::{OutcomeName, Task};
use rehearsal_store::{RunQuery, Scope, Store, StoreError};

/// So much of a run's last words is kept, in bytes: a page or two, in every event of every run.
const KEPT: usize = 8_000;
/// So much of all findings goes into one prompt.
const TOLD: usize = 32_000;
/// The newest runs of a task: its author's last one is among them, behind reviews of it.
const RUNS_SEEN: u32 = 20;

/// What a task came to that another one depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The task's id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What its author said last.
    pub text: String,
}

/// What the tasks that this one depends on came to, in their order. One that said nothing is left out.
pub(crate) async fn findings_for(store: &dyn Store, task: &Task) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    for id in &task.depends_on {
        let Some(other) = store.task(id).await? else { continue };
        let query = RunQuery { scope: Scope::Task(id.clone()), limit: Some(RUNS_SEEN) };
        let runs = store.runs(&query).await?;
        // A reviewer's last words are a decision on the work, and no part of it.
        let by_author = runs
            .into_iter()
            .filter_map(|run| run.end)
            .find(|end| matches!(end.verdict.outcome.name(), OutcomeName::Done | OutcomeName::NoChanges));
        if let Some(end) = by_author.filter(|end| !end.said.is_empty()) {
            findings.push(Finding { id: id.to_string(), title: other.title, text: end.said });
        }
    }
    let share = TOLD / findings.len().max(1);
    for finding in &mut findings {
        finding.text = both_ends(&finding.text, share);
    }
    Ok(findings)
}

/// The last words of a run as they are kept.
pub(crate) fn last_words(text: &str) -> String {
    both_ends(text.trim(), KEPT)
}

/// A text, or its beginning and its end with a mark between them. What was asked for stands in the beginning, and what
/// came of it in the end.
fn both_ends(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let (head, tail) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    let left_out = tail - head;
    format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "é".repeat(10_000));
        let kept = last_words(&long);
        assert!(kept.starts_with("begin") && kept.ends_with("end") && kept.len() < KEPT + 60);
        assert!(kept.contains("\n[… 12010 bytes left out …]\n"));
        assert_eq!(last_words("  short\n"), "short");
    }
}
