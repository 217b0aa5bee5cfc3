//! What a run came to, written into the store: its end, its task's next state, and what it reported.

use rehearsal_agent::RunReport;
use rehearsal_core::transition::{Refusal, TaskInput};
use rehearsal_core::{
    Actor, AgentName, Blame, GitFacts, Notice, Outcome, Promise, ReportedTask, ResultOutcome, RunEnd,
    RunStart, Task, TaskId, Timestamp,
};
use rehearsal_store::policy::LONGEST_LINE;
use rehearsal_store::{Change, CommitError, Committed, FindError, Store, StoreError};

/// Where what runs came to is written down.
pub(crate) struct Ledger<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) now: Timestamp,
    /// Told what a person should know.
    pub(crate) warn: &'a (dyn Fn(Notice) + Send + Sync),
}

/// What a run says about tasks and writes for the journal.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    pub(crate) tasks: Vec<ReportedTask>,
    pub(crate) journal: Vec<String>,
    /// Whether its budget was what is left of its worker's: that one is used up is not the task's fault.
    pub(crate) was_capped: bool,
    /// Who takes over, if the system keeps its agent from working.
    pub(crate) fallback: Option<AgentName>,
    /// Whether nothing changed in the repository, and the run did not say why nothing had to.
    pub(crate) is_without_effect: bool,
}

impl Reported {
    /// All that a run reported. `success` in its `result.json` speaks for the task that the run was for; what it
    /// says about that task by name comes later, and counts more.
    pub(crate) fn of(report: &RunReport, task: &TaskId) -> Self {
        let result = report.evidence.result_file.as_ref().and_then(|result| result.as_ref().ok());
        let succeeded = result.is_some_and(|file| file.outcome == Some(ResultOutcome::Success));
        let promised = match &report.promise {
            Some(Promise::Done(reason)) => Some(reason.as_str()),
            _ => None,
        };
        let mut tasks = report.tasks.clone();
        if succeeded || promised.is_some() {
            tasks.insert(0, ReportedTask::Done { id: task.to_string(), reason: None });
        }
        let in_file = result.and_then(|file| file.reason.as_deref().or(file.comment.as_deref()));
        let reported = tasks.iter().filter_map(|task| match task {
            ReportedTask::Done { reason, .. } => reason.as_deref(),
            ReportedTask::Blocked { .. } => None,
        });
        let mut reasons = promised.into_iter().chain(in_file).chain(reported);
        let says_why = reasons.any(|reason| !reason.trim().is_empty());
        let changed = report.evidence.git.as_ref().is_none_or(GitFacts::changed);
        let is_without_effect = !changed && !says_why;
        Self { tasks, journal: report.progress.clone(), was_capped: false, fallback: None, is_without_effect }
    }
}

