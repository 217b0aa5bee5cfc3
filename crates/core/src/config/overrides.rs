//! What a command line or the environment sets over the files.

use super::resolve::DEFAULT_AGENT;
use super::{Layer, Origin, Settings};
use crate::SourceError;

/// The variables that are read, and the setting that each overrides. Settings of `agents.*` apply to the agent that is used.
pub(super) const VARIABLES: [(&str, &str); 12] = [
    ("REHEARSAL_AGENT", "agent"),
    ("REHEARSAL_MODEL", "agents.*.model"),
    ("REHEARSAL_TIMEOUT", "agents.*.timeout"),
    ("REHEARSAL_IDLE_TIMEOUT", "agents.*.idle_timeout"),
    ("REHEARSAL_ITERATIONS", "loop.iterations"),
    ("REHEARSAL_MAX_FAILURES", "loop.max_failures"),
    ("REHEARSAL_MAX_COST", "loop.max_cost"),
    ("REHEARSAL_MAX_WAIT", "loop.max_wait"),
    ("REHEARSAL_BASE_BRANCH", "base_branch"),
    ("REHEARSAL_STORE", "store"),
    ("REHEARSAL_WORKERS", "work.workers"),
    ("REHEARSAL_TEST_COMMAND", "testing.command"),
];

/// Settings by their names in the file, as texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overrides(Vec<(&'static str, String)>);

impl Overrides {
    /// Sets a setting, if there is a value for it. In its name, `agents.*` is the agent that is used.
    pub fn set(mut self, key: &'static str, value: Option<impl ToString>) -> Self {
        self.0.extend(value.map(|value| (key, value.to_string())));
        self
    }

    /// Reads the variables through `lookup`. A value that cannot be read is an error, not a silent default.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SourceError> {
        let mut all = Self::default();
        for (name, key) in VARIABLES {
            let Some(value) = lookup(name) else { continue };
            let one = Self::default().set(key, Some(value));
            let layer = one.clone().layer(Origin::Environment, DEFAULT_AGENT);
            layer.tree().to::<Settings>().map_err(|error| SourceError {
                message: format!("the variable `{name}` cannot be used: {error}"),
                ..error
            })?;
            all.0.extend(one.0);
        }
        Ok(all)
    }

    /// The agent that they choose.
    pub(super) fn agent(&self) -> Option<&str> {
        self.0.iter().find(|(key, _)| *key == "agent").map(|(_, name)| name.as_str())
    }

    pub(super) fn layer(self, origin: Origin, used: &str) -> Layer {
        let mut layer = Layer::new(origin);
        for (key, value) in self.0 {
            let path: Vec<&str> = key.split('.').map(|name| if name == "*" { used } else { name }).collect();
            layer.set(&path, &value);
        }
        layer
    }
}
