//! From layers to settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{
    AgentConfig, CheckConfig, CheckSettings, ConfigFile, DriverKind, ForgeConfig, HumanDuration, LoopConfig,
    PermissionMode, QualityConfig, QualitySettings, SandboxSettings, TestingConfig, TestingSettings,
    WorkConfig, WorkSettings, WorktreesConfig,
};
use crate::{AgentName, Budget, SourceError};

/// One source of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Where it comes from.
    pub origin: Origin,
    /// What it says.
    pub file: ConfigFile,
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// The user's own file.
    User(String),
    /// The project's file.
    Project(String),
    /// A `REHEARSAL_*` variable.
    Environment,
    /// The command line.
    Flag,
}

impl Origin {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::User(path) | Self::Project(path) => Some(path),
            Self::Default | Self::Environment | Self::Flag => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(path) | Self::Project(path) => f.write_str(path),
            Self::Environment => f.write_str("environment"),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Who set it.
    pub origin: Origin,
}

/// What one run, or one environment, says over the files. Agent settings apply to the agent that is used.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "each field is named after the setting that it overrides")]
pub struct Overrides {
    pub agent: Option<AgentName>,
    pub model: Option<String>,
    pub permission: Option<PermissionMode>,
    pub timeout: Option<HumanDuration>,
    pub idle_timeout: Option<HumanDuration>,
    pub iterations: Option<u32>,
    pub max_failures: Option<u32>,
    pub max_cost: Option<f64>,
    pub max_wait: Option<HumanDuration>,
    pub accept_complete: Option<bool>,
    pub base_branch: Option<String>,
    pub test_command: Option<String>,
    pub store: Option<String>,
    pub workers: Option<u32>,
}

impl Overrides {
    fn into_layer(self, origin: Origin, agent: &AgentName) -> Layer {
        let for_agent = AgentConfig {
            model: self.model,
            permission: self.permission,
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            ..AgentConfig::default()
        };
        let agents = if for_agent == AgentConfig::default() {
            BTreeMap::new()
        } else {
            BTreeMap::from([(agent.clone(), for_agent)])
        };
        let file = ConfigFile {
            schema: None,
            base_branch: self.base_branch,
            agent: self.agent,
            agents,
            loop_: LoopConfig {
                iterations: self.iterations,
                max_failures: self.max_failures,
                max_cost: self.max_cost,
                max_wait: self.max_wait,
                accept_complete: self.accept_complete,
            },
            testing: TestingConfig { command: self.test_command, ..TestingConfig::default() },
            check: CheckConfig::default(),
            quality: QualityConfig::default(),
            store: self.store,
            flow: None,
            work: WorkConfig { workers: self.workers, ..WorkConfig::default() },
            worktrees: WorktreesConfig::default(),
            forge: ForgeConfig::default(),
        };
        Layer { origin, file }
    }
}

/// All settings, each with its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The branch that work starts from; none: the current one.
    pub base_branch: Setting<Option<String>>,
    /// The agent that `run` uses.
    pub agent: Setting<AgentName>,
    /// The agents of the configuration, and the one that `run` uses.
    pub agents: BTreeMap<AgentName, Profile>,
    /// The agents that need no configuration, apart from those that have one.
    pub built_in: BTreeMap<AgentName, Profile>,
    /// At most this many iterations.
    pub iterations: Setting<u32>,
    /// Stop after this many failed runs in a row.
    pub max_failures: Setting<u32>,
    /// Stop at this cost in dollars.
    pub max_cost: Setting<Option<f64>>,
    /// The longest wait.
    pub max_wait: Setting<HumanDuration>,
    /// Take the agent's word.
    pub accept_complete: Setting<bool>,
    /// How the repository's tests run.
    pub testing: TestingSettings,
    /// How the repository is built and linted.
    pub check: CheckSettings,
    /// Which changes need a review.
    pub quality: QualitySettings,
    /// How workers work.
    pub work: WorkSettings,
}

