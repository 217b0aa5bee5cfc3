//! A case as a task that goes through a flow, with its own worker, store, remote and forge.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_agent::environment::Variables;
use rehearsal_core::config::{HumanDuration, Profile};
use rehearsal_core::flow::Flow;
use rehearsal_core::{Actor, AgentName, Blame, Clock, NewTask, Outcome, Run, Task, TaskId, Tokens};
use rehearsal_engine::{
    AgentSetup, Landing, Outlet, Policy, QueuePolicy, Reach, Role, Roles, SetupError, StopSwitch,
    Undisturbed, WorkEvent, WorkOptions, Worker,
};
use rehearsal_forge::{GitHub, WorktreeSettings, Worktrees};
use rehearsal_store::{Change, RunQuery, SqliteStore, Store};
use tokio_util::sync::CancellationToken;

use super::TrialContext;
use super::cassette::CassetteStage;
use super::steps::note;
use super::workspace::{Workspace, failed};
use crate::run::TrialError;
use crate::trial::{Step, Trial};

/// The worktree of the only task.
pub(crate) const FIRST_WORKTREE: &str = "rehearsal-0";
/// The branch that work is merged into.
const BASE: &str = "main";
/// A worker that waits longer waits for the system, not for the agent.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// The longest title of a task.
const LONGEST_TITLE: usize = 100;

pub(crate) struct FlowTrial<'a> {
    pub(crate) flow: Arc<Flow>,
    /// All its agents. The first one replaces the flow's first agent.
    pub(crate) cast: &'a [(AgentName, Profile)],
    pub(crate) context: &'a TrialContext,
    pub(crate) workspace: &'a Workspace,
    pub(crate) stage: Option<&'a CassetteStage>,
    pub(crate) timeout: Option<HumanDuration>,
}

/// The agents of a flow whose author is `author`, who comes first.
pub(crate) fn cast(flow: &Flow, author: &AgentName) -> Vec<AgentName> {
    let mut names = vec![author.clone()];
    for state in flow.states.keys() {
        if let Some(name) = flow.agent_for(state, Some(author)).filter(|name| !names.contains(name)) {
            names.push(name.clone());
        }
    }
    names
}

