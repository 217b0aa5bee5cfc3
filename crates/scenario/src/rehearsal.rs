//! One rehearsal, from the scenario to the verdict.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

use camino::Utf8Path;
use rehearsal_core::config::{self, DriverKind, Overrides, Settings};
use rehearsal_core::flow::Flow;
use rehearsal_core::{Actor, AgentName, NewSession, NewTask, SourceError, Timestamp};
use rehearsal_engine::{Policy, QueuePolicy, WorkOptions};
use rehearsal_forge::WorktreeSettings;
use rehearsal_store::{Change, CommitError, EventQuery, Store};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::actors::{Actors, Problems};
use crate::calls::Calls;
use crate::clock::ScenarioClock;
use crate::clock_socket::ClockSocket;
use crate::director::Director;
use crate::environment::{self, Environment, ScenarioError};
use crate::events::{Awaited, World};
use crate::expectation::Mismatch;
use crate::fake_model::{self, FakeModel};
use crate::faulty_store::{FaultyStore, OpensStore};
use crate::observed::Observed;
use crate::repository::RepositoryCache;
use crate::scenario::{Scenario, ScenarioTask};
use crate::suite::{Prepared, Suite};
use crate::timeline::{Timeline, TimelineEntry};
use crate::{invariants, read};

/// When every rehearsal begins: 2026-01-01, midnight UTC.
const START: Timestamp = Timestamp(1_767_225_600_000);

/// Plays scenarios one by one; [`Suite::play`] plays many.
pub(crate) struct Rehearsal<'a> {
    pub(crate) suite: &'a Suite,
    /// The repositories that scenarios start from.
    pub(crate) repositories: RepositoryCache,
}

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rehearsed {
    /// Its name.
    pub name: String,
    /// The seed that it was played with.
    pub seed: u64,
    /// Whether all is as expected.
    pub passed: bool,
    /// What went wrong with the rehearsal itself: agents that were asked more than they were told, or less.
    pub problems: Vec<String>,
    /// What does not hold that must always hold.
    pub broken: Vec<String>,
    /// What is not as expected.
    pub mismatches: Vec<Mismatch>,
    /// How long it took in its own time, in milliseconds.
    pub elapsed_ms: u64,
    /// What happened.
    pub timeline: Vec<TimelineEntry>,
    /// The store's log, one event a line, without the place where it was played.
    pub log: Vec<String>,
}

impl Scenario {
    /// The flow, if it is written inline.
    pub fn inline_flow(&self) -> Option<Result<Flow, SourceError>> {
        read::inline_flow(self)
    }
}

