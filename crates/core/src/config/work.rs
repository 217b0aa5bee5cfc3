//! How workers work: where tasks live, how many at once, where worktrees are, where the work goes.

use serde::{Deserialize, Serialize};

use super::resolve::{Layers, Origin, Setting};
use super::{HumanDuration, Settings};
use crate::guard::{AgentLimits, Limits};

/// How `rehearsal work` works.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WorkConfig {
    /// So many tasks at once in one process.
    pub workers: Option<u32>,
    /// At most so many tasks in work at once, in all processes.
    pub at_once: Option<u32>,
    /// For how long a claim holds without a word from its worker.
    pub lease: Option<HumanDuration>,
}

/// Where worktrees are, and how they are made ready.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WorktreesConfig {
    /// The directory under which they are; without it, one in your data directory.
    pub directory: Option<String>,
    /// The command that makes a fresh checkout ready for work.
    pub setup: Option<String>,
    /// How many finished ones are kept for the next tasks.
    pub keep_warm: Option<u32>,
}

/// Where pull requests live.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ForgeConfig {
    /// Which kind of forge.
    pub kind: Option<ForgeKind>,
    /// The remote that work is pushed to.
    pub remote: Option<String>,
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

impl std::fmt::Display for ForgeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Github => "github",
            Self::Local => "local",
        })
    }
}

/// All of these, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkSettings {
    /// Where tasks live: an address like `postgres://…`; none: a file in the repository.
    pub store: Setting<Option<String>>,
    /// The flow of new tasks.
    pub flow: Setting<String>,
    /// So many tasks at once in one process.
    pub workers: Setting<u32>,
    /// At most so many in all processes.
    pub at_once: Setting<Option<u32>>,
    /// How long a claim holds.
    pub lease: Setting<HumanDuration>,
    /// Where worktrees are.
    pub worktrees: Setting<Option<String>>,
    /// What makes them ready.
    pub setup: Setting<Option<String>>,
    /// How many are kept.
    pub keep_warm: Setting<u32>,
    /// Which kind of forge.
    pub forge: Setting<ForgeKind>,
    /// The remote.
    pub remote: Setting<String>,
}

/// Without a word, a task is worked on until it is done, by one agent.
const DEFAULT_FLOW: &str = "loop";
/// More agents than this on one machine mostly wait for each other's tests.
const DEFAULT_WORKERS: u32 = 2;
/// Long enough for a machine that is busy, short enough for one that is gone.
const DEFAULT_LEASE: HumanDuration = HumanDuration(std::time::Duration::from_secs(90));
const DEFAULT_KEEP_WARM: u32 = 4;

impl WorkSettings {
    pub(super) fn of(layers: &Layers) -> Self {
        Self {
            store: layers.optional(|file| file.store.clone()),
            flow: layers.pick(|file| file.flow.clone(), DEFAULT_FLOW.to_owned()),
            workers: layers.pick(|file| file.work.workers, DEFAULT_WORKERS),
            at_once: layers.optional(|file| file.work.at_once),
            lease: layers.pick(|file| file.work.lease, DEFAULT_LEASE),
            worktrees: layers.optional(|file| file.worktrees.directory.clone()),
            setup: layers.optional(|file| file.worktrees.setup.clone()),
            keep_warm: layers.pick(|file| file.worktrees.keep_warm, DEFAULT_KEEP_WARM),
            forge: layers.pick(|file| file.forge.kind, ForgeKind::Auto),
            remote: layers.pick(|file| file.forge.remote.clone(), "origin".to_owned()),
        }
    }

    pub(super) fn lines(&self) -> Vec<(&'static str, String, &Origin)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let at_once = self.at_once.value.map_or_else(|| "-".to_owned(), |count| count.to_string());
        vec![
            (
                "store",
                self.store.value.as_deref().map_or_else(|| "-".to_owned(), without_password),
                &self.store.origin,
            ),
            ("flow", self.flow.value.clone(), &self.flow.origin),
            ("work.workers", self.workers.value.to_string(), &self.workers.origin),
            ("work.at_once", at_once, &self.at_once.origin),
            ("work.lease", self.lease.value.to_string(), &self.lease.origin),
            ("worktrees.directory", text(&self.worktrees.value), &self.worktrees.origin),
            ("worktrees.setup", text(&self.setup.value), &self.setup.origin),
            ("worktrees.keep_warm", self.keep_warm.value.to_string(), &self.keep_warm.origin),
            ("forge.kind", self.forge.value.to_string(), &self.forge.origin),
            ("forge.remote", self.remote.value.clone(), &self.remote.origin),
        ]
    }
}

/// An address as it may be shown.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    // A password may have an `@` in it: the last one before the path ends it.
    let authority = rest.split('/').next().unwrap_or(rest);
    let Some((user, host)) = authority.rsplit_once('@') else { return address.to_owned() };
    let name = user.split(':').next().unwrap_or(user);
    format!("{scheme}://{name}@{host}{}", &rest[authority.len()..])
}

impl Settings {
    /// What the guards of a claim go by.
    pub fn limits(&self) -> Limits {
        let agents = self.agents.iter().map(|(name, profile)| {
            let limits = AgentLimits {
                enabled: profile.enabled.value,
                at_once: profile.at_once.value,
                interval: profile.interval.value.0,
            };
            (name.clone(), limits)
        });
        Limits { at_once: self.work.at_once.value, agents: agents.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_never_shown() {
        for (address, shown) in [
            ("postgres://me:secret@db/x", "postgres://me@db/x"),
            ("postgres://me:se@cret@db:5432/x?a=b@c", "postgres://me@db:5432/x?a=b@c"),
            ("postgres://db/x", "postgres://db/x"),
            ("postgres:///x?host=/tmp", "postgres:///x?host=/tmp"),
        ] {
            assert_eq!(without_password(address), shown);
        }
    }
}
