//! How a process is confined.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::HumanSize;
use super::file::ConfigFile;
use super::resolve::{Layers, Origin, Setting};

/// How a process is confined: a word (`required`), or details.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SandboxConfig {
    /// How much of it must be there.
    pub level: Option<SandboxLevel>,
    /// What may happen to the project's files.
    pub project: Option<ProjectAccess>,
    /// Whether the network can be reached; loopback and unix sockets always work.
    pub allow_network: Option<bool>,
    /// The most memory.
    pub max_memory: Option<HumanSize>,
    /// The most processors.
    pub max_cpus: Option<f64>,
    /// The most processes.
    pub max_processes: Option<u32>,
}

/// How much of the sandbox must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// None of it.
    Off,
    /// Whatever the system gives; the report says what it did not.
    #[default]
    BestEffort,
    /// All of it, or nothing runs.
    Required,
}

/// What may happen to the project's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProjectAccess {
    /// Writes are allowed and forgotten afterwards; the files written are listed.
    Overlay,
    /// No writes.
    ReadOnly,
    /// Writes stay.
    Writable,
}

/// As it is written with details.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct Details {
    level: Option<SandboxLevel>,
    project: Option<ProjectAccess>,
    allow_network: Option<bool>,
    max_memory: Option<HumanSize>,
    max_cpus: Option<f64>,
    max_processes: Option<u32>,
}

impl<'de> Deserialize<'de> for SandboxConfig {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(WordOrDetails)
    }
}

/// An untagged enum would answer every mistake with "did not match any variant".
struct WordOrDetails;

impl<'de> Visitor<'de> for WordOrDetails {
    type Value = SandboxConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`off`, `best_effort`, `required`, or details like `max_memory: 1GB`")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<SandboxConfig, E> {
        let level = match word {
            "off" => SandboxLevel::Off,
            "best_effort" => SandboxLevel::BestEffort,
            "required" => SandboxLevel::Required,
            other => {
                return Err(E::custom(format!(
                    "unknown sandbox `{other}`: there are off, best_effort and required"
                )));
            }
        };
        Ok(SandboxConfig { level: Some(level), ..SandboxConfig::default() })
    }

    /// YAML reads a bare `off` as a boolean.
    fn visit_bool<E: serde::de::Error>(self, on: bool) -> Result<SandboxConfig, E> {
        self.visit_str(if on { "required" } else { "off" })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SandboxConfig, A::Error> {
        let details = Details::deserialize(MapAccessDeserializer::new(map))?;
        Ok(SandboxConfig {
            level: details.level,
            project: details.project,
            allow_network: details.allow_network,
            max_memory: details.max_memory,
            max_cpus: details.max_cpus,
            max_processes: details.max_processes,
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for SandboxConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SandboxConfig".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (word, details) =
            (generator.subschema_for::<SandboxLevel>(), generator.subschema_for::<Details>());
        schemars::json_schema!({ "anyOf": [word, details] })
    }
}

/// The same, resolved.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each field is explained by its twin in the file")]
pub struct SandboxSettings {
    pub level: Setting<SandboxLevel>,
    /// None: as the process needs it.
    pub project: Setting<Option<ProjectAccess>>,
    pub allow_network: Setting<bool>,
    /// None: no limit, here and below.
    pub max_memory: Setting<Option<HumanSize>>,
    pub max_cpus: Setting<Option<f64>>,
    pub max_processes: Setting<Option<u32>>,
}

/// For a test run: nothing but itself is needed.
const TESTS: SandboxConfig = SandboxConfig {
    level: None,
    project: None,
    allow_network: Some(false),
    max_memory: Some(HumanSize(2 << 30)),
    max_cpus: Some(2.0),
    // Test runners start many workers with many threads; a fork bomb passes this in a blink.
    max_processes: Some(1024),
};
/// For an agent: it edits the project, reaches its model, and builds as its user would.
const AGENTS: SandboxConfig = SandboxConfig {
    level: None,
    project: Some(ProjectAccess::Writable),
    allow_network: Some(true),
    max_memory: None,
    max_cpus: None,
    max_processes: None,
};

impl SandboxSettings {
    /// Those of test runs.
    pub(super) fn of_tests(layers: &Layers, get: impl Fn(&ConfigFile) -> Option<&SandboxConfig>) -> Self {
        Self::of(layers, get, &TESTS)
    }

    /// Those of an agent; none if nobody speaks of a sandbox.
    pub(super) fn of_agent(
        layers: &Layers,
        get: impl Fn(&ConfigFile) -> Option<&SandboxConfig>,
    ) -> Option<Self> {
        layers.optional(|file| get(file).map(drop)).value.map(|()| Self::of(layers, get, &AGENTS))
    }

    fn of(
        layers: &Layers,
        get: impl Fn(&ConfigFile) -> Option<&SandboxConfig>,
        default: &SandboxConfig,
    ) -> Self {
        Self {
            level: layers.pick(|file| get(file)?.level, default.level.unwrap_or_default()),
            project: layers.pick(|file| get(file)?.project.map(Some), default.project),
            allow_network: layers
                .pick(|file| get(file)?.allow_network, default.allow_network.unwrap_or_default()),
            max_memory: layers.pick(|file| get(file)?.max_memory.map(Some), default.max_memory),
            max_cpus: layers.pick(|file| get(file)?.max_cpus.map(Some), default.max_cpus),
            max_processes: layers.pick(|file| get(file)?.max_processes.map(Some), default.max_processes),
        }
    }

    pub(super) fn lines(&self) -> Vec<(String, String, &Origin)> {
        let level = match self.level.value {
            SandboxLevel::Off => "off",
            SandboxLevel::BestEffort => "best_effort",
            SandboxLevel::Required => "required",
        };
        let project = match self.project.value {
            None => "-",
            Some(ProjectAccess::Overlay) => "overlay",
            Some(ProjectAccess::ReadOnly) => "read_only",
            Some(ProjectAccess::Writable) => "writable",
        };
        let (memory, cpus, processes) = (&self.max_memory, &self.max_cpus, &self.max_processes);
        vec![
            ("sandbox.level".to_owned(), level.to_owned(), &self.level.origin),
            ("sandbox.project".to_owned(), project.to_owned(), &self.project.origin),
            (
                "sandbox.allow_network".to_owned(),
                self.allow_network.value.to_string(),
                &self.allow_network.origin,
            ),
            ("sandbox.max_memory".to_owned(), limit(memory.value), &memory.origin),
            ("sandbox.max_cpus".to_owned(), limit(cpus.value), &cpus.origin),
            ("sandbox.max_processes".to_owned(), limit(processes.value), &processes.origin),
        ]
    }
}

fn limit(limit: Option<impl ToString>) -> String {
    limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string())
}
