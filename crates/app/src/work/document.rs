//! What a worker came to: each task, and what is left.

use std::collections::BTreeMap;

use rehearsal_agent::ConfinedBy;
use rehearsal_core::flow::End;
use rehearsal_core::guard::Hindrance;
use rehearsal_core::{
    AgentName, FlowName, NextAction, Notice, Oid, Outcome, PullRequestRef, Standing, StateName, Task, TaskId,
    Timestamp, WaitFor,
};
use rehearsal_engine::why::{Surroundings, why};
use rehearsal_engine::{LoopLock, WorkEnd};
use rehearsal_store::{Scope, StatusFilter, TaskQuery};
use serde::Serialize;

use super::Worked;
use crate::command_line;
use crate::lanes::HeldLane;
use crate::project::ProjectError;

/// `work --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkDocument {
    /// Why it ended.
    pub end: EndName,
    /// The tasks that it worked on, as they are now.
    pub tasks: Vec<WorkedTask>,
    /// Runs that it made.
    pub runs: u32,
    /// What they cost, where they told it.
    pub cost_usd: Option<f64>,
    /// Runs that did not tell.
    pub runs_without_cost: u32,
    /// What kept its agents within bounds, by the names of those that ran.
    pub confined_by: BTreeMap<AgentName, ConfinedBy>,
    /// What a person has to know who did not watch.
    pub notices: Vec<Notice>,
    /// Lanes that stand still.
    pub held: Vec<HeldLane>,
    /// How many tasks are not over, in the session or in all.
    pub open: u64,
    /// How many tasks wait for a person.
    pub blocked: u64,
    /// Tasks that were not worked on and do not go on by themselves, if that is why it ended: the first few.
    pub stuck: Vec<WorkedTask>,
    /// Where the work went.
    pub forge: String,
    /// The command that brings what was merged into the checkout, if something was.
    pub get_it: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
}

/// Why a worker for tasks of any flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndName {
    /// There was nothing more to do, or only what waits for a person.
    Idle,
    /// It was told to do one task.
    Once,
    /// Its runs have cost what they may cost.
    BudgetReached,
    /// It was told to stop.
    Interrupted,
}

impl EndName {
    /// The other ends are those of a session.
    fn of(end: &WorkEnd) -> Self {
        match end {
            WorkEnd::Once => Self::Once,
            WorkEnd::BudgetReached { .. } => Self::BudgetReached,
            WorkEnd::Interrupted => Self::Interrupted,
            _ => Self::Idle,
        }
    }
}

/// A task, and what came of it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the names say it")]
pub struct WorkedTask {
    pub id: TaskId,
    pub title: String,
    pub flow: FlowName,
    pub state: StateName,
    /// The word that listings show.
    pub status: String,
    /// The branch on the remote.
    pub branch: Option<String>,
    pub pull_request: Option<PullRequestRef>,
    /// The commit of the base that has the work.
    pub merged: Option<Oid>,
    /// The commit that has the work of a task that is done, where its flow takes it no further than its worktree.
    pub kept: Option<Oid>,
    /// How many runs it had in all.
    pub runs: u64,
    /// What they cost, where they told it.
    pub cost_usd: Option<f64>,
    /// What it waits for, or why it failed.
    pub because: Option<String>,
    /// When it goes on by itself.
    pub until: Option<Timestamp>,
    /// The command that helps.
    pub next: Option<String>,
    /// Whether it has cost what it may.
    #[serde(skip)]
    pub is_spent: bool,
    /// How its last run ended.
    #[serde(skip)]
    pub last_outcome: Option<Outcome>,
    #[serde(skip)]
    pub end: Option<End>,
    #[serde(skip)]
    pub waits_for: Option<WaitFor>,
}

/// More are in the listings.
const STUCK_NAMED: u32 = 5;

impl Worked {
    /// The tasks as they are now, and what stands in their way.
    pub async fn document(&self) -> Result<WorkDocument, ProjectError> {
        let summary = &self.summary;
        let mut tasks = Vec::new();
        for task in &summary.tasks {
            tasks.push(self.task(task).await?);
        }
        let stuck = self.stuck().await?;
        let counts = self.store.count_tasks(self.request.session.as_ref()).await?;
        let is_merged = tasks.iter().any(|task| task.merged.is_some());
        let get_it = if is_merged { Some(command_line::line(&self.destination.pull().await)) } else { None };
        let held = summary.held.iter();
        Ok(WorkDocument {
            end: EndName::of(&summary.end),
            tasks,
            runs: u32::try_from(summary.runs.len()).unwrap_or(u32::MAX),
            cost_usd: summary.cost_usd,
            runs_without_cost: summary.runs_without_cost,
            confined_by: summary.confined_by.clone(),
            notices: summary.notices.clone(),
            held: held.map(|(lane, hold)| HeldLane { lane: lane.clone(), hold: hold.clone() }).collect(),
            open: counts.open,
            blocked: counts.by_status.get("blocked").copied().unwrap_or(0),
            stuck,
            forge: self.destination.to_string(),
            get_it,
            duration_ms: summary.duration_ms,
        })
    }

