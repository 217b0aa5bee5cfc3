//! What is observed after a rehearsal, as far as expectations need it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::flow::{Flow, State};
use rehearsal_core::guard::Limits;
use rehearsal_core::transition::transition;
use rehearsal_core::{AgentName, Event, EventKind, Lane, OutcomeName, Standing, Task, TaskId, Wait, WaitFor};
use rehearsal_store::{RunQuery, Scope, Store, StoreError, TaskQuery};

use crate::environment::{Environment, ScenarioError};
use crate::expectation::Expect;
use crate::timeline::{Timeline, TimelineEntry};
use rehearsal_engine::why::{Surroundings, why};

/// The result of a rehearsal.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) tasks: BTreeMap<TaskId, ObservedTask>,
    /// The agents in the order of their runs.
    pub(crate) trajectory: Vec<AgentName>,
    pub(crate) timeline: Vec<TimelineEntry>,
    pub(crate) warnings: Vec<String>,
    /// The files that expectations name.
    pub(crate) base_files: BTreeMap<Utf8PathBuf, String>,
    /// Whether the base has moved.
    pub(crate) base_moved: bool,
    /// How many commits it gained, if expectations need it.
    pub(crate) base_commits: usize,
    /// The branches of the remote, if expectations name any.
    pub(crate) branches: BTreeSet<String>,
    pub(crate) pull_requests: Vec<String>,
    pub(crate) gh: Vec<String>,
    pub(crate) held: Vec<Lane>,
    pub(crate) elapsed: Duration,
}

#[derive(Debug)]
pub(crate) struct ObservedTask {
    pub(crate) task: Task,
    pub(crate) through: Vec<String>,
    pub(crate) runs: Vec<ObservedRun>,
    /// The answer of `why`.
    pub(crate) why: String,
}

#[derive(Debug)]
pub(crate) struct ObservedRun {
    pub(crate) agent: AgentName,
    pub(crate) outcome: Option<OutcomeName>,
    pub(crate) prompt: String,
}

impl ObservedTask {
    pub(crate) fn status(&self) -> &str {
        self.task.status()
    }

    pub(crate) fn reason(&self) -> Option<&str> {
        match &self.task.standing {
            Standing::Waiting(wait) => Some(&wait.reason),
            Standing::Ready | Standing::Claimed(_) | Standing::Ended { .. } => None,
        }
    }
}

impl Observed {
    pub(crate) async fn gather(
        environment: &Environment,
        store: &dyn Store,
        events: &[Event],
        timeline: &Timeline,
        (expect, limits): (&Expect, &Limits),
    ) -> Result<Self, ScenarioError> {
        let mut observed = Self {
            timeline: timeline.entries(),
            warnings: timeline.warnings(),
            elapsed: timeline.elapsed(),
            gh: environment.gh_calls()?,
            ..Self::default()
        };
        for task in store.tasks(&TaskQuery::default()).await? {
            let flow = store.flow(&task.flow_version).await?;
            let through = through(&task.id, events, &flow);
            let runs = runs_of(environment, store, &task.id).await?;
            let why = why_of(&task, environment, store, limits).await?;
            observed.tasks.insert(task.id.clone(), ObservedTask { task, through, runs, why });
        }
        let runs = store.runs(&RunQuery { scope: Scope::All, limit: None }).await?;
        observed.trajectory = runs.into_iter().rev().map(|run| run.start.agent).collect();
        let now = environment.clock.now();
        let situation = store.situation(&Limits::default(), now).await?;
        observed.held = situation
            .holds
            .into_iter()
            .filter(|(_, hold)| hold.holds_at(now))
            .map(|(lane, _)| lane)
            .collect();
        observed.held.sort();
        observed.base_files =
            environment.base_files(expect.base.files.keys().chain(&expect.base.lacks)).await?;
        observed.base_moved = environment.base_moved().await?;
        if expect.base.commits.is_some() {
            observed.base_commits = environment.base_commits().await?;
        }
        if !expect.branches.is_empty() {
            observed.branches = environment.branches().await?;
        }
        observed.pull_requests = environment.pull_requests().await?;
        Ok(observed)
    }
}

async fn why_of(
    task: &Task,
    environment: &Environment,
    store: &dyn Store,
    limits: &Limits,
) -> Result<String, StoreError> {
    let (now, state_dir) = (environment.clock.now(), environment.state_dir());
    let around = Surroundings { now, limits, loop_holder: None, state_dir: &state_dir };
    Ok(why(store, task, &around).await?.reasons.join("; "))
}

async fn runs_of(
    environment: &Environment,
    store: &dyn Store,
    task: &TaskId,
) -> Result<Vec<ObservedRun>, StoreError> {
    let query = RunQuery { scope: Scope::Task(task.clone()), limit: None };
    let mut runs = store.runs(&query).await?;
    runs.reverse();
    let observed = runs.into_iter().map(|run| ObservedRun {
        outcome: run.outcome().map(rehearsal_core::Outcome::name),
        // A run that never started has none.
        prompt: fs_err::read_to_string(environment.run_dir(&run.start.id).join("prompt.md"))
            .unwrap_or_default(),
        agent: run.start.agent,
    });
    Ok(observed.collect())
}

/// The states a task was in, from its events.
fn through(id: &TaskId, events: &[Event], flow: &Arc<Flow>) -> Vec<String> {
    let mut task: Option<Task> = None;
    let mut words: Vec<String> = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::TaskAdded { task: added } if added.id == *id => task = Some((**added).clone()),
            EventKind::TaskChanged { task: changed, input, .. } if changed == id => {
                task = task.and_then(|task| transition(&task, input, flow, event.at).ok());
            }
            _ => continue,
        }
        if let Some(word) = task.as_ref().map(|task| word_for(task, flow))
            && words.last() != Some(&word)
        {
            words.push(word);
        }
    }
    words
}

fn word_for(task: &Task, flow: &Flow) -> String {
    let waits_by_flow = matches!(flow.states.get(&task.state), Some(State::Wait { .. }));
    match &task.standing {
        Standing::Claimed(_) => "claimed".to_owned(),
        Standing::Waiting(_) if waits_by_flow => task.state.to_string(),
        Standing::Waiting(Wait { wait_for: WaitFor::Human, .. }) => "blocked".to_owned(),
        _ => task.status().to_owned(),
    }
}