impl Ledger<'_> {
    /// Writes the run's end, its task's next state and all that it reported, in one transaction.
    pub(crate) async fn write(
        &self,
        actor: Actor,
        start: &RunStart,
        end: &RunEnd,
        reported: Reported,
        meaning: Meaning,
    ) -> Result<Written, LedgerError> {
        let was_capped = reported.was_capped;
        let fallback = reported.fallback.clone();
        let is_without_effect = reported.is_without_effect && meaning == Meaning::OneIteration;
        let reported = self.what_counts(start, &end.verdict.outcome, reported);
        let mut tasks = self.resolve_reported(start, &reported.tasks).await?;
        if is_without_effect {
            self.refuse_done(start, &mut tasks);
        }
        let outcome = match meaning.for_task(&end.verdict.outcome, &start.task, &tasks) {
            Outcome::BudgetReached { .. } if was_capped => Outcome::Cancelled,
            outcome => outcome,
        };
        let mut changes = vec![
            Change::EndRun { run: start.id.clone(), end: Box::new(end.clone()) },
            Change::ChangeTask {
                id: start.task.clone(),
                input: TaskInput::EndRun { fence: start.fence, outcome },
            },
        ];
        if let Some(to) = fallback {
            changes.push(Change::ChangeTask { id: start.task.clone(), input: TaskInput::FallBack { to } });
        }
        for (task, input) in tasks.iter().filter(|(task, _)| task.id != start.task) {
            changes.push(Change::ChangeTask { id: task.id.clone(), input: input.clone() });
        }
        if let Some(session) = &start.session {
            changes.extend(reported.journal.into_iter().map(|text| Change::AddProgress {
                session: session.clone(),
                run: Some(start.id.clone()),
                text: self.shortened(start, text),
            }));
        }
        let committed = self.commit_what_is_accepted(actor, changes).await?;
        let was_reported = |task: &Task| tasks.iter().any(|(reported, _)| reported.id == task.id);
        let (mut own, mut others) = (None, Vec::new());
        for task in committed.into_iter().filter_map(Committed::task) {
            if was_reported(&task) {
                others.push(task.clone());
            }
            if task.id == start.task {
                own = Some(task);
            }
        }
        Ok(Written { own, reported: others })
    }

    /// Only a run that came to a proper end is heard: one that was ended, or broke down, has changed nothing.
    fn what_counts(&self, start: &RunStart, outcome: &Outcome, reported: Reported) -> Reported {
        let heard = matches!(outcome.blame(), Blame::Nobody | Blame::Task);
        if heard || (reported.tasks.is_empty() && reported.journal.is_empty()) {
            return reported;
        }
        (self.warn)(Notice::ReportIgnored { run: start.id.clone(), outcome: outcome.name() });
        Reported::default()
    }

    /// An agent's word is not enough: where nothing changed and it did not say why, no task is done.
    fn refuse_done(&self, start: &RunStart, tasks: &mut Vec<(Task, TaskInput)>) {
        tasks.retain(|(task, input)| {
            let is_done = *input == TaskInput::Finish;
            if is_done {
                (self.warn)(Notice::DoneWithoutEffect { run: start.id.clone(), task: task.id.clone() });
            }
            !is_done
        });
    }

    /// Finds the tasks that an agent reported on. Strangers are refused aloud: an agent speaks for its session only.
    async fn resolve_reported(
        &self,
        start: &RunStart,
        reported: &[ReportedTask],
    ) -> Result<Vec<(Task, TaskInput)>, LedgerError> {
        let mut resolved: Vec<(Task, TaskInput)> = Vec::new();
        for report in reported {
            let (prefix, input) = match report {
                ReportedTask::Done { id, .. } => (id, TaskInput::Finish),
                ReportedTask::Blocked { id, reason } => {
                    (id, TaskInput::Block { reason: self.shortened(start, reason.clone()) })
                }
            };
            let error = match self.store.find_task(prefix).await {
                Ok(task) if task.session == start.session => {
                    resolved.retain(|(other, _)| other.id != task.id);
                    resolved.push((task, input));
                    continue;
                }
                Ok(_) => None,
                Err(FindError::Store(error)) => return Err(error.into()),
                Err(error) => Some(error.to_string()),
            };
            let (run, task) = (start.id.clone(), prefix.clone());
            (self.warn)(Notice::ReportedTaskIgnored { run, task, error });
        }
        Ok(resolved)
    }

    /// The store refuses a text without end; what an agent says must not be lost with it, nor stop the loop.
    fn shortened(&self, start: &RunStart, text: String) -> String {
        let Some((cut, _)) = text.char_indices().nth(LONGEST_LINE) else {
            return text;
        };
        (self.warn)(Notice::ReportedTextCut { run: start.id.clone(), bytes: text.len() });
        let mut text = text;
        text.truncate(cut);
        text
    }

    /// Commits; a change that is refused (a person was faster) is left out aloud, and the rest goes in.
    async fn commit_what_is_accepted(
        &self,
        actor: Actor,
        mut changes: Vec<Change>,
    ) -> Result<Vec<Committed>, LedgerError> {
        loop {
            match self.store.commit(actor.clone(), self.now, changes.clone()).await {
                Ok(committed) => return Ok(committed),
                Err(CommitError::Refused { index, refusal }) => {
                    (self.warn)(not_taken_over(&refusal));
                    let refused = changes.remove(index);
                    if let (Refusal::NoEdge { .. }, Some(release)) = (&refusal, release(refused)) {
                        changes.insert(index, release);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A task that its flow leads nowhere is given back: nobody works on it any more.
fn release(refused: Change) -> Option<Change> {
    match refused {
        Change::ChangeTask { id, input: TaskInput::EndRun { fence, .. } } => {
            Some(Change::ChangeTask { id, input: TaskInput::Release { fence } })
        }
        _ => None,
    }
}

/// What a good end of a run means for its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing yet: in a loop the end of the task has to be reported.
    OneIteration,
    /// The task's state is done with.
    TheWholeState,
}

impl Meaning {
    fn for_task(self, outcome: &Outcome, task: &TaskId, reported: &[(Task, TaskInput)]) -> Outcome {
        let of_task = reported.iter().find(|(reported, _)| reported.id == *task).map(|(_, input)| input);
        match (outcome, of_task) {
            // Its own verdict on itself is heard only when it did not say that it failed, or what it decided.
            (Outcome::Failed { .. } | Outcome::Approved | Outcome::Rejected { .. }, _) => outcome.clone(),
            (_, Some(TaskInput::Finish)) => Outcome::Done,
            (_, Some(TaskInput::Block { reason })) => Outcome::Blocked { reason: reason.clone() },
            (Outcome::Done, _) if self == Self::OneIteration => Outcome::Continue { message: String::new() },
            _ => outcome.clone(),
        }
    }
}

/// What was written.
pub(crate) struct Written {
    /// The run's own task as it is now; none if it was taken from the run meanwhile.
    pub(crate) own: Option<Task>,
    /// The tasks that it reported on.
    pub(crate) reported: Vec<Task>,
}

/// Why it was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    /// The store did not take it.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
}

fn not_taken_over(refusal: &Refusal) -> Notice {
    match refusal {
        Refusal::Stale { task, .. } => Notice::TaskTakenAway { task: task.clone() },
        other => Notice::ChangeRefused { error: other.to_string() },
    }
}