    /// What could be begun and is not, when nothing goes on by itself. Who works for some agents only leaves the rest to
    /// others, and of what is held it is told anyway.
    async fn stuck(&self) -> Result<Vec<WorkedTask>, ProjectError> {
        let summary = &self.summary;
        if summary.end != WorkEnd::Idle || !self.request.agents.is_empty() || !summary.held.is_empty() {
            return Ok(Vec::new());
        }
        let query = TaskQuery {
            session: self.request.session.clone(),
            status: StatusFilter::Open,
            limit: Some(STUCK_NAMED),
            ..TaskQuery::default()
        };
        let mut stuck = Vec::new();
        for task in self.store.tasks(&query).await? {
            let is_told = summary.tasks.iter().any(|told| told.id == task.id);
            if !is_told && task.standing == Standing::Ready && self.is_stuck(&task).await? {
                stuck.push(self.task(&task).await?);
            }
        }
        Ok(stuck)
    }

    /// Whether it would stay as it is whatever others do: what is in other hands at this moment comes back.
    async fn is_stuck(&self, task: &Task) -> Result<bool, ProjectError> {
        for id in &task.depends_on {
            if self.store.task(id).await?.is_some_and(|other| other.is_ended() && !other.is_done()) {
                return Ok(true);
            }
        }
        let hindrance = self.hindrance(task).await?;
        Ok(matches!(hindrance, Some(Hindrance::Disabled { .. } | Hindrance::Spent { .. })))
    }

    async fn hindrance(&self, task: &Task) -> Result<Option<Hindrance>, ProjectError> {
        Ok(self.store.hindrance(task, &self.settings.limits(), self.project.caller.now()).await?)
    }

    async fn task(&self, task: &Task) -> Result<WorkedTask, ProjectError> {
        let (limits, state_dir) = (self.settings.limits(), self.project.state_dir()?);
        let holder = LoopLock::holder(&state_dir);
        let around = Surroundings {
            now: self.project.caller.now(),
            limits: &limits,
            loop_holder: holder.as_deref(),
            state_dir: &state_dir,
        };
        let why = why(&*self.store, task, &around).await?;
        let hindrance = self.hindrance(task).await?;
        let cost = self.store.cost_of(&Scope::Task(task.id.clone())).await?;
        let (end, waits_for) = match &task.standing {
            Standing::Ended { end } => (Some(*end), None),
            Standing::Waiting(wait) => (None, Some(wait.wait_for)),
            _ => (None, None),
        };
        let delivery = &task.delivery;
        let kept = kept(task);
        let next = why.next.first().cloned();
        let next = next.or(kept.clone().map(|commit| NextAction::Merge { commit }));
        Ok(WorkedTask {
            id: task.id.clone(),
            title: task.title.clone(),
            flow: task.flow.clone(),
            state: task.state.clone(),
            status: task.status().to_owned(),
            branch: delivery.branch.clone(),
            pull_request: delivery.pull_request.clone(),
            merged: delivery.merged.clone(),
            kept,
            runs: cost.runs,
            cost_usd: (cost.runs > cost.without_usd).then_some(cost.usd),
            because: why.reasons.into_iter().next().filter(|_| !task.is_done()),
            until: why.until,
            next: next.as_ref().map(command_line::line),
            is_spent: !task.is_ended()
                && (matches!(hindrance, Some(Hindrance::Spent { .. })) || is_out_of_budget(task)),
            last_outcome: task.last_outcome.clone(),
            end,
            waits_for,
        })
    }
}

/// The newest commit of a task that is done, if nothing took it out of the worktree.
fn kept(task: &Task) -> Option<Oid> {
    let delivery = &task.delivery;
    let is_out = delivery.merged.is_some() || delivery.pushed.is_some();
    let has_work = delivery.head.is_some() && delivery.head != delivery.base;
    delivery.head.clone().filter(|_| task.is_done() && !is_out && has_work)
}

/// Whether it waits for a person because its last run used up a budget.
fn is_out_of_budget(task: &Task) -> bool {
    matches!(&task.standing, Standing::Waiting(wait) if wait.wait_for == WaitFor::Human)
        && matches!(task.last_outcome, Some(Outcome::BudgetReached { .. }))
}