impl FlowTrial<'_> {
    /// Takes the prompt through the flow and fills in the trial.
    pub(crate) async fn play(
        self,
        prompt: &str,
        trial: &mut Trial,
        ours: &Variables,
        cancel: &CancellationToken,
    ) -> Result<(), TrialError> {
        let wrong = |error: &dyn std::fmt::Display| failed("the flow", error);
        let state_dir = self.workspace.root.join("state");
        fs_err::create_dir_all(&state_dir).map_err(|error| wrong(&error))?;
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(state_dir.as_std_path()).await.map_err(|error| wrong(&error))?);
        self.make_remote().await?;
        let task = self.add_task(prompt, &*store).await?;
        let (steps, stop) = (Arc::new(Mutex::new(Vec::new())), StopSwitch::default());
        let worker = self.worker(Arc::clone(&store), &steps, &stop, ours)?;
        let ended = {
            let mut working = Box::pin(worker.run());
            tokio::select! {
                ended = &mut working => ended,
                () = cancel.cancelled() => {
                    stop.now.cancel();
                    working.await
                }
            }
        };
        ended.map_err(|error| wrong(&error))?;
        trial.steps = std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner));
        let task = store.task(&task).await.map_err(|error| wrong(&error))?;
        let task = task.ok_or_else(|| wrong(&"its task is gone"))?;
        let runs = store.runs(&RunQuery::default()).await.map_err(|error| wrong(&error))?;
        fill_in(&task, &runs, trial);
        self.look(trial).await
    }

    /// A bare clone to push to.
    async fn make_remote(&self) -> Result<(), TrialError> {
        let origin = self.workspace.root.join("origin.git");
        for args in [
            &["checkout", "--quiet", "-B", BASE][..],
            &["config", "user.name", "Rehearsal"],
            &["config", "user.email", "rehearsal@localhost"],
            &["clone", "--quiet", "--bare", ".", origin.as_str()],
            &["remote", "add", "origin", origin.as_str()],
            &["fetch", "--quiet", "origin"],
        ] {
            self.workspace.git(args).await?;
        }
        Ok(())
    }

    async fn add_task(&self, prompt: &str, store: &dyn Store) -> Result<TaskId, TrialError> {
        let first = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("The case");
        let title = first[..first.floor_char_boundary(LONGEST_TITLE)].to_owned();
        let new = NewTask {
            session: None,
            body: if prompt.trim() == title { String::new() } else { prompt.to_owned() },
            title,
            criteria: Vec::new(),
            priority: rehearsal_core::Priority::default(),
            labels: Vec::new(),
            depends_on: Vec::new(),
            touches: Vec::new(),
            author: self.cast.first().map(|(name, _)| name.clone()),
            budget: rehearsal_core::Budget::default(),
        };
        let id = TaskId::new("case").map_err(|error| failed("the task", &error))?;
        let change = Change::AddTask { task: Box::new(new), id: id.clone(), flow: Arc::clone(&self.flow) };
        let added = store.commit(Actor::User, self.context.clock.now(), vec![change]).await;
        added.map(|_| id).map_err(|error| failed("the task", &error))
    }

    fn worker(
        &self,
        store: Arc<dyn Store>,
        steps: &Arc<Mutex<Vec<Step>>>,
        stop: &StopSwitch,
        ours: &Variables,
    ) -> Result<Worker, TrialError> {
        let wrong = |error: &dyn std::fmt::Display| failed("the flow", error);
        let (workspace, settings) = (self.workspace, &self.context.settings);
        let worktree_settings = WorktreeSettings { setup: settings.worktrees.setup.clone(), keep_warm: 0 };
        let worktrees = Worktrees::open(&workspace.repository, &workspace.worktrees(), worktree_settings);
        let forge = GitHub::new(workspace.gh.program(), &workspace.repository)
            .with_variables(workspace.gh.variables());
        let (steps, stopping, clock) = (Arc::clone(steps), stop.clone(), Arc::clone(&self.context.clock));
        let mut variables = ours.clone();
        variables.extend(workspace.own());
        Ok(Worker {
            store,
            clock: Arc::clone(&self.context.clock),
            roles: Arc::new(self.roles(ours)?),
            workspace: rehearsal_engine::Workspace::Worktrees {
                worktrees: Arc::new(worktrees.map_err(|error| wrong(&error))?),
                outlet: Outlet {
                    remote: "origin".to_owned(),
                    base: BASE.to_owned(),
                    forge: Arc::new(forge),
                    landing: Landing::Forge,
                },
            },
            state_dir: workspace.root.join("state"),
            testing: settings.testing.clone(),
            quality: settings.quality.rules(),
            variables,
            options: WorkOptions {
                policy: Policy::Queue(QueuePolicy {
                    at_once: 1,
                    agents: None,
                    session: None,
                    until_idle: true,
                    once: false,
                }),
                max_cost: None,
                lease: settings.work.lease.0,
                limits: settings.limits(),
                look_every: None,
                seed: None,
            },
            reporter: Arc::new(move |event| observe(event, &steps, &stopping, &*clock)),
            stop: stop.clone(),
            moments: Arc::new(Undisturbed),
        })
    }

    fn roles(&self, ours: &Variables) -> Result<TrialRoles, TrialError> {
        let mut cast = BTreeMap::new();
        for (name, profile) in self.cast {
            let mut profile = match self.stage {
                Some(stage) => stage.connect(profile, ours, &self.workspace.home)?,
                None => profile.clone(),
            };
            profile.env = self.workspace.for_agent(&profile.env);
            if let Some(timeout) = self.timeout {
                profile.timeout = timeout;
            }
            let template = self.context.templates.get(name).cloned();
            cast.insert(name.clone(), (profile, template));
        }
        Ok(TrialRoles {
            cast,
            reach: if self.stage.is_some() { Reach::Stage } else { Reach::ItsVendor },
            root: self.workspace.repository.clone(),
            ours: ours.clone(),
            clock: Arc::clone(&self.context.clock),
        })
    }

    /// Checks out the result in the trial's repository: what was merged, or else the task's branch.
    async fn look(&self, trial: &mut Trial) -> Result<(), TrialError> {
        let workspace = self.workspace;
        (trial.pull_request, trial.gh_calls) = workspace.on_forge()?;
        workspace.git(&["fetch", "--quiet", "--prune", "origin"]).await?;
        let is_merged = trial.pull_request.as_ref().is_some_and(|it| it.merged);
        let at = if is_merged {
            format!("origin/{BASE}")
        } else {
            let listed = workspace
                .git(&["for-each-ref", "--sort=-committerdate", "--format=%(refname)", "refs/heads"])
                .await?;
            let other = listed.lines().find(|name| *name != format!("refs/heads/{BASE}"));
            other.unwrap_or(BASE).to_owned()
        };
        workspace.git(&["checkout", "--quiet", "--force", "--detach", &at]).await?;
        let range = format!("{}..HEAD", workspace.base);
        let subjects = workspace.git(&["log", "--reverse", "--no-merges", "--format=%s", &range]).await?;
        trial.commits = subjects.lines().map(str::to_owned).collect();
        Ok(())
    }
}