impl Rehearsal<'_> {
    /// Plays a scenario in an empty directory with an empty store. Needs its own single-threaded runtime, which makes the
    /// order of events deterministic.
    pub(crate) async fn play(
        &self,
        prepared: &Prepared,
        directory: &Utf8Path,
        store: Arc<dyn OpensStore>,
    ) -> Result<Rehearsed, ScenarioError> {
        let Prepared { scenario, flows, script, .. } = prepared;
        read::check_statuses(scenario, flows)?;
        let seed = self.suite.seed.unwrap_or(scenario.seed);
        let clock = ScenarioClock::starting_at(START, seed);
        let settings = self.settings(scenario, flows)?;
        let directory = directory.canonicalize_utf8()?;
        let worktrees = WorktreeSettings {
            setup: settings.worktrees.setup.clone(),
            keep_warm: settings.worktrees.keep_warm as usize,
        };
        let environment = Arc::new(
            Environment::build(
                &directory,
                &self.repositories,
                (&scenario.repository, self.suite.project.as_deref()),
                &scenario.forge,
                &self.suite.program,
                clock.clone(),
                worktrees,
            )
            .await?,
        );
        let timeline = Arc::new(Timeline::new(clock.clone(), &directory));
        let faulty_store = Arc::new(FaultyStore::open(store, clock).await?);
        let store = faulty_store.inner();
        let (mut problems, mut mismatches) = (Vec::new(), Vec::new());
        let refused = add_tasks(scenario, flows, &*store).await?;
        match (&refused, &scenario.expect.refused) {
            (Some(error), None) => problems.push(format!("the tasks were refused: {error}")),
            (found, Some(expected)) if !found.as_ref().is_some_and(|found| found.contains(expected)) => {
                mismatches.push(Mismatch {
                    what: "refused".to_owned(),
                    expected: format!("… {expected} …"),
                    found: found.clone().unwrap_or_else(|| "the tasks were taken".to_owned()),
                });
            }
            _ => {}
        }
        let vendor = script.clone().map(FakeModel::open).transpose()?;
        let actors = Arc::new(self.actors(scenario, settings, &environment, vendor, seed)?);
        if refused.is_none() {
            let played =
                play(scenario, &environment, &faulty_store, &timeline, &actors, (seed, self.suite.workers))
                    .await?;
            problems.extend(played);
        }
        let events = store.events(&EventQuery::default()).await?;
        let limits = actors.settings.limits();
        let observed =
            Observed::gather(&environment, &*store, &events, &timeline, (&scenario.expect, &limits)).await?;
        mismatches.extend(scenario.expect.check(&observed));
        let broken = invariants::broken(&environment, &*store, &events, &observed, &actors).await?;
        let lines = events.iter().map(|event| serde_json::to_string(event).map_err(std::io::Error::other));
        let log =
            lines.map(|line| line.map(|line| timeline.without_paths(&line))).collect::<Result<_, _>>()?;
        Ok(Rehearsed {
            name: scenario.name.value.clone(),
            seed,
            passed: problems.is_empty() && mismatches.is_empty() && broken.is_empty(),
            problems: problems.iter().map(|problem| timeline.without_paths(problem)).collect(),
            broken: broken.iter().map(|broken| timeline.without_paths(broken)).collect(),
            mismatches,
            elapsed_ms: u64::try_from(observed.elapsed.as_millis()).unwrap_or(u64::MAX),
            timeline: observed.timeline,
            log,
        })
    }

    /// The scenario's settings, on top of the project's if it starts from the project.
    fn settings(&self, scenario: &Scenario, flows: &Flows) -> Result<Settings, SourceError> {
        let is_project = scenario.repository.template.is_some();
        let mut own = scenario.config.clone();
        let by_flow = flows.all().flat_map(|flow| flow.agents.iter().map(|(name, _)| name));
        let by_task = scenario.tasks.iter().filter_map(|task| task.value.agent.as_ref());
        let played = scenario.agents.keys().chain(by_flow).chain(by_task);
        let names: Vec<AgentName> = played.cloned().collect();
        for name in names {
            let is_staged = fake_model::is_staged(&name, scenario);
            own.add_section(&["agents", name.as_str()]);
            if is_staged {
                own.set(&["agents", name.as_str(), "driver"], DriverKind::CREW.as_str());
            }
        }
        let has_command = own.get(&["testing", "command"]).is_some();
        if !has_command && !is_project && scenario.repository.files.is_empty() {
            own.set(&["testing", "command"], environment::TEST_COMMAND);
        }
        let mut layers = if is_project { self.suite.layers.clone() } else { Vec::new() };
        layers.push(own);
        config::resolve(&layers, Overrides::default(), Overrides::default())
    }

    fn actors(
        &self,
        scenario: &Scenario,
        settings: Settings,
        environment: &Environment,
        vendor: Option<FakeModel>,
        seed: u64,
    ) -> Result<Actors, ScenarioError> {
        Ok(Actors {
            clock: environment.clock.clone(),
            socket: ClockSocket::open(&environment.root, &environment.clock)?,
            calls: Calls::of(&scenario.agents),
            scripts: environment.root.join("scripts"),
            problems: Problems::default(),
            program: self.suite.program.clone(),
            variables: self.suite.variables.clone(),
            settings,
            roles: scenario.agents.clone(),
            staged: scenario
                .agents
                .keys()
                .filter(|name| fake_model::is_staged(name, scenario))
                .cloned()
                .collect(),
            vendor,
            seed,
            full_until: AtomicI64::new(0),
            processes: Mutex::default(),
        })
    }
}

/// The flows of a scenario's tasks.
pub struct Flows {
    /// The scenario's flow.
    pub usual: Arc<Flow>,
    /// The flows that tasks name, by name.
    pub others: BTreeMap<String, Arc<Flow>>,
}

