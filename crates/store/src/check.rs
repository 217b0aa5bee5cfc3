//! Whether what is to be written has a sane size. The rules of tasks themselves are in `core`.

use rehearsal_core::transition::{Refusal, TaskInput};
use rehearsal_core::{Budget, Hold, NewSession, NewTask, SessionEdit, TaskEdit, TaskId};

use crate::CommitError;
use crate::policy::{LONGEST_LABEL, LONGEST_LINE, LONGEST_TEXT, LONGEST_TITLE, MOST_ITEMS};

/// A new task. The refusals are the ones that an edit to the same words would meet.
pub(crate) fn new_task(id: &TaskId, task: &NewTask, index: usize) -> Result<(), CommitError> {
    if task.title.trim().is_empty() {
        return Err(CommitError::Refused { index, refusal: Refusal::NoTitle });
    }
    if task.depends_on.contains(id) {
        let refusal = Refusal::DependsOnItself { task: id.to_string() };
        return Err(CommitError::Refused { index, refusal });
    }
    length("the title", &task.title, LONGEST_TITLE)?;
    length("the description", &task.body, LONGEST_TEXT)?;
    items("criteria", "a criterion", &task.criteria, LONGEST_LINE)?;
    items("labels", "a label", &task.labels, LONGEST_LABEL)?;
    count("dependencies", task.depends_on.len())?;
    items("patterns", "a pattern", &task.touches, LONGEST_LINE)?;
    budget(task.budget)
}

/// What happens to a task. What an agent reported is not ours to refuse: its outcome has any length.
pub(crate) fn task_input(input: &TaskInput) -> Result<(), CommitError> {
    match input {
        TaskInput::Edit { edit } => task_edit(edit),
        TaskInput::Block { reason } => length("the reason", reason, LONGEST_LINE),
        TaskInput::Answer { text } => length("the answer", text, LONGEST_TEXT),
        TaskInput::Decide { comment, .. } => length("the comment", comment, LONGEST_TEXT),
        TaskInput::Claim { .. }
        | TaskInput::TakeOver { .. }
        | TaskInput::Lose { .. }
        | TaskInput::Redo { .. }
        | TaskInput::Adopt { .. }
        | TaskInput::Offer { .. }
        | TaskInput::StepDone { .. }
        | TaskInput::StepFailed { .. }
        | TaskInput::EndRun { .. }
        | TaskInput::FallBack { .. }
        | TaskInput::Release { .. }
        | TaskInput::Unblock
        | TaskInput::Finish
        | TaskInput::Cancel
        | TaskInput::Retry => Ok(()),
    }
}

pub(crate) fn hold(hold: &Hold) -> Result<(), CommitError> {
    length("the reason", &hold.reason, LONGEST_LINE)
}

fn task_edit(edit: &TaskEdit) -> Result<(), CommitError> {
    length("the title", edit.title.as_deref().unwrap_or_default(), LONGEST_TITLE)?;
    length("the description", edit.body.as_deref().unwrap_or_default(), LONGEST_TEXT)?;
    items("criteria", "a criterion", edit.criteria.as_deref().unwrap_or_default(), LONGEST_LINE)?;
    items("labels", "a label", edit.labels.as_deref().unwrap_or_default(), LONGEST_LABEL)?;
    count("dependencies", edit.depends_on.as_ref().map_or(0, Vec::len))?;
    items("patterns", "a pattern", edit.touches.as_deref().unwrap_or_default(), LONGEST_LINE)?;
    budget(edit.budget.unwrap_or_default())
}

pub(crate) fn new_session(session: &NewSession) -> Result<(), CommitError> {
    length("the description", &session.description, LONGEST_LINE)?;
    length("the context", &session.context, LONGEST_TEXT)?;
    items("criteria", "a criterion", &session.criteria, LONGEST_LINE)
}

pub(crate) fn session_edit(edit: &SessionEdit) -> Result<(), CommitError> {
    length("the description", edit.description.as_deref().unwrap_or_default(), LONGEST_LINE)?;
    length("the context", edit.context.as_deref().unwrap_or_default(), LONGEST_TEXT)?;
    items("criteria", "a criterion", edit.criteria.as_deref().unwrap_or_default(), LONGEST_LINE)
}

/// A line of a journal.
pub(crate) fn progress(text: &str) -> Result<(), CommitError> {
    length("the progress entry", text, LONGEST_LINE)
}

/// JSON has no infinity: what is not a number would be read back as no budget at all.
fn budget(budget: Budget) -> Result<(), CommitError> {
    match budget.usd {
        Some(usd) if !usd.is_finite() || usd < 0.0 => Err(CommitError::BadBudget { usd }),
        _ => Ok(()),
    }
}

fn items(many: &'static str, one: &'static str, texts: &[String], limit: usize) -> Result<(), CommitError> {
    count(many, texts.len())?;
    texts.iter().try_for_each(|text| length(one, text, limit))
}

fn count(what: &'static str, count: usize) -> Result<(), CommitError> {
    if count > MOST_ITEMS {
        return Err(CommitError::TooMany { what, count, limit: MOST_ITEMS });
    }
    Ok(())
}

fn length(what: &'static str, text: &str, limit: usize) -> Result<(), CommitError> {
    // Never more characters than bytes: most texts need no counting.
    if text.len() <= limit {
        return Ok(());
    }
    let length = text.chars().count();
    if length > limit {
        return Err(CommitError::TooLong { what, length, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(task: &NewTask) -> String {
        new_task(&TaskId::from_random(1), task, 0).unwrap_err().to_string()
    }

    #[test]
    fn a_text_of_absurd_length_is_refused_with_its_limit() {
        let long = NewTask { title: "é".repeat(501), ..NewTask::default() };
        assert_eq!(message(&long), "the title is too long: 501 characters, at most 500 are allowed");
        let just_fits = NewTask { title: "é".repeat(500), ..NewTask::default() };
        assert!(new_task(&TaskId::from_random(1), &just_fits, 0).is_ok());
        let labels = vec!["x".repeat(101)];
        let labelled = NewTask { title: "t".into(), labels, ..NewTask::default() };
        assert_eq!(message(&labelled), "a label is too long: 101 characters, at most 100 are allowed");
        let many = NewTask { title: "t".into(), criteria: vec![String::new(); 1001], ..NewTask::default() };
        assert_eq!(message(&many), "too many criteria: 1001, at most 1000 are allowed");
    }

    #[test]
    fn a_budget_is_a_sum_of_money() {
        for usd in [f64::NAN, f64::INFINITY, -1.0] {
            let budget = Budget { usd: Some(usd), ..Budget::default() };
            let task = NewTask { title: "t".into(), budget, ..NewTask::default() };
            assert_eq!(message(&task), format!("a budget must be a number, and not negative: {usd}"));
        }
    }

    #[test]
    fn a_task_without_words_or_on_itself_is_refused() {
        assert_eq!(message(&NewTask::default()), "a task needs a title");
        let depends_on = vec![TaskId::from_random(1)];
        let own = NewTask { title: "t".into(), depends_on, ..NewTask::default() };
        assert_eq!(message(&own), "task `10000000` cannot depend on itself");
    }
}
