//! How the repository's tests run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::HumanDuration;
use super::file::ConfigFile;
use super::resolve::{Layers, Origin, Setting};
use super::sandbox::{SandboxConfig, SandboxSettings};
use crate::yaml::{self, Spanned};
use crate::{Place, SourceError};

/// How the repository's tests run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TestingConfig {
    /// The runner; without it, the project's files tell.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub framework: Option<Written>,
    /// The command; without it, the runner's own. Agents are told to use it.
    pub command: Option<String>,
    /// The longest a run of the tests may take, at most 15 minutes.
    #[serde(deserialize_with = "possible_timeout")]
    pub timeout: Option<HumanDuration>,
    /// Only tests that match one of these.
    pub patterns: Option<Vec<String>>,
    /// Not the tests that match one of these.
    pub exclude: Option<Vec<String>>,
    /// Variables set for the tests. Not for secrets: this file is committed.
    pub environment: Option<BTreeMap<String, String>>,
    /// How often failed tests are run again; one that then passes is flaky.
    pub retries: Option<u32>,
    /// How many tests at once, where the runner can.
    pub parallel: Option<u32>,
    /// How the tests are confined.
    pub sandbox: SandboxConfig,
}

/// A word, and where it stands if it is from a file: whether it is right is known elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The word.
    pub word: String,
    /// Where it stands.
    pub place: Option<Place>,
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(input)?;
        Ok(Self { place: spanned.place, word: spanned.value })
    }
}

/// `.rehearsal/testing.yaml`: the section `testing` in a file of its own.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TestingFile {
    /// Where editors find the schema of this file.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// How the repository's tests run.
    pub testing: TestingConfig,
}

/// Reads a `testing.yaml`.
pub fn parse_testing(text: &str) -> Result<ConfigFile, SourceError> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(ConfigFile::default());
    }
    let file: TestingFile = yaml::from_str(text)?;
    Ok(ConfigFile { testing: file.testing, ..ConfigFile::default() })
}

/// The same, resolved.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each field is explained by its twin in the file")]
pub struct TestingSettings {
    pub framework: Setting<Option<Written>>,
    pub command: Setting<Option<String>>,
    pub timeout: Setting<HumanDuration>,
    pub patterns: Setting<Vec<String>>,
    pub exclude: Setting<Vec<String>>,
    pub environment: Setting<BTreeMap<String, String>>,
    pub retries: Setting<u32>,
    pub parallel: Setting<Option<u32>>,
    pub sandbox: SandboxSettings,
}

const DEFAULT_TIMEOUT: HumanDuration = HumanDuration(Duration::from_secs(5 * 60));
/// A suite that needs longer is split, or run where nobody waits for it.
const LONGEST_TIMEOUT: HumanDuration = HumanDuration(Duration::from_secs(15 * 60));

/// Refused where it is written, so that the place is known.
fn possible_timeout<'de, D: Deserializer<'de>>(input: D) -> Result<Option<HumanDuration>, D::Error> {
    let timeout = Option::<HumanDuration>::deserialize(input)?;
    timeout.map_or(Ok(()), check_timeout).map_err(D::Error::custom)?;
    Ok(timeout)
}

/// Whether the tests can be given this much time.
pub fn check_timeout(timeout: HumanDuration) -> Result<(), String> {
    if timeout.0.is_zero() {
        return Err("the tests need some time: write `90s` or `5m`".to_owned());
    }
    if timeout > LONGEST_TIMEOUT {
        return Err(format!(
            "{timeout} is too long, at most {LONGEST_TIMEOUT}: run a part of the tests at a time, by a pattern"
        ));
    }
    Ok(())
}

impl TestingSettings {
    pub(super) fn of(layers: &Layers) -> Self {
        let timeout = layers.pick(|file| file.testing.timeout, DEFAULT_TIMEOUT);
        Self {
            framework: layers.optional(|file| file.testing.framework.clone()),
            command: layers.optional(|file| file.testing.command.clone()),
            timeout,
            patterns: layers.pick(|file| file.testing.patterns.clone(), Vec::new()),
            exclude: layers.pick(|file| file.testing.exclude.clone(), Vec::new()),
            environment: layers.pick(|file| file.testing.environment.clone(), BTreeMap::new()),
            retries: layers.pick(|file| file.testing.retries, 0),
            parallel: layers.optional(|file| file.testing.parallel),
            sandbox: SandboxSettings::of_tests(layers, |file| Some(&file.testing.sandbox)),
        }
    }

    pub(super) fn lines(&self) -> Vec<(String, String, &Origin)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let list = |values: &[String]| if values.is_empty() { "-".into() } else { values.join(" ") };
        let variables: Vec<String> =
            self.environment.value.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let parallel = self.parallel.value.map_or_else(|| "-".into(), |count| count.to_string());
        let framework = self.framework.value.as_ref().map(|framework| framework.word.clone());
        let mut lines = vec![
            ("framework".to_owned(), text(&framework), &self.framework.origin),
            ("command".to_owned(), text(&self.command.value), &self.command.origin),
            ("timeout".to_owned(), self.timeout.value.to_string(), &self.timeout.origin),
            ("patterns".to_owned(), list(&self.patterns.value), &self.patterns.origin),
            ("exclude".to_owned(), list(&self.exclude.value), &self.exclude.origin),
            ("environment".to_owned(), list(&variables), &self.environment.origin),
            ("retries".to_owned(), self.retries.value.to_string(), &self.retries.origin),
            ("parallel".to_owned(), parallel, &self.parallel.origin),
        ];
        lines.extend(self.sandbox.lines());
        lines
    }
}
