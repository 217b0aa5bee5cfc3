//! One iteration: claim a task, run the agent, write what came of it.

use std::sync::Arc;

use camino::Utf8PathBuf;
use rehearsal_agent::{RunReport, RunRequest};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, Blame, Budget, Outcome, ProgressEntry, Promise, RunEnd, RunId, RunStart, Session, SessionName,
    Task,
};
use rehearsal_store::{Change, CommitError, Committed, Counts, StatusFilter, TaskQuery};

use super::{LoopEnd, LoopError, LoopEvent, Progress, SessionLoop};
use crate::kept::{self, end_of};
use crate::ledger::{Ledger, Meaning, Reported};
use crate::prompt::{PROGRESS_LINES, PromptData, SYSTEM_PROMPT, TASKS_SHOWN, render};

/// What a prompt tells beside its task.
struct Surroundings {
    session: Session,
    counts: Counts,
    journal: Vec<ProgressEntry>,
    /// The first of those that are open.
    tasks: Vec<Task>,
}

impl SessionLoop {
    /// Runs one iteration. Returns an end if the loop is over with it.
    pub(super) async fn iterate(
        &self,
        session: &SessionName,
        task: Task,
        progress: &mut Progress,
    ) -> Result<Option<LoopEnd>, LoopError> {
        // What the prompt tells of the others does not change with the claim: it is read meanwhile.
        let (claimed, surroundings) = tokio::join!(self.claim(session, task, progress), self.surroundings());
        let Some((start, task)) = claimed? else {
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
        let request = surroundings.and_then(|surroundings| {
            self.request_in(surroundings, &start.id, &task, progress.iteration, &progress.notes)
        });
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                self.give_back(&start, &error).await?;
                return Err(error);
            }
        };
        let left = self.left(progress);
        let budget = self.budget_of(&task, left);
        let report = self.run_agent(RunRequest { budget, ..request }).await;
        self.keep_report(&start.id, &report);
        for message in &report.warnings {
            self.tell(LoopEvent::Warning { message: message.clone() });
        }
        self.write_down(&start, &report, progress).await?;
        let outcome = &report.verdict.outcome;
        if matches!(outcome, Outcome::BudgetReached { .. }) && left.is_some() && budget.usd == left {
            return Ok(Some(LoopEnd::BudgetReached { spent_usd: progress.tally.spent() }));
        }
        if outcome.blame() == Blame::System {
            progress.rest_of = outcome.name().passes_with_time().then_some(task.id);
        } else {
            progress.notes.clear();
        }
        self.what_follows(&report, progress).await
    }

    /// Takes over what the run came to, and tells of it.
    async fn write_down(
        &self,
        start: &RunStart,
        report: &RunReport,
        progress: &mut Progress,
    ) -> Result<(), LoopError> {
        let end = end_of(report, self.now());
        let reported = Reported::of(report, &start.task);
        let reported = self.take_over(Actor::Run(start.id.clone()), start, &end, reported).await?;
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
        let ran = report.verdict.outcome.blame() != Blame::System;
        if let (Some(limit), None, true) = (self.options.max_cost, end.cost_usd, ran) {
            self.tell(LoopEvent::Warning {
                message: format!(
                    "run {} did not tell what it cost: the limit of ${limit:.2} holds only what is told",
                    start.id
                ),
            });
        }
        Ok(())
    }

    /// Writes down what a run came to. Returns the tasks that it reported on, as they are now.
    pub(super) async fn take_over(
        &self,
        actor: Actor,
        start: &RunStart,
        end: &RunEnd,
        reported: Reported,
    ) -> Result<Vec<Task>, LoopError> {
        let warn = |message| self.tell(LoopEvent::Warning { message });
        let ledger = Ledger { store: &*self.store, now: self.now(), warn: &warn };
        Ok(ledger.write(actor, start, end, reported, Meaning::OneIteration).await?.reported)
    }

    /// Ends a run that was never carried out, and gives its task back.
    async fn give_back(&self, start: &RunStart, why: &LoopError) -> Result<(), LoopError> {
        let end = RunEnd::without_blame(format!("it was not carried out: {why}"), self.now());
        let actor = Actor::Worker(start.worker.clone());
        self.take_over(actor, start, &end, Reported::default()).await?;
        Ok(())
    }

    async fn claim(
        &self,
        session: &SessionName,
        task: Task,
        progress: &Progress,
    ) -> Result<Option<(RunStart, Task)>, LoopError> {
        let at = self.now();
        let start = RunStart {
            id: RunId::from_random(crate::random_bits()),
            task: task.id.clone(),
            session: Some(session.clone()),
            fence: task.fence.next(),
            agent: self.agent_name.clone(),
            driver: self.agent.driver().to_owned(),
            model: self.profile.model.clone(),
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

    /// What an iteration asks of the agent.
    pub async fn request(
        &self,
        run: &RunId,
        task: &Task,
        iteration: u32,
        notes: &[String],
    ) -> Result<RunRequest, LoopError> {
        let request = self.request_in(self.surroundings().await?, run, task, iteration, notes)?;
        Ok(RunRequest { budget: self.budget_of(task, self.options.max_cost), ..request })
    }

    fn request_in(
        &self,
        surroundings: Surroundings,
        run: &RunId,
        task: &Task,
        iteration: u32,
        notes: &[String],
    ) -> Result<RunRequest, LoopError> {
        let profile = &self.profile;
        let prompt = self.prompt(surroundings, task, iteration, notes)?;
        Ok(RunRequest {
            run: run.clone(),
            task: task.id.clone(),
            prompt,
            working_dir: self.working_dir.clone(),
            run_dir: self.run_dir(run),
            model: profile.model.clone(),
            system_prompt: Some(profile.system_prompt.clone().unwrap_or_else(|| SYSTEM_PROMPT.trim().into())),
            permission: profile.permission,
            timeout: Some(profile.timeout.0),
            idle_timeout: Some(profile.idle_timeout.0),
            budget: profile.budget,
            env_grants: profile.pass_env.clone(),
            env: profile.env.clone(),
            resume: None,
            lease: None,
            rendezvous: None,
        })
    }

    async fn surroundings(&self) -> Result<Surroundings, LoopError> {
        let name = &self.options.session;
        let open = TaskQuery {
            session: Some(name.clone()),
            status: StatusFilter::Open,
            limit: Some(TASKS_SHOWN),
            ..TaskQuery::default()
        };
        let (session, counts, journal, tasks) = tokio::try_join!(
            self.session(),
            self.counts(),
            async { Ok(self.store.progress(name, PROGRESS_LINES).await?) },
            async { Ok(self.store.tasks(&open).await?) },
        )?;
        Ok(Surroundings { session, counts, journal, tasks })
    }

    fn prompt(
        &self,
        surroundings: Surroundings,
        task: &Task,
        iteration: u32,
        notes: &[String],
    ) -> Result<String, LoopError> {
        let Surroundings { session, counts, journal, mut tasks } = surroundings;
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

    /// What is left of the loop's money.
    fn left(&self, progress: &Progress) -> Option<f64> {
        self.options.max_cost.map(|limit| limit - progress.tally.spent())
    }

    /// The tightest of the task's budget, the agent's, and what is left of the loop's.
    fn budget_of(&self, task: &Task, left: Option<f64>) -> Budget {
        let agent = self.profile.budget;
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

    /// Only a worker that dies before its commit needs it: without it the run's end is written all the same.
    fn keep_report(&self, run: &RunId, report: &RunReport) {
        if let Err(error) = kept::keep(&self.run_dir(run), report) {
            let message = format!("the report of run {run} is not kept: {error}");
            self.tell(LoopEvent::Warning { message });
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
            if open_tasks == 0 {
                return Ok(None);
            }
            if self.options.accept_complete {
                return Ok(Some(LoopEnd::Complete { open_tasks }));
            }
            self.tell(LoopEvent::CompleteRefused { open_tasks });
            let open =
                if open_tasks == 1 { "1 task is".to_owned() } else { format!("{open_tasks} tasks are") };
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