/// An agent, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// What kind of agent it is.
    pub driver: Setting<DriverKind>,
    /// Its role in the crew; none for other kinds.
    pub role: Setting<Option<String>>,
    /// The program, if not the usual one.
    pub program: Setting<Option<String>>,
    /// Arguments before the driver's own.
    pub args: Setting<Vec<String>>,
    /// The model.
    pub model: Setting<Option<String>>,
    /// What it may do.
    pub permission: Setting<PermissionMode>,
    /// Text for its system prompt.
    pub system_prompt: Setting<Option<String>>,
    /// The longest a run may take.
    pub timeout: Setting<HumanDuration>,
    /// The longest it may be silent.
    pub idle_timeout: Setting<HumanDuration>,
    /// What one run may use.
    pub budget: Setting<Budget>,
    /// Variables it may see.
    pub pass_env: Setting<Vec<String>>,
    /// Variables set for it.
    pub env: Setting<BTreeMap<String, String>>,
    /// Whether it works at all.
    pub enabled: Setting<bool>,
    /// At most so many of its runs at once.
    pub at_once: Setting<Option<u32>>,
    /// The least time between the starts of two of its runs.
    pub interval: Setting<HumanDuration>,
    /// How it is confined; none: not at all.
    pub sandbox: Option<SandboxSettings>,
}

/// The agent there is without any configuration.
const DEFAULT_AGENT: &str = "implementer";
/// The agents that the shipped flows ask for a decision. Without a configuration of their own they work like the agent that
/// `run` uses.
const REVIEWERS: [&str; 2] = ["gatekeeper", "reviewer"];
/// The roles that are built in: agents that are always there, with nothing but a model's address.
const CREW: [&str; 8] = ["search", "research", "code", "review", "test", "qa", "docs", "init"];
const DEFAULT_ITERATIONS: u32 = 10;
const DEFAULT_MAX_FAILURES: u32 = 3;
/// Long enough for a five-hour quota window to pass in a night.
const DEFAULT_MAX_WAIT: HumanDuration = HumanDuration(std::time::Duration::from_secs(6 * 3600));
/// A task that takes an agent more than an hour is too big for one run.
const DEFAULT_TIMEOUT: HumanDuration = HumanDuration(std::time::Duration::from_secs(3600));
/// Agents are silent while a long test suite runs inside a tool call.
const DEFAULT_IDLE_TIMEOUT: HumanDuration = HumanDuration(std::time::Duration::from_secs(15 * 60));

/// Puts the layers on top of each other. `files` in rising strength, then the environment, then the flags.
pub fn resolve(
    mut files: Vec<Layer>,
    environment: Overrides,
    flags: Overrides,
) -> Result<Settings, SourceError> {
    let agent = flags
        .agent
        .clone()
        .or_else(|| environment.agent.clone())
        .or_else(|| files.iter().rev().find_map(|layer| layer.file.agent.clone()))
        .map_or_else(|| AgentName::new(DEFAULT_AGENT), Ok)
        .map_err(|error| SourceError::at(None, error.to_string()))?;
    files.push(environment.into_layer(Origin::Environment, &agent));
    files.push(flags.into_layer(Origin::Flag, &agent));
    let layers = Layers(files);
    let agents = layers.agents(&agent)?;
    let built_in = layers.built_in(&agents, &agent);
    Ok(Settings {
        base_branch: layers.optional(|file| file.base_branch.clone()),
        agent: layers.pick(|file| file.agent.clone(), agent),
        agents,
        built_in,
        iterations: layers.pick(|file| file.loop_.iterations, DEFAULT_ITERATIONS),
        max_failures: layers.pick(|file| file.loop_.max_failures, DEFAULT_MAX_FAILURES),
        max_cost: layers.optional(|file| file.loop_.max_cost),
        max_wait: layers.pick(|file| file.loop_.max_wait, DEFAULT_MAX_WAIT),
        accept_complete: layers.pick(|file| file.loop_.accept_complete, false),
        testing: TestingSettings::of(&layers),
        check: CheckSettings::of(&layers),
        quality: QualitySettings::of(&layers),
        work: WorkSettings::of(&layers),
    })
}

pub(super) struct Layers(Vec<Layer>);

impl Layers {
    pub(super) fn pick<T>(&self, get: impl Fn(&ConfigFile) -> Option<T>, default: T) -> Setting<T> {
        let found =
            self.0.iter().rev().find_map(|layer| {
                get(&layer.file).map(|value| Setting { value, origin: layer.origin.clone() })
            });
        found.unwrap_or(Setting { value: default, origin: Origin::Default })
    }

    pub(super) fn optional<T>(&self, get: impl Fn(&ConfigFile) -> Option<T>) -> Setting<Option<T>> {
        self.pick(|file| get(file).map(Some), None)
    }

