//! One iteration: claim a task, run the agent, write what came of it.

use std::sync::Arc;

use camino::Utf8PathBuf;
use rehearsal_agent::{RunReport, RunRequest};
use rehearsal_core::transition::{Refusal, TaskInput};
use rehearsal_core::{
    Actor, Budget, Fence, Outcome, Promise, ReportedTask, RunEnd, RunId, RunStart, SessionName, Task, TaskId,
    Timestamp,
};
use rehearsal_store::{Change, CommitError, Committed, FindError, StatusFilter, TaskQuery};

use super::{LoopEnd, LoopError, LoopEvent, Progress, SessionLoop};
use crate::prompt::{PROGRESS_LINES, PromptData, SYSTEM_PROMPT, TASKS_SHOWN, render};

/// The whole report of a run, kept in its directory until the store has it: a worker may die in between.
pub(super) const REPORT_FILE: &str = "report.json";

impl SessionLoop {
    /// Runs one iteration. Returns an end if the loop is over with it.
    pub(super) async fn iterate(
        &self,
        session: &SessionName,
        task: Task,
        progress: &mut Progress,
    ) -> Result<Option<LoopEnd>, LoopError> {
        let Some((start, task)) = self.claim(session, task, progress).await? else {
            return Ok(None);
        };
        progress.iteration += 1;
        progress.runs.push(start.id.clone());
        progress.touch(&task.id);
        self.tell(LoopEvent::IterationStarted {
            iteration: progress.iteration,
            run: start.id.clone(),
            task: task.id.clone(),
            title: task.title.clone(),
        });
        let mut request = match self.request(&start.id, &task, progress.iteration, &progress.notes).await {
            Ok(request) => request,
            Err(error) => {
                self.give_back(&start, &error).await?;
                return Err(error);
            }
        };
        request.budget = self.budget_of(&task, progress);
        progress.notes.clear();
        let report = self.run_agent(request).await;
        self.keep_report(&start.id, &report)?;
        for message in &report.warnings {
            self.tell(LoopEvent::Warning { message: message.clone() });
        }
        let end = end_of(&report, self.clock.now());
        let actor = Actor::Run(start.id.clone());
        let reported = self.apply_end(actor, &start, &end, &report.tasks, &report.progress).await?;
        progress.tally.add(&end);
        self.tell(LoopEvent::IterationEnded {
            iteration: progress.iteration,
            run: start.id.clone(),
            outcome: report.verdict.outcome.clone(),
            commits: end.commits.len(),
            files_changed: end.files_changed.len(),
            cost_usd: end.cost_usd,
            duration_ms: u64::try_from(end.ended_at.since(start.started_at).as_millis()).unwrap_or(u64::MAX),
        });
        for task in reported {
            progress.touch(&task.id);
            let status = task.status().to_owned();
            self.tell(LoopEvent::TaskReported { task: task.id, title: task.title, status });
        }
        self.what_follows(&report, progress).await
    }

