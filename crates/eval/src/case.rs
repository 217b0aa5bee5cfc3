//! An eval as people write it: cases, what is asserted of each, who is measured, and what is required.

mod read;

use std::collections::BTreeMap;

use rehearsal_core::config::HumanDuration;
use rehearsal_core::yaml::Spanned;
use serde::Deserialize;

pub use read::parse;

use crate::assertion::{Assertion, AssertionFile};
use crate::trial::Variant;

/// `.rehearsal/evals/*.yaml`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EvalFile {
    /// Where editors find the schema of this file.
    #[serde(default, rename = "$schema")]
    pub schema: Option<String>,
    /// Its name, unlike that of any other.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name: Spanned<String>,
    /// What it measures.
    #[serde(default)]
    pub about: String,
    /// Who is measured: agents of the configuration; models that are asked directly, as `vendor:model`; `echo`, whose answer is the
    /// prompt. Without it, the agent that `run` uses.
    #[serde(default)]
    pub agents: Vec<String>,
    /// With which models; without it, each agent's own.
    #[serde(default)]
    pub models: Vec<String>,
    /// Prompts by name, each with `{{ prompt }}` where the case's own goes; without it, that alone.
    #[serde(default)]
    pub prompts: BTreeMap<String, String>,
    /// Through which flows; without it, one run of the agent.
    #[serde(default)]
    pub flows: Vec<String>,
    /// How often each case is tried.
    #[serde(default = "once")]
    pub repeat: u32,
    /// Where the chance of the statistics comes from.
    #[serde(default)]
    pub seed: u64,
    /// The model that judges `llm-rubric`, as `vendor:model`.
    #[serde(default)]
    pub judge: Option<String>,
    /// Asserted of each case.
    #[serde(default, rename = "assert")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<AssertionFile>"))]
    pub assertions: Vec<Spanned<AssertionFile>>,
    /// What must come of all of it.
    #[serde(default)]
    pub require: Require,
    /// The cases.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<CaseFile>"))]
    pub cases: Vec<Spanned<CaseFile>>,
}

fn once() -> u32 {
    1
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Its name, unlike that of any other in the file.
    pub name: String,
    /// What the agent is asked.
    pub prompt: String,
    /// What is there before; without it, an empty repository.
    #[serde(default)]
    pub repository: RepositoryFile,
    /// A shell command that makes it ready, before the agent starts.
    #[serde(default)]
    pub setup: Option<String>,
    /// Who is measured on this case, instead of those of the eval.
    #[serde(default)]
    pub agents: Vec<String>,
    /// The recording that is played, or made; without it, one named after the eval, the case and who is measured.
    #[serde(default)]
    pub cassette: Option<String>,
    /// What is asserted.
    #[serde(default, rename = "assert")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<AssertionFile>"))]
    pub assertions: Vec<Spanned<AssertionFile>>,
    /// From which share of the weights on it passes; without it, all must hold.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// How often it is tried, if not as often as the others.
    #[serde(default)]
    pub repeat: Option<u32>,
    /// What must come of this case.
    #[serde(default)]
    pub require: Require,
    /// To choose by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Cases of one group resemble each other; without it, each case is one of its own.
    #[serde(default)]
    pub group: Option<String>,
    /// The longest a trial may take.
    #[serde(default)]
    pub timeout: Option<HumanDuration>,
    /// A patch that is known to be right, for `eval oracle`: its text, or the path of a file below the eval's.
    #[serde(default)]
    pub known_patch: Option<String>,
}

/// What is there before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RepositoryFile {
    /// Files by path.
    pub files: BTreeMap<String, String>,
    /// A repository on this machine, relative to the eval's file; `.` is the project itself.
    pub path: Option<String>,
    /// The revision of it; without it, what is checked out there.
    pub at: Option<String>,
    /// A patch put on top of it: the tests of a case.
    pub patch: Option<String>,
}

/// What must come of it. Without anything, every case must pass every time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Require {
    /// The least share of trials that pass.
    pub pass_rate: Option<f64>,
    /// The least pass@k.
    pub pass_at: Option<AtK>,
    /// The least pass^k.
    pub pass_hat: Option<AtK>,
    /// The most dollars for all trials.
    pub max_cost: Option<f64>,
    /// The most errors of the world around.
    pub max_errors: Option<u64>,
}

/// A bound for one k.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AtK {
    /// Of how many trials.
    pub k: u64,
    /// At least.
    pub least: f64,
}

/// An eval that was checked.
#[derive(Debug, Clone)]
pub struct Eval {
    /// Its name.
    pub name: String,
    /// What it measures.
    pub about: String,
    /// Where the chance of the statistics comes from.
    pub seed: u64,
    /// Who judges.
    pub judge: Option<String>,
    /// The prompts by name.
    pub prompts: BTreeMap<String, String>,
    /// What must come of all of it.
    pub require: Require,
    /// The cases.
    pub cases: Vec<Case>,
}

/// A case that was checked.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// As it was written.
    pub file: CaseFile,
    /// What is asserted: the eval's, then its own.
    pub assertions: Vec<Assertion>,
    /// Who is measured on it.
    pub variants: Vec<Variant>,
    /// How often.
    pub repeat: u32,
}

impl Eval {
    /// Keeps only cases whose name contains `name` and that have `tag`, each tried `repeat` times.
    pub fn select(&mut self, name: Option<&str>, tag: Option<&str>, repeat: Option<u32>) {
        self.cases.retain(|case| {
            name.is_none_or(|part| case.name.contains(part))
                && tag.is_none_or(|tag| case.file.tags.iter().any(|own| own == tag))
        });
        for case in &mut self.cases {
            case.repeat = repeat.map_or(case.repeat, |repeat| repeat.max(1));
        }
    }
}

impl Case {
    /// The assertions that need no agent, only the repository.
    pub(crate) fn assertions_of_repository(&self) -> Vec<Assertion> {
        self.assertions.iter().filter(|one| one.is_of_repository()).cloned().collect()
    }
}
