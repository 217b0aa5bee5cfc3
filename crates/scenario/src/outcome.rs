//! What came of a rehearsal, as far as expectations ask.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::flow::{Flow, State};
use rehearsal_core::guard::Limits;
use rehearsal_core::transition::transition;
use rehearsal_core::{AgentName, Event, EventKind, Lane, OutcomeName, Standing, Task, TaskId, Wait, WaitFor};
use rehearsal_store::{RunQuery, Scope, Store, StoreError, TaskQuery};

use crate::expectation::Expect;
use crate::stage::{Stage, StageError};
use crate::timeline::{Happening, Timeline};
use rehearsal_engine::why::{Surroundings, why};

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) tasks: BTreeMap<TaskId, TaskCame>,
    /// The agents, in the order in which their runs began.
    pub(crate) trajectory: Vec<AgentName>,
    pub(crate) timeline: Vec<Happening>,
    pub(crate) warnings: Vec<String>,
    /// Those that expectations ask for.
    pub(crate) base_files: BTreeMap<Utf8PathBuf, String>,
    /// Whether the base is not where it was in the beginning.
    pub(crate) base_moved: bool,
    /// How many it has more, if expectations ask.
    pub(crate) base_commits: usize,
    /// Those of the remote, if expectations ask for any.
    pub(crate) branches: BTreeSet<String>,
    /// The head of each.
    pub(crate) pull_requests: Vec<String>,
    pub(crate) gh: Vec<String>,
    pub(crate) held: Vec<Lane>,
    pub(crate) elapsed: Duration,
}

/// What came of a task.
#[derive(Debug)]
pub(crate) struct TaskCame {
    pub(crate) task: Task,
    pub(crate) through: Vec<String>,
    pub(crate) runs: Vec<RunCame>,
    /// Why it does not move, as people are told.
    pub(crate) why: String,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct RunCame {
    pub(crate) agent: AgentName,
    pub(crate) outcome: Option<OutcomeName>,
    pub(crate) prompt: String,
}

impl TaskCame {
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

impl Came {
    pub(crate) async fn gather(
        stage: &Stage,
        store: &dyn Store,
        events: &[Event],
        timeline: &Timeline,
        (expect, limits): (&Expect, &Limits),
    ) -> Result<Self, StageError> {
        let mut came = Self {
            timeline: timeline.told(),
            warnings: timeline.warnings(),
            elapsed: timeline.elapsed(),
            gh: stage.gh_calls()?,
            ..Self::default()
        };
        for task in store.tasks(&TaskQuery::default()).await? {
            let flow = store.flow(&task.flow_version).await?;
            let through = through(&task.id, events, &flow);
            let runs = runs_of(stage, store, &task.id).await?;
            let why = why_of(&task, stage, store, limits).await?;
            came.tasks.insert(task.id.clone(), TaskCame { task, through, runs, why });
        }
        let runs = store.runs(&RunQuery { scope: Scope::All, limit: None }).await?;
        came.trajectory = runs.into_iter().rev().map(|run| run.start.agent).collect();
        let now = stage.clock.now();
        let situation = store.situation(&Limits::default(), now).await?;
        came.held = situation
            .holds
            .into_iter()
            .filter(|(_, hold)| hold.holds_at(now))
            .map(|(lane, _)| lane)
            .collect();
        came.held.sort();
        came.base_files = stage.base_files(expect.base.files.keys().chain(&expect.base.lacks)).await?;
        came.base_moved = stage.base_moved().await?;
        if expect.base.commits.is_some() {
            came.base_commits = stage.base_commits().await?;
        }
        if !expect.branches.is_empty() {
            came.branches = stage.branches().await?;
        }
        came.pull_requests = stage.pull_requests().await?;
        Ok(came)
    }
}

async fn why_of(
    task: &Task,
    stage: &Stage,
    store: &dyn Store,
    limits: &Limits,
) -> Result<String, StoreError> {
    let (now, state_dir) = (stage.clock.now(), stage.state_dir());
    let around = Surroundings { now, limits, loop_holder: None, state_dir: &state_dir };
    Ok(why(store, task, &around).await?.reasons.join("; "))
}

async fn runs_of(stage: &Stage, store: &dyn Store, task: &TaskId) -> Result<Vec<RunCame>, StoreError> {
    let query = RunQuery { scope: Scope::Task(task.clone()), limit: None };
    let mut runs = store.runs(&query).await?;
    runs.reverse();
    let came = runs.into_iter().map(|run| RunCame {
        outcome: run.outcome().map(rehearsal_core::Outcome::name),
        // A run that never began has none.
        prompt: fs_err::read_to_string(stage.run_dir(&run.start.id).join("prompt.md")).unwrap_or_default(),
        agent: run.start.agent,
    });
    Ok(came.collect())
}

/// Where a task was, one after another, as its events tell.
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
