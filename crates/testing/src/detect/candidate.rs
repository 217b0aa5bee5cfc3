//! One project's tests, and why we think so.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::Framework;

/// One project's tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// The runner.
    pub framework: Framework,
    /// Where it runs, relative to the repository; empty for its root.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub root: Utf8PathBuf,
    /// What speaks for it.
    pub evidence: Vec<Evidence>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Why it is not to be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<String>,
    /// How the project itself calls the runner, as far as that matters.
    #[serde(default, skip_serializing_if = "Invocation::is_empty")]
    pub invocation: Invocation,
}

/// How a project calls its runner.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invocation {
    /// A command line for a shell, that somebody gave instead of the runner's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The program, where the runner is not called by its own name (`make`, `npm`, `manage.py`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Arguments that the project gives it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables that the project sets for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What it is to test: packages, files or directories relative to its root. Empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Directories below with projects of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
}

impl Invocation {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One thing that speaks for a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The file, relative to the repository.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
    /// What in it; empty if its being there says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
}

impl std::fmt::Display for Evidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.what.is_empty() {
            write!(f, "{}", self.file)
        } else {
            write!(f, "{}: {}", self.file, self.what)
        }
    }
}

/// How sure it is that a project is tested with a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// There is something that can be called.
    Guess,
    /// Its files look like it.
    Likely,
    /// The project says so.
    Certain,
}

impl Candidate {
    pub(crate) fn new(framework: Framework, root: &Utf8Path, confidence: Confidence) -> Self {
        Self {
            framework,
            root: root.to_owned(),
            evidence: Vec::new(),
            confidence,
            passed_over: None,
            invocation: Invocation::default(),
        }
    }

    /// A command that somebody gave: it runs as it is, and its output is read as that of the runner, if one is named.
    pub fn of_command(command: &str, framework: Option<Framework>) -> Self {
        let mut candidate =
            Self::new(framework.unwrap_or(Framework::Generic), Utf8Path::new(""), Confidence::Certain);
        candidate.invocation.shell = Some(command.to_owned());
        candidate
    }

    pub(super) fn because(mut self, file: impl Into<Utf8PathBuf>, what: impl Into<String>) -> Self {
        self.evidence.push(Evidence { file: file.into(), what: what.into() });
        self
    }

    pub(super) fn passed_over(mut self, reason: impl Into<String>) -> Self {
        self.passed_over = Some(reason.into());
        self
    }

    /// Its root as people write it.
    pub fn place(&self) -> &str {
        if self.root.as_str().is_empty() { "." } else { self.root.as_str() }
    }
}
