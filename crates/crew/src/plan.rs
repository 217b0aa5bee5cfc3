//! A plan: tasks, who does each, and what each has to wait for.
//!
//! It is JSON, written by a model or by a person, and nothing of it counts before it was checked: a [`Plan`] has only agents
//! that there are, only dependencies that there are, and an order in which it can be done.

mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rehearsal_core::{AgentName, nearest};
use serde::{Deserialize, Serialize};

/// A plan as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// The tasks, in the order in which people read them.
    pub tasks: Vec<PlannedTask>,
}

/// One task of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlannedTask {
    /// Its name in this plan: letters, digits, `-` and `_`.
    pub id: String,
    /// Who does it.
    pub agent: String,
    /// What is to be done; the first line is its title.
    pub description: String,
    /// The tasks of this plan that must be done before.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Files that it will change, as patterns: tasks that touch the same are not worked on at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
}

/// Someone who can be given a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What it is called.
    pub name: AgentName,
    /// What it is for, in a line.
    pub about: String,
    /// Whether it only looks, so that its task changes nothing.
    pub only_looks: bool,
}

/// A plan that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<PlanStep>,
}

/// One task of a checked plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStep {
    /// As it was written.
    pub task: PlannedTask,
    /// Who does it.
    pub agent: AgentName,
    /// Whether nothing is to change.
    pub only_looks: bool,
    /// How many tasks have to be done before it, one after the other.
    pub depth: usize,
}

/// More than anyone oversees.
const MOST_TASKS: usize = 50;
/// A task says what is to be done, and is no document.
const LONGEST_DESCRIPTION: usize = 10_000;
const LONGEST_ID: usize = 40;
const MOST_PATTERNS: usize = 100;
const LONGEST_PATTERN: usize = 500;
/// More is no plan.
const LONGEST_PLAN: usize = 512 << 10;

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It cannot be read.
    #[error("it is not a plan: {message}")]
    NotAPlan {
        /// What is wrong, with line and column.
        message: String,
    },
    /// It is longer than any plan.
    #[error("it is {bytes} bytes long, at most {LONGEST_PLAN} are read")]
    TooLong {
        /// So long.
        bytes: usize,
    },
    /// There is nothing to do.
    #[error("it has no tasks")]
    Empty,
    /// There is too much to do.
    #[error("it has {count} tasks, at most {MOST_TASKS}: plan a part of it")]
    TooMany {
        /// So many.
        count: usize,
    },
    /// A task's id is none.
    #[error("`{id}` is no id: up to {LONGEST_ID} letters, digits, `-` and `_`")]
    BadId {
        /// What was written.
        id: String,
    },
    /// Two tasks have one id.
    #[error("two tasks have the id `{id}`")]
    SameId {
        /// Which.
        id: String,
    },
    /// A task says nothing.
    #[error("task `{task}` has no description")]
    NoDescription {
        /// Which.
        task: String,
    },
    /// A task says too much.
    #[error("task `{task}` has a description of {length} characters, at most {LONGEST_DESCRIPTION}")]
    LongDescription {
        /// Which.
        task: String,
        /// So long.
        length: usize,
    },
    /// A task names too many files.
    #[error("task `{task}` has too many or too long patterns under `touches`")]
    Touches {
        /// Which.
        task: String,
    },
    /// Nobody is called so.
    #[error("task `{task}` is for agent `{agent}`, and there is none: {}", suggestion(near.as_deref(), known))]
    UnknownAgent {
        /// Which task.
        task: String,
        /// Who was named.
        agent: String,
        /// Who may have been meant.
        near: Option<String>,
        /// Those that there are.
        known: Vec<String>,
    },
    /// It waits for something that is not in the plan.
    #[error("task `{task}` depends on `{on}`, which is not in the plan{}", near.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    UnknownDependency {
        /// Which task.
        task: String,
        /// What it waits for.
        on: String,
        /// What may have been meant.
        near: Option<String>,
    },
    /// Each waits for the next, and the last for the first.
    #[error("tasks wait for each other in a circle: {}", way.join(" → "))]
    Cycle {
        /// The way around.
        way: Vec<String>,
    },
}

fn suggestion(near: Option<&str>, known: &[String]) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    }
}

/// All that is wrong with a plan, so that it can be mended at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors(pub Vec<PlanError>);

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&told.join("; "))
    }
}

