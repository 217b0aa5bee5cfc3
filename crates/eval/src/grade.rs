//! Whether a trial is what was asserted of it. Pure: all that can be asserted on is in the [`Trial`].

mod changed;
mod did;
mod said;

use rehearsal_core::Blame;
use serde::{Deserialize, Serialize};

use crate::assertion::{Assertion, Check};
use crate::trial::Trial;

/// What came of one assertion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "grade", rename_all = "snake_case")]
pub enum Grade {
    /// It holds.
    Holds {
        /// By what.
        because: String,
    },
    /// It does not.
    Broken {
        /// By what.
        because: String,
    },
    /// It cannot be said: something that it needs is not known.
    Unknown {
        /// What.
        because: String,
    },
}

impl Grade {
    fn of(holds: bool, because: impl Into<String>) -> Self {
        let because = because.into();
        if holds { Self::Holds { because } } else { Self::Broken { because } }
    }

    fn unknown(because: impl Into<String>) -> Self {
        Self::Unknown { because: because.into() }
    }

    /// The opposite; what is not known stays so.
    fn negated(self) -> Self {
        match self {
            Self::Holds { because } => Self::Broken { because },
            Self::Broken { because } => Self::Holds { because },
            unknown @ Self::Unknown { .. } => unknown,
        }
    }
}

/// One assertion and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Graded {
    /// How it is called.
    pub name: String,
    /// How much it counts.
    pub weight: f64,
    /// What came of it.
    #[serde(flatten)]
    pub grade: Grade,
}

impl Grade {
    /// Why it does not hold, if it does not.
    pub fn objection(&self) -> Option<&str> {
        match self {
            Self::Broken { because } | Self::Unknown { because } => Some(because),
            Self::Holds { .. } => None,
        }
    }
}

/// What came of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that was asserted holds.
    Pass,
    /// Something does not.
    Fail,
    /// Nothing can be said of the agent: the world around it failed, or a judge could not be read.
    Error,
    /// It was not tried.
    Skipped,
}

/// Grades a trial, and says what came of it. With a threshold, that share of the weights must hold; without, all of it.
pub fn grade(trial: &Trial, assertions: &[Assertion], threshold: Option<f64>) -> (Vec<Graded>, Verdict) {
    let graded: Vec<Graded> = assertions
        .iter()
        .map(|assertion| {
            let grade = check(&assertion.check, trial);
            let grade = if assertion.negated { grade.negated() } else { grade };
            Graded { name: assertion.name.clone(), weight: assertion.weight, grade }
        })
        .collect();
    let verdict = if no_evidence(trial).is_some() { Verdict::Error } else { verdict(&graded, threshold) };
    (graded, verdict)
}

/// Why a trial says nothing about its agent, if that is so: what the system or a user did to a run, or a recording that had no
/// answer for it.
pub fn no_evidence(trial: &Trial) -> Option<String> {
    let blame = trial.outcome.blame();
    if let Some(replay) = trial.replay.as_ref().filter(|replay| replay.missed > 0 && blame != Blame::Nobody) {
        let first =
            replay.differences.first().map_or("something was asked that is not in it", String::as_str);
        return Some(format!("the recording does not fit any more: {first}"));
    }
    matches!(blame, Blame::System | Blame::User)
        .then(|| format!("the run ended with {}", trial.outcome.name()))
}

fn verdict(graded: &[Graded], threshold: Option<f64>) -> Verdict {
    if graded.iter().any(|one| matches!(one.grade, Grade::Unknown { .. })) {
        return Verdict::Error;
    }
    let holds = |one: &&Graded| matches!(one.grade, Grade::Holds { .. });
    let passed = match threshold {
        None => graded.iter().filter(|one| one.weight > 0.0).all(|one| holds(&one)),
        Some(threshold) => score(graded).is_none_or(|score| score >= threshold),
    };
    if passed { Verdict::Pass } else { Verdict::Fail }
}

/// The share of the weights that hold; none if nothing counts.
pub fn score(graded: &[Graded]) -> Option<f64> {
    let all: f64 = graded.iter().map(|one| one.weight).sum();
    let held: f64 =
        graded.iter().filter(|one| matches!(one.grade, Grade::Holds { .. })).map(|one| one.weight).sum();
    (all > 0.0).then(|| held / all)
}

fn check(check: &Check, trial: &Trial) -> Grade {
    match check {
        Check::Contains { texts, any, ignore_case } => said::contains(trial, texts, *any, *ignore_case),
        Check::Equals(text) => said::equals(trial, text),
        Check::StartsWith(text) => said::starts_with(trial, text),
        Check::Matches(regex) => said::matches(trial, regex),
        Check::IsJson(schema) => said::is_json(trial, schema.as_ref()),
        Check::NoErrors => said::no_errors(trial),
        Check::Rubric { rubric, votes } => said::rubric(trial, rubric, *votes),
        Check::AgentsWorked(agents) => did::agents_worked(trial, agents),
        Check::ToolUsed { tools, written, times } => did::tool_used(trial, tools, written, *times),
        Check::ToolArguments { tool, contain } => did::tool_arguments(trial, tool, contain),
        Check::ToolSequence { tools, exact } => did::tool_sequence(trial, tools, *exact),
        Check::Steps(range) => did::steps(trial, *range),
        Check::StepOrder { after, comes } => did::step_order(trial, *after, *comes),
        Check::NoLoops(most) => did::no_loops(trial, *most),
        Check::Tokens(most) => at_most("tokens", trial.tokens.map(rehearsal_core::Tokens::total), *most),
        Check::Turns(most) => at_most("turns", trial.turns, *most),
        Check::LatencyMs(most) => at_most("milliseconds", Some(trial.duration_ms), *most),
        Check::CostUsd(most) => cost(trial.cost_usd, *most),
        Check::ReplayExact => replay_exact(trial),
        Check::FilesModified(range) => changed::files_modified(trial, *range),
        Check::FilesCreated(patterns) => changed::files_created(trial, patterns),
        Check::Untouched(patterns) => changed::untouched(trial, patterns),
        Check::DiffScope(patterns) => changed::scope(trial, patterns),
        Check::DiffMatches(regex) => changed::diff_matches(trial, regex),
        Check::Command { command, code } => changed::command(trial, command, *code),
        Check::Tests { fail_to_pass, pass_to_pass, keep_all } => {
            changed::tests(trial, fail_to_pass, pass_to_pass, *keep_all)
        }
        Check::Git { commits, clean, subject } => changed::git(trial, *commits, *clean, subject.as_ref()),
        Check::PullRequest { merged, title } => changed::pull_request(trial, *merged, title.as_ref()),
        Check::GhCalled(regex) => changed::gh_called(trial, regex),
    }
}

fn at_most(unit: &str, used: Option<u64>, most: u64) -> Grade {
    match used {
        Some(used) => Grade::of(used <= most, format!("{used} {unit}, at most {most} wanted")),
        None => Grade::unknown(format!("the agent does not tell its {unit}")),
    }
}

fn cost(used: Option<f64>, most: f64) -> Grade {
    match used {
        Some(used) => Grade::of(used <= most, format!("${used:.4}, at most ${most:.4} wanted")),
        None => Grade::unknown("the agent does not tell its cost"),
    }
}

fn replay_exact(trial: &Trial) -> Grade {
    match &trial.replay {
        None => Grade::unknown("it was no replay"),
        Some(replay) if replay.exact => Grade::of(true, "all was asked as it was recorded"),
        Some(replay) => Grade::of(false, replay.differences.first().map_or("it differs", String::as_str)),
    }
}

#[cfg(test)]
mod tests;