/// Fills in the result of a task's runs.
fn fill_in(task: &Task, runs: &[Run], trial: &mut Trial) {
    let mut ended: Vec<_> = runs.iter().filter_map(|run| run.end.as_ref()).collect();
    ended.sort_by_key(|end| end.ended_at);
    let last = ended.last();
    trial.output = last.map(|end| end.said.clone()).unwrap_or_default();
    trial.outcome = match last.map(|end| &end.verdict.outcome) {
        Some(outcome) if outcome.blame() != Blame::Nobody => outcome.clone(),
        _ if task.is_done() => Outcome::Done,
        _ => Outcome::Failed { reason: format!("the task is {} in state `{}`", task.status(), task.state) },
    };
    // A sum is unknown if any run does not report its part.
    trial.cost_usd = ended.iter().map(|end| end.cost_usd).sum();
    trial.turns = ended.iter().map(|end| end.turns).sum();
    let tokens = ended.iter().map(|end| end.tokens).collect::<Option<Vec<Tokens>>>();
    trial.tokens = tokens.map(|all| {
        all.into_iter().fold(Tokens::default(), |mut sum, one| {
            sum += one;
            sum
        })
    });
}

/// Records the steps, and stops a worker that waits for the system.
fn observe(event: WorkEvent, steps: &Mutex<Vec<Step>>, stop: &StopSwitch, clock: &dyn Clock) {
    let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
    match event {
        WorkEvent::Claimed { agent: Some(agent), .. } => steps.push(Step::Agent { name: agent.to_string() }),
        WorkEvent::AgentActed { activity, .. } => note(activity, &mut steps),
        WorkEvent::Held { .. } => stop.after_iteration.cancel(),
        WorkEvent::Waiting { until, .. } => {
            let is_long = until.is_none_or(|until| until.since(clock.now()) > LONGEST_WAIT);
            if is_long {
                stop.after_iteration.cancel();
            }
        }
        _ => {}
    }
}

struct TrialRoles {
    /// Each with its prompt template.
    cast: BTreeMap<AgentName, (Profile, Option<String>)>,
    reach: Reach,
    root: camino::Utf8PathBuf,
    ours: Variables,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Roles for TrialRoles {
    async fn role(&self, name: &AgentName) -> Option<Result<Role, SetupError>> {
        let (profile, template) = self.cast.get(name)?;
        let (ours, clock) = (self.ours.clone(), Arc::clone(&self.clock));
        let setup = AgentSetup::new(profile, ours, clock, &self.root, self.reach).await;
        let role = |setup: AgentSetup| Role {
            agent: setup.agent(),
            profile: profile.clone(),
            template: template.clone(),
        };
        Some(setup.map(role))
    }
}