    fn agents(&self, used: &AgentName) -> Result<BTreeMap<AgentName, Profile>, SourceError> {
        let mut names: BTreeSet<&AgentName> =
            self.0.iter().flat_map(|layer| layer.file.agents.keys()).collect();
        let written_in_files = self
            .0
            .iter()
            .filter(|layer| !matches!(layer.origin, Origin::Environment | Origin::Flag))
            .flat_map(|layer| layer.file.agents.keys());
        let known: BTreeSet<&AgentName> = written_in_files.collect();
        // Without any agent in any file there is the default one; otherwise the one that is used must exist.
        if !known.contains(used) {
            if used.as_str() == DEFAULT_AGENT || CREW.contains(&used.as_str()) {
                names.insert(used);
            } else {
                return Err(unknown_agent(used, &known));
            }
        }
        let is_of_the_crew = |name: &AgentName| !known.contains(name) && CREW.contains(&name.as_str());
        let usual = |name| if is_of_the_crew(name) { DriverKind::CREW } else { DriverKind::CLAUDE };
        let profiles: BTreeMap<AgentName, Profile> =
            names.into_iter().map(|name| (name.clone(), self.profile(name, usual(name)))).collect();
        profiles.iter().try_for_each(|(name, profile)| profile.check_role(name))?;
        Ok(profiles)
    }

    fn built_in(
        &self,
        agents: &BTreeMap<AgentName, Profile>,
        used: &AgentName,
    ) -> BTreeMap<AgentName, Profile> {
        let names = CREW.into_iter().chain(REVIEWERS).filter_map(|name| AgentName::new(name).ok());
        let unwritten = names.filter(|name| !agents.contains_key(name));
        let profile = |name: &AgentName| match agents.get(used) {
            Some(used) if REVIEWERS.contains(&name.as_str()) => used.for_another(name),
            _ => self.profile(name, DriverKind::CREW),
        };
        unwritten.map(|name| (name.clone(), profile(&name))).collect()
    }

    fn profile(&self, name: &AgentName, usual: DriverKind) -> Profile {
        macro_rules! of_agent {
            ($field:ident) => {
                |file: &ConfigFile| file.agents.get(name).and_then(|agent| agent.$field.clone())
            };
        }
        let driver = self.pick(of_agent!(driver), usual);
        let role = match driver.value {
            DriverKind::CREW => self.pick(|file| of_agent!(role)(file).map(Some), Some(role_of(name))),
            _ => self.optional(of_agent!(role)),
        };
        Profile {
            driver,
            role,
            program: self.optional(of_agent!(program)),
            args: self.pick(of_agent!(args), Vec::new()),
            model: self.optional(of_agent!(model)),
            permission: self.pick(of_agent!(permission), PermissionMode::AcceptEdits),
            system_prompt: self.optional(of_agent!(system_prompt)),
            timeout: self.pick(of_agent!(timeout), DEFAULT_TIMEOUT),
            idle_timeout: self.pick(of_agent!(idle_timeout), DEFAULT_IDLE_TIMEOUT),
            budget: self.pick(of_agent!(budget), Budget::default()),
            pass_env: self.pick(of_agent!(pass_env), Vec::new()),
            env: self.pick(of_agent!(env), BTreeMap::new()),
            enabled: self.pick(of_agent!(enabled), true),
            at_once: self.optional(of_agent!(at_once)),
            interval: self.pick(of_agent!(interval), HumanDuration(std::time::Duration::ZERO)),
            sandbox: SandboxSettings::of_agent(self, |file| file.agents.get(name)?.sandbox.as_ref()),
        }
    }
}

fn unknown_agent(used: &AgentName, known: &BTreeSet<&AgentName>) -> SourceError {
    let error = SourceError::at(None, format!("unknown agent `{used}`"));
    let names: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
    match crate::source::nearest(used.as_str(), names.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None if names.is_empty() => error.hint(format!(
            "no agents are configured; without a configuration there are `{DEFAULT_AGENT}` and the roles of the crew: {}",
            CREW.join(", ")
        )),
        None => error.hint(format!("known agents: {}", names.join(", "))),
    }
}

impl Settings {
    /// The profile of the agent that `run` uses.
    pub fn profile(&self) -> Option<&Profile> {
        self.agents.get(&self.agent.value)
    }

    /// The profile of an agent that a flow names: one of the configuration, or one that needs none.
    pub fn profile_of(&self, name: &AgentName) -> Option<&Profile> {
        self.agents.get(name).or_else(|| self.built_in.get(name))
    }

