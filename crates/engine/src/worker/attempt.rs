//! One run of a task's agent.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use rehearsal_agent::{Permission, RunReport, RunRequest, Watch};
use rehearsal_core::{
    Actor, AgentName, Blame, Damage, Evidence, FileList, Notice, Outcome, OutcomeName, RunEnd, RunStart,
    StepFailure, Verdict,
};
use rehearsal_forge::{CheckoutPrint, Checkpoint, Keep};
use rehearsal_store::Change;

use super::adopt::Surroundings;
use super::checkout::is_violated;
use super::request::Subject;
use super::slot::{ClaimExit, Finished, Slot};
use super::{Moment, Policy, Role, WorkEvent, WorkerKind, WorkerState, Workspace};
use crate::last_words::last_words;
use crate::ledger::{Ledger, Meaning, Reported};
use crate::outcome_file::{self, end_of};

impl Slot<'_> {
    /// Runs the agent of the task's state once, and writes down what came of it.
    pub(super) async fn attempt(&mut self) -> Result<(), ClaimExit> {
        let worker = &self.state.worker;
        let Some(name) = self.agent.clone() else { return Ok(()) };
        let role = match worker.roles.role(&name).await {
            Some(Ok(role)) => Ok(role),
            Some(Err(error)) => Err(Outcome::AgentMissing { program: error.to_string() }),
            None => Err(Outcome::AgentMissing { program: format!("agent `{name}` is not configured") }),
        };
        let start = self.start(name, role.as_ref().ok()).await?;
        self.reach(Moment::RunStarted).await?;
        let report = match role {
            Ok(role) => self.run_agent(&role, &start).await?,
            Err(outcome) => report_of(outcome),
        };
        self.settle(&start, &report).await
    }

    /// Keeps what a run came to, and writes it down.
    pub(super) async fn settle(&mut self, start: &RunStart, report: &RunReport) -> Result<(), ClaimExit> {
        let state = self.state;
        if state.kind() == WorkerKind::Work && self.guard.lost.is_cancelled() {
            state.end_for_nothing(start, report).await;
            return Err(ClaimExit::Lost);
        }
        if let Err(error) = outcome_file::write(&state.run_dir(&start.id), start, report, state.now()) {
            state.warn(Notice::ReportNotSaved { run: start.id.clone(), error: error.to_string() });
        }
        self.reach(Moment::ReportKept).await?;
        self.write_down(start, report).await?;
        self.reach(Moment::RunEnded).await
    }

    async fn start(&mut self, name: AgentName, role: Option<&Role>) -> Result<RunStart, ClaimExit> {
        let state = self.state;
        let (driver, model) = match role {
            Some(role) => (role.agent.driver().to_owned(), role.profile.model.clone()),
            None => ("none".to_owned(), None),
        };
        let start = RunStart {
            id: self.run.clone(),
            task: self.task.id.clone(),
            session: self.task.session.clone(),
            fence: self.task.fence,
            agent: name,
            driver,
            model,
            worker: state.id.clone(),
            iteration: self.iteration.unwrap_or(self.task.attempts + self.task.continuations + 1),
            started_at: state.now(),
        };
        self.run_began = Some(state.worker.clock.monotonic());
        fs_err::create_dir_all(state.run_dir(&start.id))?;
        // The store knows of the run before there is a process: and it says whether the claim still holds.
        state.commit(vec![Change::StartRun(start.clone())]).await?;
        Ok(start)
    }

    async fn run_agent(&mut self, role: &Role, start: &RunStart) -> Result<RunReport, ClaimExit> {
        let confined_by = role.agent.confined_by();
        self.state.tally(|tally| tally.confined_by.insert(start.agent.clone(), confined_by));
        match &self.state.worker.workspace {
            Workspace::Worktrees { .. } => self.run_in_worktree(role, start).await,
            Workspace::Checkout(root) => {
                Ok(self.run_in_checkout(role, start, root).await?.unwrap_or_else(report_of))
            }
        }
    }

    async fn run_in_worktree(&mut self, role: &Role, start: &RunStart) -> Result<RunReport, ClaimExit> {
        let worktree = match self.worktree().await {
            Ok(worktree) => worktree.clone(),
            Err(failure) => return Ok(report_of(outcome_of(failure))),
        };
        self.tell_prepared(&worktree);
        self.reach(Moment::Prepared).await?;
        let root = self.state.worker.workspace.root();
        let (request, before) =
            tokio::join!(self.request(role, start, &worktree.path, &[]), CheckoutPrint::take(root));
        let (mut request, was_capped) = match request? {
            Ok(request) => request,
            Err(outcome) => return Ok(report_of(outcome)),
        };
        self.was_capped = was_capped;
        let may_write = !self.only_decides() && role.profile.permission != Permission::Plan;
        let place = match Checkpoint::of_files(&worktree.path, start.id.as_str()).await {
            Ok(place) if !may_write => place,
            _ => None,
        };
        let surroundings = Surroundings { head: worktree.head.clone(), checkout: before.ok(), place };
        request.env.extend(worktree.environment());
        request.resume = self.session_to_go_on_with().await?;
        // In a rehearsal time is not what the kernel's clocks say.
        if self.state.worker.options.seed.is_none() {
            request.lease = Some(self.guard.lease.clone());
            request.rendezvous = self.rendezvous(&start.id, &surroundings);
        }
        // A lease that ran out while the place was prepared: whoever has taken the task may be at work by now.
        if self.guard.lease.has_run_out() {
            return Err(ClaimExit::Lost);
        }
        let mut report = role.agent.run(request, self.watch(), self.cancel.clone()).await;
        self.look_around(&surroundings, role, &mut report).await;
        Ok(report)
    }

    pub(super) fn watch(&self) -> Watch {
        let reporter = Arc::clone(&self.state.worker.reporter);
        let (task, run) = (self.task.id.clone(), self.run.clone());
        Arc::new(move |activity| {
            reporter(WorkEvent::AgentActed { task: task.clone(), run: run.clone(), activity });
        })
    }

    /// Whether the agent kept to its place, and to its part.
    pub(super) async fn look_around(&self, surroundings: &Surroundings, role: &Role, report: &mut RunReport) {
        self.note_denials(report);
        if let Some(before) = &surroundings.checkout
            && let Ok(Some(trespass)) = before.trespass_since().await
        {
            report.warnings.push(Notice::CheckoutChanged { run: self.run.clone(), files: trespass.files });
        }
        if self.only_decides() {
            report.require_decision();
        }
        if let Some(place) = &surroundings.place {
            self.undo_what_a_reader_did(place, role, report).await;
        }
    }

    /// Keeps what was denied for everyone who asks later.
    pub(super) fn note_denials(&self, report: &mut RunReport) {
        if let Some((denials, more)) = report.denials() {
            report.warnings.push(Notice::ToolsDenied { run: self.run.clone(), denials, more });
        }
    }

    /// Whether the agent of this state is asked for a decision, and for nothing else.
    pub(super) fn only_decides(&self) -> bool {
        self.flow.only_decides(&self.task.state)
    }

    /// A reviewer reads, and so does an agent that may only read. What it wrote all the same would be merged unreviewed.
    async fn undo_what_a_reader_did(&self, place: &Checkpoint, role: &Role, report: &mut RunReport) {
        let undone = async {
            let changed = place.changed_files().await?;
            if changed.is_some() {
                place.put_back(Keep::Nothing).await?;
            }
            Ok::<_, rehearsal_git::GitError>(changed)
        };
        match undone.await {
            Ok(None) => {}
            Ok(Some(files)) if role.profile.permission == Permission::Plan => {
                let damage = Damage::ReadOnly { files: FileList::of(&files) };
                is_violated(report, std::slice::from_ref(&damage));
                let run = self.run.clone();
                report.warnings.push(Notice::CheckoutDamaged { run, damage, restored: true });
            }
            Ok(Some(_)) => report.warnings.push(Notice::ReviewerChangesUndone),
            Err(error) => report.warnings.push(Notice::ChangesUnknown { error: error.to_string() }),
        }
    }

    /// What is asked of the agent, and whether its budget is what is left of the worker's; or what stands in the way.
    pub(super) async fn request(
        &self,
        role: &Role,
        start: &RunStart,
        working_dir: &Utf8Path,
        left_files: &[String],
    ) -> Result<Result<(RunRequest, bool), Outcome>, ClaimExit> {
        let (worker, left) = (&self.state.worker, self.state.left());
        let iteration = match (&worker.options.policy, self.iteration) {
            (Policy::Session(policy), Some(number)) => {
                let notes = self.state.iterations(|iterations| iterations.notes.clone());
                Some(worker.iteration(policy, &self.task, number, notes).await?)
            }
            _ => None,
        };
        let (task, flow, run) = (&self.task, &*self.flow, &start.id);
        let subject = Subject { task, flow, role, run, working_dir, left, left_files, iteration };
        match worker.request(subject).await? {
            Ok(request) => {
                let is_capped = left.is_some() && request.budget.usd == left;
                Ok(Ok((request, is_capped)))
            }
            Err(error) => Ok(Err(Outcome::PermissionDenied { reason: error.to_string() })),
        }
    }

    /// The agent's own session, if this run goes on where the last one stopped.
    async fn session_to_go_on_with(&self) -> Result<Option<String>, ClaimExit> {
        if !self.task.is_to_be_continued() {
            return Ok(None);
        }
        let last = rehearsal_store::RunQuery {
            scope: rehearsal_store::Scope::Task(self.task.id.clone()),
            limit: Some(2),
        };
        let runs = self.state.worker.store.runs(&last).await?;
        // An agent keeps its sessions on its machine.
        let here = runs.into_iter().filter(|run| self.was_here(&run.start.id));
        Ok(here.filter_map(|run| run.end).find_map(|end| end.agent_session))
    }

    async fn write_down(&mut self, start: &RunStart, report: &RunReport) -> Result<(), ClaimExit> {
        let state = self.state;
        for notice in &report.warnings {
            state.warn(notice.clone());
        }
        if report.verdict.outcome.blame() == Blame::Agent {
            let lines = last_words(&state.run_dir(&start.id));
            if !lines.is_empty() {
                let run = start.id.clone();
                state.tally(|tally| tally.note(Notice::LastWords { run, lines }));
            }
        }
        let took = self.run_began.map(|began| state.worker.clock.monotonic().saturating_sub(began));
        let end = RunEnd { took_ms: took.map(milliseconds), ..end_of(report, state.now()) };
        let warn = |notice| state.warn(notice);
        let ledger = Ledger { store: &*state.worker.store, now: state.now(), warn: &warn };
        let meaning = match state.worker.options.policy {
            Policy::Session(_) => Meaning::OneIteration,
            Policy::Queue(_) => Meaning::TheWholeState,
        };
        let fallback = state.fallback_from(&start.agent, &report.verdict.outcome, &self.task).await?;
        if let Some(by) = fallback.clone() {
            let (task, from, cause) =
                (start.task.clone(), start.agent.clone(), report.verdict.outcome.name());
            state.warn(Notice::TakenOver { task, from, by, cause });
        }
        let was_capped = self.was_capped;
        let reported = Reported { was_capped, fallback, ..Reported::of(report, &start.task) };
        let written = ledger.write(Actor::Run(start.id.clone()), start, &end, reported, meaning).await;
        let written = match written.map_err(ClaimExit::from) {
            Err(ClaimExit::Lost) => {
                state.end_for_nothing(start, report).await;
                return Err(ClaimExit::Lost);
            }
            written => written?,
        };
        state.count_run(start, &end);
        let outcome = report.verdict.outcome.clone();
        state.tell(WorkEvent::RunEnded {
            task: start.task.clone(),
            run: start.id.clone(),
            outcome: outcome.clone(),
            commits: end.commits.len(),
            files_changed: end.files_changed.len(),
            cost_usd: end.cost_usd,
            duration_ms: milliseconds(end.took(start.started_at)),
        });
        for task in written.reported {
            state.tally(|tally| tally.touch(&task.id));
            if task.pending.is_some() {
                // It is told when its steps are done.
                continue;
            }
            let status = task.status().to_owned();
            state.tell(WorkEvent::TaskReported { task: task.id, title: task.title, status });
        }
        let Some(task) = written.own else { return Err(ClaimExit::Lost) };
        self.has_become(task);
        // A place that is not to be had now says nothing about the agent, who was not asked.
        let was_asked = report.tries > 0 || !outcome.name().passes_with_time();
        let stops_the_line = was_asked && state.after_run(&start.agent, &outcome, &self.task).await?;
        let (promise, was_capped) = (report.promise.clone(), self.was_capped);
        self.finished = Some(Finished { outcome, promise, was_capped, stops_the_line });
        Ok(())
    }
}