impl std::error::Error for PlanErrors {}

impl From<PlanError> for PlanErrors {
    fn from(error: PlanError) -> Self {
        Self(vec![error])
    }
}

impl PlanFile {
    /// Reads a plan. What follows it is not read.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        if text.len() > LONGEST_PLAN {
            return Err(PlanError::TooLong { bytes: text.len() });
        }
        let mut plans = serde_json::Deserializer::from_str(text).into_iter();
        match plans.next() {
            Some(Ok(plan)) => Ok(plan),
            Some(Err(error)) => Err(PlanError::NotAPlan { message: error.to_string() }),
            None => Err(PlanError::NotAPlan { message: "there is nothing".to_owned() }),
        }
    }
}

impl Plan {
    /// Checks a plan against those who are to do it.
    pub fn check(file: PlanFile, members: &[Member]) -> Result<Self, PlanErrors> {
        let count = file.tasks.len();
        if count == 0 {
            return Err(PlanError::Empty.into());
        }
        if count > MOST_TASKS {
            return Err(PlanError::TooMany { count }.into());
        }
        let mut errors = Vec::new();
        let ids: BTreeSet<&str> = file.tasks.iter().map(|task| task.id.as_str()).collect();
        let mut seen = BTreeSet::new();
        for task in &file.tasks {
            check_task(task, &ids, &mut errors);
            if !seen.insert(&task.id) {
                errors.push(PlanError::SameId { id: task.id.clone() });
            }
        }
        let by_name: BTreeMap<&str, &Member> =
            members.iter().map(|member| (member.name.as_str(), member)).collect();
        let unknown = file.tasks.iter().filter(|task| !by_name.contains_key(task.agent.as_str()));
        errors.extend(unknown.map(|task| unknown_agent(task, &by_name)));
        if !errors.is_empty() {
            return Err(PlanErrors(errors));
        }
        let depths = order::depths(&file.tasks).map_err(|way| PlanError::Cycle { way })?;
        let steps = file.tasks.into_iter().zip(depths).filter_map(|(task, depth)| {
            let member = by_name.get(task.agent.as_str())?;
            Some(PlanStep { agent: member.name.clone(), only_looks: member.only_looks, depth, task })
        });
        Ok(Self { steps: steps.collect() })
    }

    /// Its tasks, in the order in which they were written.
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// Its tasks, each after all that it depends on.
    pub fn in_order(&self) -> Vec<&PlanStep> {
        let mut steps: Vec<&PlanStep> = self.steps.iter().collect();
        steps.sort_by_key(|step| step.depth);
        steps
    }

    /// As it is written.
    pub fn file(&self) -> PlanFile {
        PlanFile { tasks: self.steps.iter().map(|step| step.task.clone()).collect() }
    }
}

fn check_task(task: &PlannedTask, ids: &BTreeSet<&str>, errors: &mut Vec<PlanError>) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let id = &task.id;
    if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(is_plain) {
        errors.push(PlanError::BadId { id: id.chars().take(LONGEST_ID).collect() });
    }
    let length = task.description.chars().count();
    if task.description.trim().is_empty() {
        errors.push(PlanError::NoDescription { task: id.clone() });
    } else if length > LONGEST_DESCRIPTION {
        errors.push(PlanError::LongDescription { task: id.clone(), length });
    }
    let is_long = |pattern: &String| pattern.len() > LONGEST_PATTERN;
    if task.touches.len() > MOST_PATTERNS || task.touches.iter().any(is_long) {
        errors.push(PlanError::Touches { task: id.clone() });
    }
    for on in task.depends_on.iter().filter(|on| !ids.contains(on.as_str())).take(MOST_TASKS) {
        let near = nearest(on, ids.iter().copied()).map(str::to_owned);
        let on = on.chars().take(LONGEST_ID).collect();
        errors.push(PlanError::UnknownDependency { task: id.clone(), on, near });
    }
}

fn unknown_agent(task: &PlannedTask, known: &BTreeMap<&str, &Member>) -> PlanError {
    PlanError::UnknownAgent {
        task: task.id.clone(),
        agent: task.agent.chars().take(LONGEST_ID).collect(),
        near: nearest(&task.agent, known.keys().copied()).map(str::to_owned),
        known: known.keys().map(|name| (*name).to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests;
