//! A scenario as people write it: a repository, tasks, scripted agents, what happens meanwhile, and what is to come of it.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use rehearsal_agent::mock::Action;
use rehearsal_core::config::{DriverKind, HumanDuration, Layer, Origin};
use rehearsal_core::yaml::Spanned;
use rehearsal_core::{AgentName, Budget, Lane, Priority, SessionName, TaskEdit, TaskId};
use rehearsal_forge::mock_gh::{Fault, MockChecks};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::calls::RoleScript;
use crate::expectation::Expect;
use rehearsal_engine::Moment;

/// One rehearsal.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, unlike that of any other.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name: Spanned<String>,
    /// What it shows.
    #[serde(default)]
    pub about: String,
    /// What is drawn follows from it: ids, and who is first where nothing else decides.
    #[serde(default)]
    pub seed: u64,
    /// The flow of the tasks: the name of one, or a whole one as a text.
    #[serde(default = "default_flow")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub flow: Spanned<String>,
    /// What is there before.
    #[serde(default)]
    pub repository: Repository,
    /// Settings, as in `config.yaml`.
    #[serde(default, rename = "config")]
    #[cfg_attr(feature = "schema", schemars(with = "rehearsal_core::config::Settings"))]
    _config: IgnoredAny,
    /// The same as a layer of settings.
    #[serde(skip, default = "no_settings")]
    pub config: Layer,
    /// The tasks.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ScenarioTask>"))]
    pub tasks: Vec<Spanned<ScenarioTask>>,
    /// What each agent does, call by call.
    #[serde(default)]
    pub agents: BTreeMap<AgentName, RoleScript>,
    /// What a model answers, for agents that are `as: crew` and have no calls: a script as `rehearsal stage` plays it, or the name of
    /// a file beside this one that has it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub stage: Option<Spanned<String>>,
    /// Where pull requests live.
    #[serde(default)]
    pub forge: ForgeChoice,
    /// How many workers there are.
    #[serde(default = "one")]
    pub workers: u32,
    /// The longest it may take, in its own time.
    #[serde(default = "a_week")]
    pub until: HumanDuration,
    /// What happens meanwhile: faults, and what people do.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Act>"))]
    pub meanwhile: Vec<Spanned<Act>>,
    /// What is to come of it.
    #[serde(default)]
    pub expect: Expect,
}

fn no_settings() -> Layer {
    Layer::new(Origin::file("the scenario"))
}

fn default_flow() -> Spanned<String> {
    Spanned { value: "pull-request".to_owned(), place: None }
}

fn one() -> u32 {
    1
}

fn a_week() -> HumanDuration {
    HumanDuration(std::time::Duration::from_secs(7 * 24 * 3600))
}

/// What is there before: files, or the project itself. Without either, a repository with one passing test.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Repository {
    /// Its files.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub files: BTreeMap<Utf8PathBuf, String>,
    /// `.`: the project itself, as it is committed.
    pub template: Option<String>,
    /// The commit of the project to begin with; its newest otherwise.
    pub at: Option<String>,
}

/// A task.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioTask {
    /// Its id; `t1`, `t2`, … otherwise.
    pub id: Option<TaskId>,
    /// One line.
    pub title: String,
    /// The whole description.
    pub body: String,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// Tasks that must be done before.
    pub depends_on: Vec<TaskId>,
    /// Files that it will change, as patterns.
    pub touches: Vec<String>,
    /// What it may cost.
    pub budget: Budget,
    /// The session it goes to.
    pub session: Option<SessionName>,
    /// Who does it, instead of the agent that its flow begins with.
    pub agent: Option<AgentName>,
    /// Its flow, by name, if it is not the one of the others.
    pub flow: Option<String>,
}

/// Where pull requests live.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ForgeChoice {
    /// A bare repository.
    #[default]
    Local,
    /// GitHub, played by the stand-in for `gh`.
    Gh(Gh),
}

/// How the stand-in for `gh` answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Gh {
    /// The number of the first pull request.
    pub pr_number: Option<u64>,
    /// What it says about every merge: `CLEAN`, `CONFLICTING`, …
    pub merge_status: Option<String>,
    /// Every merge fails.
    pub merge_fail: bool,
    /// No pull request can be made.
    pub create_fail: bool,
    /// There is one for the branch already.
    pub pr_exists: bool,
    /// What the checks say, one answer after another; the last one stays.
    pub checks: Vec<MockChecks>,
    /// What goes wrong, each in its turn.
    pub faults: Vec<Fault>,
}

/// Something that happens meanwhile.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// So long after the beginning.
    #[serde(default)]
    pub at: Option<HumanDuration>,
    /// At a moment in the work on a task.
    #[serde(default)]
    pub when: Option<When>,
    /// What.
    #[serde(rename = "do")]
    pub what: Deed,
}