impl WorkerState {
    /// Ends a run whose task was taken from it: what it came to counts for nothing, but what it cost is known.
    async fn end_for_nothing(&self, start: &RunStart, report: &RunReport) {
        let because = "its task was taken from it while it was at work".to_owned();
        let verdict = RunEnd::without_blame(because, self.now()).verdict;
        let end = RunEnd { verdict, ..end_of(report, self.now()) };
        self.count_run(start, &end);
        // Whoever took it over has ended the run as well; and one that could not be ended now is found by the next look.
        let _ = self.commit(vec![Change::EndRun { run: start.id.clone(), end: Box::new(end) }]).await;
    }

    fn count_run(&self, start: &RunStart, end: &RunEnd) {
        self.tally(|tally| tally.add(&start.id, end));
        let ran = end.verdict.outcome.blame() != Blame::System;
        if let (Some(limit_usd), None, true) = (self.worker.options.max_cost, end.cost_usd, ran) {
            self.warn(Notice::CostUnknown { run: start.id.clone(), limit_usd });
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What a failure before the agent could start means for its run.
pub(super) fn outcome_of(failure: StepFailure) -> Outcome {
    match failure {
        StepFailure::Systemic { outcome: OutcomeName::DiskFull, reason } => {
            Outcome::DiskFull { path: reason }
        }
        StepFailure::Systemic { reason, .. } => Outcome::PermissionDenied { reason },
        StepFailure::Transient { reason } | StepFailure::Pending { reason, .. } => {
            Outcome::Unreachable { reason }
        }
        StepFailure::Unknown { reason } | StepFailure::Red { reason, .. } => Outcome::Blocked { reason },
    }
}

/// The report of a run that never began.
pub(super) fn report_of(outcome: Outcome) -> RunReport {
    RunReport {
        verdict: Verdict { outcome, because: vec!["the agent was not started".into()] },
        evidence: Evidence::default(),
        promise: None,
        tasks: Vec::new(),
        progress: Vec::new(),
        tries: 0,
        warnings: Vec::new(),
        sandbox: None,
    }
}