impl Flows {
    fn all(&self) -> impl Iterator<Item = &Arc<Flow>> {
        std::iter::once(&self.usual).chain(self.others.values())
    }

    pub(crate) fn of(&self, task: &ScenarioTask) -> &Arc<Flow> {
        task.flow.as_ref().and_then(|name| self.others.get(name)).unwrap_or(&self.usual)
    }
}

/// Adds the tasks; returns why they were refused, if they were.
async fn add_tasks(
    scenario: &Scenario,
    flows: &Flows,
    store: &dyn Store,
) -> Result<Option<String>, ScenarioError> {
    let mut changes = Vec::new();
    let mut sessions: Vec<_> = scenario.tasks.iter().filter_map(|task| task.value.session.clone()).collect();
    sessions.sort();
    sessions.dedup();
    for name in sessions {
        let (description, context, criteria) = Default::default();
        changes.push(Change::AddSession(NewSession { name, description, context, criteria }));
    }
    let ids = read::task_ids(scenario)?;
    let tasks: Vec<_> = ids.into_iter().zip(scenario.tasks.iter().map(|task| &task.value)).collect();
    for of_a_flow in tasks.chunk_by(|(_, a), (_, b)| a.flow == b.flow) {
        let Some((_, first)) = of_a_flow.first() else { continue };
        let tasks = of_a_flow.iter().map(|(id, task)| (id.clone(), new_task(task))).collect();
        changes.push(Change::AddTasks { tasks, flow: Arc::clone(flows.of(first)) });
    }
    match store.commit(Actor::User, START, changes).await {
        Ok(_) => Ok(None),
        Err(CommitError::Store(error)) => Err(error.into()),
        Err(error) => Ok(Some(error.to_string())),
    }
}

fn new_task(task: &ScenarioTask) -> NewTask {
    let task = task.clone();
    NewTask {
        session: task.session,
        title: task.title,
        body: task.body,
        criteria: task.criteria,
        priority: task.priority,
        labels: Vec::new(),
        depends_on: task.depends_on,
        touches: task.touches,
        author: task.agent,
        budget: task.budget,
    }
}

/// Runs the workers; returns what went wrong with the rehearsal itself.
async fn play(
    scenario: &Scenario,
    environment: &Arc<Environment>,
    store: &Arc<FaultyStore>,
    timeline: &Arc<Timeline>,
    actors: &Arc<Actors>,
    (seed, workers): (u64, Option<u32>),
) -> Result<Vec<String>, ScenarioError> {
    let (sender, orders) = mpsc::unbounded_channel();
    let world = Arc::new(World {
        environment: Arc::clone(environment),
        store: Arc::clone(store),
        timeline: Arc::clone(timeline),
        actors: Arc::clone(actors),
        orders: sender,
        awaited: Mutex::new(Awaited::of(&scenario.meanwhile)),
        scheduled: Mutex::new(JoinSet::new()),
    });
    for act in &scenario.meanwhile {
        if let Some(after) = act.value.at {
            world.schedule(after.0, act.value.what.clone());
        }
    }
    let options = WorkOptions {
        policy: Policy::Queue(QueuePolicy {
            at_once: 1,
            agents: None,
            session: None,
            until_idle: false,
            once: false,
        }),
        lease: actors.settings.work.lease.0,
        limits: actors.settings.limits(),
        max_cost: None,
        look_every: None,
        seed: None,
    };
    let mut director = Director {
        world: Arc::clone(&world),
        actors: Arc::clone(actors),
        store: Arc::clone(store),
        timeline: Arc::clone(timeline),
        orders,
        options,
        seed,
        until: START.plus(scenario.until.0),
        workers: JoinSet::new(),
        cast: BTreeMap::new(),
    };
    director.play(workers.unwrap_or(scenario.workers)).await?;
    let mut problems = actors.problems.all();
    if problems.is_empty() {
        problems.extend(world.missed());
        problems.extend(actors.calls.unused());
        problems.extend(actors.vendor.iter().flat_map(FakeModel::problems));
    }
    Ok(problems)
}