/// A moment in the work on a task.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Which kind of moment.
    pub moment: Moment,
    /// Of which task; any otherwise.
    #[serde(default)]
    pub task: Option<TaskId>,
    /// Of which step; any otherwise.
    #[serde(default)]
    pub step: Option<String>,
    /// The how manieth of these moments.
    #[serde(default = "one")]
    pub nth: u32,
}

/// What can happen.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Deed {
    /// A worker is killed: the one at the moment, or the one that is named.
    KillWorker(Kill),
    /// A worker stands still, while its agents go on.
    PauseWorker(Pause),
    /// The machine sleeps.
    SleepHost(HumanDuration),
    /// Workers are told to stop: they finish what is under way.
    Drain(HumanDuration),
    /// The database restarts: so many who ask find nobody, and then it is over new connections.
    RestartStore(u32),
    /// There is no room on a disk.
    DiskFull(DiskFull),
    /// The remote is away, for so long.
    RemoteGone(HumanDuration),
    /// Someone commits to a branch of the remote.
    Commit(ForeignCommit),
    /// A person cancels a task.
    Cancel(TaskId),
    /// A person approves a task.
    Approve(TaskId),
    /// A person rejects a task.
    Reject(Rejection),
    /// A person begins a task anew.
    Retry(TaskId),
    /// A person lets a blocked task go on.
    Unblock(TaskId),
    /// A person changes the words of a task.
    Edit(Edit),
    /// A person holds a lane: `all`, `agent:NAME`, `session:NAME`.
    Pause(Lane),
    /// A person lets a lane go on.
    Resume(Lane),
}

/// How a worker is killed.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Kill {
    /// Which one, counted from 1.
    pub worker: Option<u32>,
    /// After how long another one is started in its place; at once otherwise.
    pub restart: Option<HumanDuration>,
    /// Nobody comes in its place.
    pub for_good: bool,
}

/// How a worker is paused.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Which one, counted from 1.
    #[serde(default)]
    pub worker: Option<u32>,
    /// For how long.
    #[serde(rename = "for")]
    pub span: HumanDuration,
}

/// Which disk has no room, and for how long.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DiskFull {
    /// Whose.
    pub of: DiskOf,
    /// For how long.
    #[serde(rename = "for")]
    pub span: HumanDuration,
}

/// Whose disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiskOf {
    /// The agents': what they say cannot be kept.
    Agents,
    /// The database's: nothing can be written to it. Workers end, and are started again when there is room.
    Store,
}

impl DiskOf {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Store => "store",
        }
    }
}

/// A commit that is none of the agents'.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ForeignCommit {
    /// The branch; the base otherwise.
    #[serde(default)]
    pub branch: Option<String>,
    /// Its message.
    #[serde(default = "someone_elses")]
    pub message: String,
    /// What it writes.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub files: BTreeMap<Utf8PathBuf, String>,
}

fn someone_elses() -> String {
    "Someone else's work".to_owned()
}

/// A person's no.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// Which task.
    pub task: TaskId,
    /// What has to change.
    pub comment: String,
}

/// A person's other words.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Which task.
    pub task: TaskId,
    /// How.
    pub to: TaskEdit,
}

/// One call of an agent.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CallScript {
    /// Only for this task.
    pub task: Option<TaskId>,
    /// `MOCK_OUTCOME`.
    pub outcome: Option<String>,
    /// `MOCK_DECISION`.
    pub decision: Option<String>,
    /// `MOCK_COMMENT`.
    pub comment: Option<String>,
    /// `MOCK_REASON`.
    pub reason: Option<String>,
    /// `MOCK_COMMITS`.
    pub commits: Option<u32>,
    /// `MOCK_CRASH`.
    pub crash: bool,
    /// `MOCK_SLEEP`, in seconds.
    pub sleep: Option<u64>,
    /// All that a script of the stand-in can do, instead of the above.
    pub script: Option<Vec<Action>>,
}

impl CallScript {
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        let mut set = |name: &str, value: Option<String>| {
            variables.extend(value.map(|value| (format!("MOCK_{name}"), value)));
        };
        set("OUTCOME", self.outcome.clone());
        set("DECISION", self.decision.clone());
        set("COMMENT", self.comment.clone());
        set("REASON", self.reason.clone());
        // Reviewers commit nothing.
        let commits = self.commits.or(self.decision.as_ref().map(|_| 0));
        set("COMMITS", commits.map(|count| count.to_string()));
        set("CRASH", self.crash.then(|| "true".to_owned()));
        set("SLEEP", self.sleep.map(|seconds| seconds.to_string()));
        variables
    }

    pub(crate) fn has_shorthand(&self) -> bool {
        !self.variables().is_empty()
    }
}

/// Which agent a role plays, and how it is found.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RoleFile {
    /// The real agent whose output it speaks.
    #[serde(rename = "as")]
    pub plays: Option<DriverKind>,
    /// A program to run instead of the stand-in.
    pub program: Option<String>,
    /// What it does, call by call.
    pub calls: Vec<CallScript>,
}
