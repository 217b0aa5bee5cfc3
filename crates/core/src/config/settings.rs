//! All settings. Those of an agent, of tests and of sandboxes have files of their own.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::definition::settings;
use super::resolve::DEFAULT_AGENT;
use super::{HumanDuration, Origins, Profile, TestingSettings};
use crate::AgentName;
use crate::guard::{AgentLimits, Limits};
use crate::quality::{Rules, check_pattern, risky_paths, risky_words};

settings! {
    /// `.rehearsal/config.yaml`. Everything is optional.
    Settings {
        /// Where editors find the schema of this file.
        #[serde(rename = "$schema", skip_serializing)]
        schema: Option<String> = None;
        /// The branch that work starts from; without it, the current one.
        base_branch: Option<String> = None;
        /// The agent that `run` uses.
        agent: AgentName = default_agent();
        /// How the loop runs.
        #[serde(rename = "loop")]
        loop_: LoopSettings = LoopSettings::default();
        /// Where tasks live: `postgres://…` for many machines; without it, a file in the repository.
        store: Option<String> = None;
        /// The flow of new tasks.
        flow: String = "loop".to_owned();
        /// How workers work.
        work: WorkSettings = WorkSettings::default();
        /// Where worktrees are, and how they are made ready.
        worktrees: WorktreesSettings = WorktreesSettings::default();
        /// Where pull requests live.
        forge: ForgeSettings = ForgeSettings::default();
        /// How the repository's tests run.
        testing: TestingSettings = TestingSettings::default();
        /// How the repository is built and linted.
        check: CheckSettings = CheckSettings::default();
        /// Which changes need a review, in flows with the step `assess`.
        quality: QualitySettings = QualitySettings::default();
        /// The agents, by name.
        agents: BTreeMap<AgentName, Profile> = BTreeMap::new();
        /// The agents that need no configuration, apart from those that have one.
        #[serde(skip)]
        built_in: BTreeMap<AgentName, Profile> = BTreeMap::new();
        /// Which layer set what.
        #[serde(skip)]
        origins: Origins = Origins::default();
    }
}

settings! {
    /// How the loop runs.
    LoopSettings {
        /// At most this many iterations.
        iterations: u32 = 10;
        /// Stop after this many failed runs in a row.
        max_failures: u32 = 3;
        /// Stop when the runs of one loop have cost this many dollars.
        max_cost: Option<f64> = None;
        /// The longest wait for a rate limit or a quota; beyond it the loop ends.
        // Long enough for a five-hour quota window to pass in a night.
        max_wait: HumanDuration = HumanDuration::from_secs(6 * 3600);
        /// Take the agent's word that all is complete.
        accept_complete: bool = false;
    }
}

settings! {
    /// How `rehearsal work` works.
    WorkSettings {
        /// So many tasks at once in one process.
        // More agents than this on one machine mostly wait for each other's tests.
        workers: u32 = 2;
        /// At most so many tasks in work at once, in all processes.
        at_once: Option<u32> = None;
        /// For how long a claim holds without a word from its worker.
        // Long enough for a machine that is busy, short enough for one that is gone.
        lease: HumanDuration = HumanDuration::from_secs(90);
    }
}

settings! {
    /// Where worktrees are, and how they are made ready.
    WorktreesSettings {
        /// The directory under which they are; without it, one in your data directory.
        directory: Option<String> = None;
        /// The command that makes a fresh checkout ready for work.
        setup: Option<String> = None;
        /// How many finished ones are kept for the next tasks.
        keep_warm: u32 = 4;
    }
}

settings! {
    /// Where pull requests live.
    ForgeSettings {
        /// Which kind of forge.
        kind: ForgeKind = ForgeKind::Auto;
        /// The remote that work is pushed to.
        remote: String = "origin".to_owned();
    }
}

settings! {
    /// How the repository is built and linted.
    CheckSettings {
        /// Commands that build, one after another; without it, the project's files tell. An empty list builds nothing.
        build: Option<Vec<String>> = None;
        /// Commands that lint; without it, the project's files tell. An empty list lints nothing.
        lint: Option<Vec<String>> = None;
    }
}

settings! {
    /// Which changes need a review: the step `assess` looks at what git says, not at what an agent says.
    QualitySettings {
        /// A change of more files is reviewed.
        most_files: u32 = Rules::MOST_FILES;
        /// A change of these files is reviewed: a word (`auth` is in `src/user_auth.py`), or a pattern (`*.sql`, `deploy/**`). Instead
        /// of the list that ships, which `config show --json` prints.
        #[serde(deserialize_with = "possible_patterns")]
        risky_paths: Vec<String> = risky_paths();
        /// A change of a line with one of these words is reviewed. Instead of the list that ships.
        risky_words: Vec<String> = risky_words();
        /// Whether a change of what a module exports is reviewed.
        public_interfaces: bool = true;
    }
}

/// The kinds of forges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ForgeKind {
    /// GitHub if the remote is there, else a local one.
    #[default]
    Auto,
    /// GitHub, through `gh`.
    Github,
    /// A bare repository on this machine: the remote if it is one, else one of ours.
    Local,
}

impl fmt::Display for ForgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Github => "github",
            Self::Local => "local",
        })
    }
}

#[expect(clippy::expect_used, reason = "the constant is a name, and every test would notice if not")]
fn default_agent() -> AgentName {
    AgentName::new(DEFAULT_AGENT).expect("a name")
}

/// Refused where it is written, so that the place is known.
fn possible_patterns<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    let patterns = Vec::<String>::deserialize(input)?;
    patterns.iter().try_for_each(|pattern| check_pattern(pattern)).map_err(D::Error::custom)?;
    Ok(patterns)
}

impl QualitySettings {
    /// The rules that these settings make.
    pub fn rules(&self) -> Rules {
        Rules::new(self.most_files, self.public_interfaces, &self.risky_paths, &self.risky_words)
    }
}

impl Settings {
    /// The profile of the agent that `run` uses.
    pub fn profile(&self) -> Option<&Profile> {
        self.agents.get(&self.agent)
    }

    /// The profile of an agent that a flow names: one of the configuration, or one that needs none.
    pub fn profile_of(&self, name: &AgentName) -> Option<&Profile> {
        self.agents.get(name).or_else(|| self.built_in.get(name))
    }

    /// Every agent that a flow may name.
    pub fn agent_names(&self) -> impl Iterator<Item = AgentName> + Clone + '_ {
        self.agents.keys().chain(self.built_in.keys()).cloned()
    }

    /// What the guards of a claim go by.
    pub fn limits(&self) -> Limits {
        let agents = self.agents.iter().map(|(name, profile)| {
            let limits = AgentLimits {
                enabled: profile.enabled,
                at_once: profile.at_once,
                interval: profile.interval.0,
                fallback: profile.fallback.clone(),
            };
            (name.clone(), limits)
        });
        let built_in = self.built_in.iter().map(|(name, profile)| {
            (name.clone(), AgentLimits { fallback: profile.fallback.clone(), ..AgentLimits::default() })
        });
        Limits { at_once: self.work.at_once, agents: agents.chain(built_in).collect() }
    }
}
