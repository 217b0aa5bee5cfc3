//! One run of a task's agent in the task's worktree.

use std::sync::Arc;

use rehearsal_agent::{RunReport, RunRequest, Watch};
use rehearsal_core::config::Profile;
use rehearsal_core::{
    Actor, Blame, Budget, Evidence, Outcome, OutcomeName, RunEnd, RunStart, StepFailure, Verdict,
};
use rehearsal_forge::{CheckoutPrint, Git, Worktree};
use rehearsal_store::{Change, FindError};

use super::adopt::Surroundings;
use super::slot::{Early, Slot};
use super::{Desk, Moment, Role, WorkEvent};
use crate::findings::findings_for;
use crate::kept::{self, end_of};
use crate::ledger::{Ledger, Meaning, Reported};
use crate::prompt::{self, TaskPrompt};

impl Slot<'_> {
    /// Runs the agent of the task's state once, and writes down what came of it.
    pub(super) async fn attempt(&mut self) -> Result<(), Early> {
        let Some(name) = self.task.next_agent().cloned() else { return Ok(()) };
        let role = match self.desk.worker.roles.role(&name).await {
            Some(Ok(role)) => Ok(role),
            Some(Err(error)) => Err(Outcome::AgentMissing { program: error.to_string() }),
            None => Err(Outcome::AgentMissing { program: format!("agent `{name}` is not configured") }),
        };
        let start = self.start(role.as_ref().ok()).await?;
        self.reach(Moment::RunStarted).await?;
        let report = match role {
            Ok(role) => self.run_agent(&role, &start).await?,
            Err(outcome) => report_of(outcome),
        };
        self.settle(&start, &report).await
    }

    /// Keeps what a run came to, and writes it down.
    pub(super) async fn settle(&mut self, start: &RunStart, report: &RunReport) -> Result<(), Early> {
        if self.kept.lost.is_cancelled() {
            self.desk.end_for_nothing(start, report).await;
            return Err(Early::Lost);
        }
        if let Err(error) = kept::keep(&self.desk.run_dir(&start.id), report) {
            self.desk.warn(format!("the report of run {} is not kept: {error}", start.id));
        }
        self.reach(Moment::ReportKept).await?;
        self.write_down(start, report).await?;
        self.reach(Moment::RunEnded).await
    }

    async fn start(&self, role: Option<&Role>) -> Result<RunStart, Early> {
        let desk = self.desk;
        let (agent, model) = match role {
            Some(role) => (role.agent.driver().to_owned(), role.profile.model.clone()),
            None => ("none".to_owned(), None),
        };
        let start = RunStart {
            id: self.run.clone(),
            task: self.task.id.clone(),
            session: self.task.session.clone(),
            fence: self.task.fence,
            agent: self.task.agent.clone().ok_or_else(|| std::io::Error::other("a task without an agent"))?,
            driver: agent,
            model,
            worker: desk.id.clone(),
            iteration: self.task.attempts + self.task.continuations + 1,
            started_at: desk.now(),
        };
        fs_err::create_dir_all(desk.run_dir(&start.id))?;
        // The store knows of the run before there is a process: and it says whether the claim still holds.
        desk.commit(vec![Change::StartRun(start.clone())]).await?;
        Ok(start)
    }

    async fn run_agent(&self, role: &Role, start: &RunStart) -> Result<RunReport, Early> {
        let worktree = match self.worktree().await {
            Ok(worktree) => worktree,
            Err(failure) => return Ok(report_of(outcome_of(failure))),
        };
        self.tell_prepared(worktree);
        self.reach(Moment::Prepared).await?;
        let root = self.desk.worker.worktrees.root();
        let (request, before) = tokio::join!(self.request(role, start, worktree), CheckoutPrint::take(root));
        let mut request = match request? {
            Ok(request) => request,
            Err(outcome) => return Ok(report_of(outcome)),
        };
        let scene = Surroundings { head: worktree.head.clone(), checkout: before.ok() };
        request.rendezvous = request.lease.as_ref().and_then(|_| self.rendezvous(&start.id, &scene));
        // A lease that ran out while the place was prepared: whoever has taken the task may be at work by now.
        if self.kept.lease.has_run_out() {
            return Err(Early::Lost);
        }
        let mut report = role.agent.run(request, self.watch(), self.cancel.clone()).await;
        self.look_around(&scene, worktree, &mut report).await;
        Ok(report)
    }

    pub(super) fn watch(&self) -> Watch {
        let reporter = Arc::clone(&self.desk.worker.reporter);
        let (task, run) = (self.task.id.clone(), self.run.clone());
        Arc::new(move |activity| {
            reporter(WorkEvent::AgentActed { task: task.clone(), run: run.clone(), activity });
        })
    }

    /// Whether the agent kept to its place, and to its part.
    pub(super) async fn look_around(
        &self,
        scene: &Surroundings,
        worktree: &Worktree,
        report: &mut RunReport,
    ) {
        if let Some(before) = &scene.checkout
            && let Ok(Some(trespass)) = before.trespass_since().await
        {
            let files =
                if trespass.files.is_empty() { "its branch".to_owned() } else { trespass.files.join(", ") };
            report.warnings.push(format!(
                "the main checkout was written to while run {} had a worktree of its own: {files}",
                self.run
            ));
        }
        if self.only_decides() {
            self.undo_what_a_reviewer_did(worktree, report).await;
        }
    }

    /// Whether the agent of this state is asked for a decision, and for nothing else.
    pub(super) fn only_decides(&self) -> bool {
        use rehearsal_core::flow::State;
        matches!(self.flow.states.get(&self.task.state), Some(State::Work { on, .. }) if on.decides())
    }

    /// A reviewer reads. What it wrote all the same would be merged unreviewed.
    async fn undo_what_a_reviewer_did(&self, worktree: &Worktree, report: &mut RunReport) {
        let is_as_it_was = report.evidence.git.as_ref().is_some_and(|facts| {
            facts.head_after.as_deref() == Some(worktree.head.as_str()) && !facts.uncommitted
        });
        if is_as_it_was {
            return;
        }
        let git = Git::at(worktree.path.clone());
        let changed = async {
            let head = git.commit("HEAD").await?;
            let dirty = git.run(&["status", "--porcelain", "--untracked-files=normal"]).await?;
            Ok::<_, rehearsal_forge::GitError>(head != worktree.head || !dirty.is_empty())
        };
        if !matches!(changed.await, Ok(true)) {
            return;
        }
        let _ = git.run(&["reset", "--quiet", "--hard", worktree.head.as_str()]).await;
        let _ = git.run(&["clean", "--quiet", "-fd"]).await;
        report
            .warnings
            .push("the reviewer changed files, which was undone: it is asked for a decision only".into());
    }

    /// What is asked of the agent; or what stands in the way of asking.
    async fn request(
        &self,
        role: &Role,
        start: &RunStart,
        worktree: &Worktree,
    ) -> Result<Result<RunRequest, Outcome>, Early> {
        let (desk, profile) = (self.desk, &role.profile);
        let session = match &self.task.session {
            Some(name) => match desk.worker.store.session(name).await {
                Ok(session) => Some(session),
                Err(FindError::Store(error)) => return Err(error.into()),
                Err(_) => None,
            },
            None => None,
        };
        let shipped = if self.only_decides() {
            prompt::REVIEW_TEMPLATE
        } else if self.flow.only_looks(&self.task.state) {
            prompt::LOOK_TEMPLATE
        } else {
            prompt::TASK_TEMPLATE
        };
        let findings = findings_for(&*desk.worker.store, &self.task).await?;
        let data = TaskPrompt {
            task: &self.task,
            session: session.as_ref(),
            findings: &findings,
            base: &desk.worker.outlet.base,
            test_command: desk.worker.testing.command.as_deref(),
        };
        let prompt = match prompt::render_task(role.template.as_deref().unwrap_or(shipped), &data) {
            Ok(prompt) => prompt,
            Err(error) => return Ok(Err(Outcome::PermissionDenied { reason: error.to_string() })),
        };
        let mut env = profile.env.clone();
        env.extend(worktree.environment());
        let resume = self.session_to_go_on_with().await?;
        Ok(Ok(RunRequest {
            run: start.id.clone(),
            task: self.task.id.clone(),
            prompt,
            working_dir: worktree.path.clone(),
            run_dir: desk.run_dir(&start.id),
            model: profile.model.clone(),
            system_prompt: Some(system_prompt(profile)),
            permission: profile.permission,
            timeout: Some(profile.timeout.0),
            idle_timeout: Some(profile.idle_timeout.0),
            budget: self.budget(profile).await?,
            env_grants: profile.pass_env.clone(),
            env,
            resume,
            // In a rehearsal time is not what the kernel's clocks say.
            lease: self.desk.worker.options.seed.is_none().then(|| self.kept.lease.clone()),
            rendezvous: None,
        }))
    }

    /// The agent's own session, if this run goes on where the last one stopped.
    async fn session_to_go_on_with(&self) -> Result<Option<String>, Early> {
        if !self.task.is_to_be_continued() {
            return Ok(None);
        }
        let last = rehearsal_store::RunQuery {
            scope: rehearsal_store::Scope::Task(self.task.id.clone()),
            limit: Some(2),
        };
        let runs = self.desk.worker.store.runs(&last).await?;
        // An agent keeps its sessions on its machine.
        let here = runs.into_iter().filter(|run| self.was_here(&run.start.id));
        Ok(here.filter_map(|run| run.end).find_map(|end| end.agent_session))
    }

    /// The tightest of the agent's budget and what is left of the task's.
    async fn budget(&self, profile: &Profile) -> Result<Budget, Early> {
        let (own, agent) = (self.task.budget, profile.budget);
        let spent = match own.usd {
            Some(_) => {
                let scope = rehearsal_store::Scope::Task(self.task.id.clone());
                self.desk.worker.store.cost_of(&scope).await?.usd
            }
            None => 0.0,
        };
        let left = own.usd.map(|usd| (usd - spent).max(0.0));
        let fewest = |limits: [Option<u64>; 2]| limits.into_iter().flatten().min();
        Ok(Budget {
            usd: [left, agent.usd].into_iter().flatten().reduce(f64::min),
            tokens: fewest([own.tokens, agent.tokens]),
            turns: fewest([own.turns, agent.turns]),
        })
    }

    async fn write_down(&mut self, start: &RunStart, report: &RunReport) -> Result<(), Early> {
        let desk = self.desk;
        for message in &report.warnings {
            desk.warn(message.clone());
        }
        let end = end_of(report, desk.now());
        let warn = |message| desk.warn(message);
        let ledger = Ledger { store: &*desk.worker.store, now: desk.now(), warn: &warn };
        let actor = Actor::Run(start.id.clone());
        let reported = Reported::of(report, &start.task);
        let written = ledger.write(actor, start, &end, reported, Meaning::TheWholeState).await;
        let written = match written.map_err(Early::from) {
            Err(Early::Lost) => {
                desk.end_for_nothing(start, report).await;
                return Err(Early::Lost);
            }
            written => written?,
        };
        desk.count_run(start, &end);
        let outcome = report.verdict.outcome.clone();
        desk.tell(WorkEvent::RunEnded {
            task: start.task.clone(),
            run: start.id.clone(),
            outcome: outcome.clone(),
            commits: end.commits.len(),
            cost_usd: end.cost_usd,
            duration_ms: u64::try_from(end.ended_at.since(start.started_at).as_millis()).unwrap_or(u64::MAX),
        });
        let Some(task) = written.own else { return Err(Early::Lost) };
        self.has_become(task);
        // A place that is not to be had now says nothing about the agent, who was not asked.
        if report.tries > 0 || !outcome.name().passes_with_time() {
            desk.hold_after(&start.agent, &outcome, &self.task).await?;
        }
        Ok(())
    }
}

impl Desk {
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
        self.tally(|tally| {
            tally.runs += 1;
            tally.cost_usd += end.cost_usd.unwrap_or(0.0);
            tally.runs_without_cost += u32::from(end.cost_usd.is_none());
        });
        let ran = end.verdict.outcome.blame() != Blame::System;
        if let (Some(limit), None, true) = (self.worker.options.max_cost, end.cost_usd, ran) {
            let run = &start.id;
            self.warn(format!(
                "run {run} did not tell what it cost: the limit of ${limit:.2} holds only what is told"
            ));
        }
    }

    pub(super) fn touch(&self, task: &rehearsal_core::TaskId) {
        self.tally(|tally| {
            if !tally.touched.contains(task) {
                tally.touched.push(task.clone());
            }
        });
    }
}

fn system_prompt(profile: &Profile) -> String {
    profile.system_prompt.clone().unwrap_or_else(|| prompt::SYSTEM_PROMPT.trim().into())
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
    }
}