    async fn claim(
        &self,
        session: &SessionName,
        task: Task,
        progress: &Progress,
    ) -> Result<Option<(RunStart, Task)>, LoopError> {
        let at = self.clock.now();
        let start = RunStart {
            id: RunId::from_random(crate::random_bits()),
            task: task.id.clone(),
            session: Some(session.clone()),
            fence: task.fence.next(),
            agent: self.agent_name.clone(),
            driver: self.agent.driver().to_owned(),
            model: self.profile.model.value.clone(),
            worker: progress.worker.clone(),
            iteration: progress.iteration + 1,
            started_at: at,
        };
        // The directory is there before the row: a run in the store always has one.
        fs_err::create_dir_all(self.run_dir(&start.id))?;
        let claim = TaskInput::Claim { worker: progress.worker.clone(), run: start.id.clone() };
        let changes =
            vec![Change::ChangeTask { id: task.id.clone(), input: claim }, Change::StartRun(start.clone())];
        match self.store.commit(Actor::Worker(progress.worker.clone()), at, changes).await {
            Ok(committed) => Ok(committed.into_iter().find_map(Committed::task).map(|task| (start, task))),
            // Someone changed the task since it was picked: look again.
            Err(CommitError::Refused { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The agent cannot be asked: nothing has happened, and nothing may look as if a worker had died.
    async fn give_back(&self, start: &RunStart, error: &LoopError) -> Result<(), LoopError> {
        let end = self.end_without_a_run(error.to_string());
        self.apply_end(Actor::Worker(start.worker.clone()), start, &end, &[], &[]).await?;
        Ok(())
    }

    /// What an iteration asks of the agent.
    pub async fn request(
        &self,
        run: &RunId,
        task: &Task,
        iteration: u32,
        notes: &[String],
    ) -> Result<RunRequest, LoopError> {
        let profile = &self.profile;
        let prompt = self.prompt(task, iteration, notes).await?;
        Ok(RunRequest {
            run: run.clone(),
            task: task.id.clone(),
            prompt,
            working_dir: self.working_dir.clone(),
            run_dir: self.run_dir(run),
            model: profile.model.value.clone(),
            system_prompt: Some(
                profile.system_prompt.value.clone().unwrap_or_else(|| SYSTEM_PROMPT.trim().into()),
            ),
            permission: profile.permission.value,
            timeout: Some(profile.timeout.value.0),
            idle_timeout: Some(profile.idle_timeout.value.0),
            budget: profile.budget.value,
            env_grants: profile.pass_env.value.clone(),
            env: profile.env.value.clone(),
            resume: None,
        })
    }

    async fn prompt(&self, task: &Task, iteration: u32, notes: &[String]) -> Result<String, LoopError> {
        let session = self.session().await?;
        let counts = self.counts().await?;
        let journal = self.store.progress(&session.name, PROGRESS_LINES).await?;
        let query = TaskQuery {
            session: Some(session.name.clone()),
            status: StatusFilter::Open,
            limit: Some(TASKS_SHOWN),
            ..TaskQuery::default()
        };
        let mut tasks = self.store.tasks(&query).await?;
        // The present one first, in the state in which it was picked.
        tasks.retain(|other| other.id != task.id);
        tasks.insert(0, task.clone());
        tasks.truncate(TASKS_SHOWN as usize);
        let data = PromptData {
            session: &session,
            progress: &journal,
            tasks: &tasks,
            current: task,
            open_tasks: counts.open,
            done_tasks: counts.done,
            all_tasks: counts.total,
            iteration,
            iterations: self.options.iterations,
            test_command: self.options.test_command.as_deref(),
            notes,
            message: self.options.message.as_deref(),
        };
        Ok(render(&self.template, &data)?)
    }

    /// The tightest of the task's budget, the agent's, and what is left of the loop's.
    fn budget_of(&self, task: &Task, progress: &Progress) -> Budget {
        let agent = self.profile.budget.value;
        let left = self.options.max_cost.map(|limit| limit - progress.tally.cost_usd.unwrap_or(0.0));
        let tightest = |limits: [Option<f64>; 3]| limits.into_iter().flatten().reduce(f64::min);
        let fewest = |limits: [Option<u64>; 2]| limits.into_iter().flatten().min();
        Budget {
            usd: tightest([task.budget.usd, agent.usd, left]),
            tokens: fewest([task.budget.tokens, agent.tokens]),
            turns: fewest([task.budget.turns, agent.turns]),
        }
    }

    async fn run_agent(&self, request: RunRequest) -> RunReport {
        let reporter = Arc::clone(&self.reporter);
        let run = request.run.clone();
        let watch = Arc::new(move |activity| reporter(LoopEvent::AgentActed { run: run.clone(), activity }));
        self.agent.run(request, watch, self.stop.now.clone()).await
    }

    fn keep_report(&self, run: &RunId, report: &RunReport) -> Result<(), LoopError> {
        let dir = self.run_dir(run);
        let unfinished = dir.join("report.json.tmp");
        fs_err::write(&unfinished, serde_json::to_vec(report).map_err(std::io::Error::other)?)?;
        fs_err::rename(unfinished, dir.join(REPORT_FILE))?;
        Ok(())
    }

    /// Writes the run's end, its task's next state and all that it reported, in one transaction. Returns the tasks
    /// that it reported on, as they are now.
    pub(super) async fn apply_end(
        &self,
        actor: Actor,
        start: &RunStart,
        end: &RunEnd,
        reported: &[ReportedTask],
        journal: &[String],
    ) -> Result<Vec<Task>, LoopError> {
        let reported = self.resolve_reported(start, reported).await?;
        let outcome = outcome_for_task(&end.verdict.outcome, &start.task, &reported);
        let mut changes = vec![
            Change::EndRun { run: start.id.clone(), end: Box::new(end.clone()) },
            Change::ChangeTask { id: start.task.clone(), input: end_of_task(start.fence, outcome) },
        ];
        for (task, input) in reported.iter().filter(|(task, _)| task.id != start.task) {
            changes.push(Change::ChangeTask { id: task.id.clone(), input: input.clone() });
        }
        if let Some(session) = &start.session {
            changes.extend(journal.iter().map(|text| Change::AddProgress {
                session: session.clone(),
                run: Some(start.id.clone()),
                text: text.clone(),
            }));
        }
        let committed = self.commit_what_is_accepted(actor, changes).await?;
        let was_reported = |task: &Task| reported.iter().any(|(reported, _)| reported.id == task.id);
        Ok(committed.into_iter().filter_map(Committed::task).filter(was_reported).collect())
    }

    /// Finds the tasks that an agent reported on. Strangers are refused aloud: an agent speaks for its session only.
    async fn resolve_reported(
        &self,
        start: &RunStart,
        reported: &[ReportedTask],
    ) -> Result<Vec<(Task, TaskInput)>, LoopError> {
        let mut resolved: Vec<(Task, TaskInput)> = Vec::new();
        for report in reported {
            let (prefix, input) = match report {
                ReportedTask::Done { id } => (id, TaskInput::Finish),
                ReportedTask::Blocked { id, reason } => (id, TaskInput::Block { reason: reason.clone() }),
            };
            let problem = match self.store.find_task(prefix).await {
                Ok(task) if task.session == start.session => {
                    resolved.retain(|(other, _)| other.id != task.id);
                    resolved.push((task, input));
                    continue;
                }
                Ok(_) => "it belongs to another session".to_owned(),
                Err(FindError::Store(error)) => return Err(error.into()),
                Err(error) => error.to_string(),
            };
            self.tell(LoopEvent::Warning {
                message: format!("run {} reported on task `{prefix}`, which is ignored: {problem}", start.id),
            });
        }
        Ok(resolved)
    }

    /// Commits; a change that is refused (a person was faster) is left out aloud, and the rest goes in.
    async fn commit_what_is_accepted(
        &self,
        actor: Actor,
        mut changes: Vec<Change>,
    ) -> Result<Vec<Committed>, LoopError> {
        loop {
            match self.store.commit(actor.clone(), self.clock.now(), changes.clone()).await {
                Ok(committed) => return Ok(committed),
                Err(CommitError::Refused { index, refusal }) => {
                    self.tell(LoopEvent::Warning { message: not_taken_over(&refusal) });
                    changes.remove(index);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether the loop is over after this run.
    async fn what_follows(
        &self,
        report: &RunReport,
        progress: &mut Progress,
    ) -> Result<Option<LoopEnd>, LoopError> {
        let outcome = &report.verdict.outcome;
        if *outcome == Outcome::Cancelled {
            return Ok(Some(LoopEnd::Interrupted));
        }
        if let Outcome::Blocked { reason } = outcome {
            return Ok(Some(LoopEnd::Blocked { why: reason.clone() }));
        }
        if let Outcome::Continue { message } = outcome
            && !message.is_empty()
        {
            progress.notes.push(format!("the last iteration says: {message}"));
        }
        if *outcome == Outcome::Done && report.promise == Some(Promise::Complete) {
            let open_tasks = self.counts().await?.open;
            if open_tasks == 0 || self.options.accept_complete {
                return Ok(Some(if open_tasks == 0 {
                    LoopEnd::AllDone
                } else {
                    LoopEnd::Complete { open_tasks }
                }));
            }
            self.tell(LoopEvent::CompleteRefused { open_tasks });
            let open = if open_tasks == 1 { "1 task is".into() } else { format!("{open_tasks} tasks are") };
            progress.notes.push(format!(
                "the last iteration said COMPLETE, which was refused: {open} not done. \
                 A task counts as done only when it is reported with `rehearsal task done ID`."
            ));
        }
        Ok(progress.count(outcome, self.options.max_failures))
    }

    pub(super) fn run_dir(&self, run: &RunId) -> Utf8PathBuf {
        self.runs_dir.join(run.as_str())
    }
}

fn not_taken_over(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Stale { task, .. } => {
            format!(
                "task `{task}` was taken from the run while it worked; what it reported on it does not count"
            )
        }
        other => format!("not taken over: {other}"),
    }
}

/// What the run's outcome means for its task. In a loop a good end of the run is not yet the end of the task:
/// that has to be reported.
fn outcome_for_task(outcome: &Outcome, task: &TaskId, reported: &[(Task, TaskInput)]) -> Outcome {
    if outcome.blame() != rehearsal_core::Blame::Nobody && !matches!(outcome, Outcome::BudgetReached { .. }) {
        return outcome.clone();
    }
    match reported.iter().find(|(reported, _)| reported.id == *task) {
        Some((_, TaskInput::Finish)) => Outcome::Done,
        Some((_, TaskInput::Block { reason })) => Outcome::Blocked { reason: reason.clone() },
        _ if *outcome == Outcome::Done => Outcome::Continue { message: String::new() },
        _ => outcome.clone(),
    }
}

fn end_of_task(fence: Fence, outcome: Outcome) -> TaskInput {
    TaskInput::EndRun { fence, outcome }
}

pub(super) fn end_of(report: &RunReport, ended_at: Timestamp) -> RunEnd {
    let wire = &report.evidence.wire;
    let git = report.evidence.git.clone().unwrap_or_default();
    RunEnd {
        verdict: report.verdict.clone(),
        exit: report.evidence.exit,
        promise: report.promise.clone(),
        cost_usd: wire.cost_usd,
        tokens: wire.tokens,
        turns: wire.turns,
        agent_session: wire.session_id.clone(),
        commits: git.commits,
        files_changed: git.files_changed,
        tries: report.tries,
        ended_at,
    }
}
