//! How the repository is built and linted.

use serde::Deserialize;

use super::resolve::{Layers, Origin, Setting};

/// How the repository is built and linted.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CheckConfig {
    /// Commands that build, one after another; without it, the project's files tell. An empty list builds nothing.
    pub build: Option<Vec<String>>,
    /// Commands that lint; without it, the project's files tell. An empty list lints nothing.
    pub lint: Option<Vec<String>>,
}

/// The same, resolved.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each field is explained by its twin in the file")]
pub struct CheckSettings {
    pub build: Setting<Option<Vec<String>>>,
    pub lint: Setting<Option<Vec<String>>>,
}

impl CheckSettings {
    pub(super) fn of(layers: &Layers) -> Self {
        Self {
            build: layers.optional(|file| file.check.build.clone()),
            lint: layers.optional(|file| file.check.lint.clone()),
        }
    }

    pub(super) fn lines(&self) -> Vec<(&'static str, String, &Origin)> {
        let list = |value: &Option<Vec<String>>| match value {
            None => "-".to_owned(),
            Some(commands) if commands.is_empty() => "nothing".to_owned(),
            Some(commands) => commands.join("; "),
        };
        vec![
            ("build", list(&self.build.value), &self.build.origin),
            ("lint", list(&self.lint.value), &self.lint.origin),
        ]
    }
}