    /// Every agent that a flow may name.
    pub fn agent_names(&self) -> impl Iterator<Item = AgentName> + Clone + '_ {
        self.agents.keys().chain(self.built_in.keys()).cloned()
    }

    /// Every setting as a line: key, value, origin.
    pub fn lines(&self) -> Vec<(String, String, Origin)> {
        let mut lines = Vec::new();
        let mut put = |key: String, value: String, origin: &Origin| lines.push((key, value, origin.clone()));
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        put("base_branch".into(), text(&self.base_branch.value), &self.base_branch.origin);
        put("agent".into(), self.agent.value.to_string(), &self.agent.origin);
        put("loop.iterations".into(), self.iterations.value.to_string(), &self.iterations.origin);
        put("loop.max_failures".into(), self.max_failures.value.to_string(), &self.max_failures.origin);
        let cost = self.max_cost.value.map_or_else(|| "-".into(), |cost| format!("{cost}"));
        put("loop.max_cost".into(), cost, &self.max_cost.origin);
        put("loop.max_wait".into(), self.max_wait.value.to_string(), &self.max_wait.origin);
        put(
            "loop.accept_complete".into(),
            self.accept_complete.value.to_string(),
            &self.accept_complete.origin,
        );
        for (key, value, origin) in self.work.lines() {
            put(key.to_owned(), value, origin);
        }
        for (key, value, origin) in self.testing.lines() {
            put(format!("testing.{key}"), value, origin);
        }
        for (key, value, origin) in self.check.lines() {
            put(format!("check.{key}"), value, origin);
        }
        for (key, value, origin) in self.quality.lines() {
            put(format!("quality.{key}"), value, origin);
        }
        for (name, profile) in &self.agents {
            for (key, value, origin) in profile.lines() {
                put(format!("agents.{name}.{key}"), value, origin);
            }
        }
        lines
    }
}

/// The role that an agent of the crew has by its name.
fn role_of(name: &AgentName) -> String {
    match name.as_str() {
        DEFAULT_AGENT => "code",
        "reviewer" | "gatekeeper" => "review",
        own => own,
    }
    .to_owned()
}

impl Profile {
    /// The same for an agent of another name. Of the crew, each has its own role.
    fn for_another(&self, name: &AgentName) -> Self {
        let mut other = self.clone();
        if self.driver.value == DriverKind::CREW {
            other.role = Setting { value: Some(role_of(name)), origin: Origin::Default };
        }
        other
    }

    fn check_role(&self, name: &AgentName) -> Result<(), SourceError> {
        match (self.driver.value, &self.role.value) {
            (DriverKind::CREW, _) | (_, None) => Ok(()),
            (driver, Some(role)) => {
                let message =
                    format!("agent `{name}` has the role `{role}`, and its driver `{driver}` knows no roles");
                Err(SourceError::at(None, message).hint("roles are for `driver: crew`"))
            }
        }
    }

    fn lines(&self) -> Vec<(String, String, &Origin)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let list = |values: &[String]| {
            if values.is_empty() { "-".into() } else { values.join(" ") }
        };
        let env: Vec<String> = self.env.value.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let budget = &self.budget.value;
        let limits: Vec<String> = [
            budget.usd.map(|usd| format!("{usd} usd")),
            budget.tokens.map(|tokens| format!("{tokens} tokens")),
            budget.turns.map(|turns| format!("{turns} turns")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut lines: Vec<_> = [
            ("driver", self.driver.value.to_string(), &self.driver.origin),
            ("role", text(&self.role.value), &self.role.origin),
            ("program", text(&self.program.value), &self.program.origin),
            ("args", list(&self.args.value), &self.args.origin),
            ("model", text(&self.model.value), &self.model.origin),
            ("permission", self.permission.value.to_string(), &self.permission.origin),
            ("system_prompt", text(&self.system_prompt.value), &self.system_prompt.origin),
            ("timeout", self.timeout.value.to_string(), &self.timeout.origin),
            ("idle_timeout", self.idle_timeout.value.to_string(), &self.idle_timeout.origin),
            ("budget", list(&limits), &self.budget.origin),
            ("pass_env", list(&self.pass_env.value), &self.pass_env.origin),
            ("env", list(&env), &self.env.origin),
            ("enabled", self.enabled.value.to_string(), &self.enabled.origin),
            (
                "at_once",
                self.at_once.value.map_or_else(|| "-".into(), |count| count.to_string()),
                &self.at_once.origin,
            ),
            ("interval", self.interval.value.to_string(), &self.interval.origin),
        ]
        .into_iter()
        .map(|(key, value, origin)| (key.to_owned(), value, origin))
        .collect();
        match &self.sandbox {
            Some(sandbox) => lines.extend(sandbox.lines()),
            None => lines.push(("sandbox".to_owned(), "-".to_owned(), &Origin::Default)),
        }
        lines
    }
}
