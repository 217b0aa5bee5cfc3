//! Steps: what the engine does between an agent's work and the next state.

use std::fmt;
use std::mem::discriminant;
use std::time::Duration;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::EdgeName;
use crate::config::HumanDuration;

/// An action of the engine between states.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is described in its row of `STEPS`")]
pub enum Step {
    Rebase,
    RunTests,
    Assess,
    CommitLeftovers,
    PushBranch,
    CreatePr,
    CheckConflicts,
    CheckCi,
    PostComment(String),
    MergePr,
    Land,
    Pause(HumanDuration),
    Command(String),
}

/// All that is known about a step beyond what it does: one row of [`STEPS`].
#[derive(Debug)]
pub struct StepSpec {
    /// The name as flows write it.
    pub name: &'static str,
    /// What it does, for the JSON Schema.
    pub description: &'static str,
    /// What has to be written beside its name.
    pub parameter: Option<Parameter>,
    /// The edge that its red verdict takes; none if it can only fail through the system.
    pub edge: Option<EdgeName>,
    /// What an earlier step must have left.
    pub needs: &'static [Need],
    /// Whether it reports which commit is the newest of the work.
    pub reports_head: bool,
    /// The step itself, with an empty parameter.
    step: Step,
}

/// What has to be written beside a step's name.
#[derive(Debug)]
pub struct Parameter {
    /// What it is, for whoever left it out.
    pub what: &'static str,
    read: fn(&str) -> Result<Step, String>,
}

/// What a step needs from an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A pushed branch.
    Branch,
    /// A pull request.
    PullRequest,
}

impl Need {
    /// The step that leaves it.
    pub const fn step(self) -> Step {
        match self {
            Self::Branch => Step::PushBranch,
            Self::PullRequest => Step::CreatePr,
        }
    }
}

/// Every step there is. Parser, schema, checks and engine read this table.
pub static STEPS: [StepSpec; 13] = [
    row("rebase", "Puts the work on top of its base.", Step::Rebase).edge(EdgeName::Conflict).reports_head(),
    row("run_tests", "Runs the repository's tests.", Step::RunTests).edge(EdgeName::TestsFailed),
    row("assess", "Looks whether the change needs a review.", Step::Assess).edge(EdgeName::NeedsReview),
    row("commit_leftovers", "Commits what the agent left uncommitted.", Step::CommitLeftovers).reports_head(),
    row("push_branch", "Pushes the work to its branch on the remote.", Step::PushBranch).reports_head(),
    row("create_pr", "Opens a pull request, or finds the one that is open.", Step::CreatePr),
    row("check_conflicts", "Asks whether the work still fits its base.", Step::CheckConflicts)
        .edge(EdgeName::Conflict)
        .needs(&[Need::Branch, Need::PullRequest]),
    row("check_ci", "Asks how the forge's checks of the pushed commit went.", Step::CheckCi)
        .edge(EdgeName::CiFailed)
        .needs(&[Need::Branch]),
    row("post_comment", "Writes this text under the pull request.", Step::PostComment(String::new()))
        .takes("the text to post", |text| Ok(Step::PostComment(text.to_owned())))
        .needs(&[Need::PullRequest]),
    row("merge_pr", "Merges the pull request, after the gate ran on the merged tree.", Step::MergePr)
        .edge(EdgeName::MergeFailed)
        .needs(&[Need::Branch, Need::PullRequest]),
    row(
        "land",
        "Merges as `merge_pr` does, but leaves a pull request on GitHub open for people.",
        Step::Land,
    )
    .edge(EdgeName::MergeFailed)
    .needs(&[Need::Branch, Need::PullRequest]),
    row("pause", "Lets so much time pass.", Step::Pause(HumanDuration(Duration::ZERO)))
        .takes("a time, like `2h`", |text| text.parse().map(Step::Pause)),
    row("command", "Runs this command in the worktree.", Step::Command(String::new()))
        .takes("the command to run", |text| Ok(Step::Command(text.to_owned())))
        .edge(EdgeName::CommandFailed),
];

const fn row(name: &'static str, description: &'static str, step: Step) -> StepSpec {
    StepSpec { name, description, parameter: None, edge: None, needs: &[], reports_head: false, step }
}

impl StepSpec {
    const fn edge(mut self, edge: EdgeName) -> Self {
        self.edge = Some(edge);
        self
    }

    const fn needs(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }

    const fn takes(mut self, what: &'static str, read: fn(&str) -> Result<Step, String>) -> Self {
        self.parameter = Some(Parameter { what, read });
        self
    }

    const fn reports_head(mut self) -> Self {
        self.reports_head = true;
        self
    }

    /// The step as a flow wrote it, with or without a text.
    pub(super) fn read(&self, text: Option<&str>) -> Result<Step, Unreadable> {
        match (&self.parameter, text) {
            (None, None) => Ok(self.step.clone()),
            (Some(parameter), Some(text)) => (parameter.read)(text).map_err(Unreadable::Parameter),
            (Some(parameter), None) => Err(Unreadable::Missing(parameter.what)),
            (None, Some(_)) => Err(Unreadable::TakesNone),
        }
    }
}

impl Step {
    /// Every name that a flow may write.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        STEPS.iter().map(|spec| spec.name)
    }

    /// Its row of the table.
    pub fn spec(&self) -> &'static StepSpec {
        let is_it = |spec: &&StepSpec| discriminant(&spec.step) == discriminant(self);
        #[expect(clippy::expect_used, reason = "a step without a row cannot be written in a flow")]
        STEPS.iter().find(is_it).expect("every step has a row")
    }

    /// The name as flows write it.
    pub fn name(&self) -> &'static str {
        self.spec().name
    }
}

/// Why a step is not written as its row says.
pub(super) enum Unreadable {
    /// It needs a parameter.
    Missing(&'static str),
    /// It takes no parameter.
    TakesNone,
    /// Its parameter is not one.
    Parameter(String),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Step {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut parameter_of = |step: &Self| match step {
            Self::Pause(_) => generator.subschema_for::<HumanDuration>(),
            _ => schemars::json_schema!({ "type": "string" }),
        };
        let steps = STEPS.iter().map(|StepSpec { name, description, parameter, step, .. }| match parameter {
            None => serde_json::json!({ "description": description, "type": "string", "const": name }),
            Some(_) => serde_json::json!({
                "description": description,
                "type": "object",
                "properties": { *name: parameter_of(step) },
                "additionalProperties": false,
                "required": [name],
            }),
        });
        schemars::json_schema!({
            "description": "An action of the engine between states.",
            "oneOf": steps.collect::<Vec<_>>(),
        })
    }
}

/// A step as it is written: a name, or a name with its text.
pub(super) struct StepFile {
    pub(super) name: String,
    pub(super) text: Option<String>,
}

impl<'de> Deserialize<'de> for StepFile {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct StepVisitor;
        impl<'de> Visitor<'de> for StepVisitor {
            type Value = StepFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step's name, or `{ command: COMMAND }`")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<StepFile, E> {
                Ok(StepFile { name: name.to_owned(), text: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StepFile, A::Error> {
                let entry: Option<(String, String)> = map.next_entry()?;
                let (name, text) = entry.ok_or_else(|| de::Error::custom("an empty step"))?;
                if map.next_key::<String>()?.is_some() {
                    return Err(de::Error::custom("a step has one name; write each in a line of its own"));
                }
                Ok(StepFile { name, text: Some(text) })
            }
        }
        input.deserialize_any(StepVisitor)
    }
}
