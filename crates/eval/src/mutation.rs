//! Are the assertions able to fail? A trial that passed is made worse in many ways, and each of these is graded as the trial was.
//!
//! An assertion that no mutant breaks says nothing: it holds whatever an agent does. A mutant that survives all assertions is a fault that nobody
//! would notice.

mod against;
mod changed;
mod did;
mod said;
mod spent;

use serde::Serialize;

use crate::assertion::Assertion;
use crate::grade::{Grade, Verdict, grade};
use crate::trial::Trial;

/// A trial that was made worse.
#[derive(Debug, Clone, PartialEq)]
pub struct Mutant {
    /// What was done to it.
    pub name: String,
    /// What is left.
    pub trial: Trial,
}

impl Mutant {
    /// A copy of a trial to which something is done.
    fn of(trial: &Trial, name: impl Into<String>, change: impl FnOnce(&mut Trial)) -> Self {
        let mut mutant = trial.clone();
        change(&mut mutant);
        Self { name: name.into(), trial: mutant }
    }
}

/// All mutants of a trial that differ from it. `other` is what an agent said about something else.
pub fn mutants(trial: &Trial, assertions: &[Assertion], other: Option<&str>) -> Vec<Mutant> {
    let mut all = said::mutants(trial, other);
    all.extend(did::mutants(trial));
    all.extend(changed::mutants(trial));
    all.extend(spent::mutants(trial));
    all.extend(assertions.iter().flat_map(|one| against::mutants(trial, one)));
    all.retain(|mutant| mutant.trial != *trial);
    all
}

/// What mutants did to the assertions of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Teeth {
    /// How many mutants there were.
    pub mutants: usize,
    /// Each assertion.
    pub assertions: Vec<Tooth>,
    /// The mutants that pass.
    pub survivors: Vec<String>,
}

/// One assertion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tooth {
    /// How it is called.
    pub name: String,
    /// The mutants that break it; without any, it cannot fail.
    pub broken_by: Vec<String>,
}

impl Tooth {
    /// Whether some mutant breaks it.
    pub fn can_fail(&self) -> bool {
        !self.broken_by.is_empty()
    }
}

/// Grades all mutants of a trial that passed.
pub fn bite(trial: &Trial, assertions: &[Assertion], threshold: Option<f64>, other: Option<&str>) -> Teeth {
    let mut teeth = Teeth {
        mutants: 0,
        assertions: assertions
            .iter()
            .map(|one| Tooth { name: one.name.clone(), broken_by: Vec::new() })
            .collect(),
        survivors: Vec::new(),
    };
    for mutant in mutants(trial, assertions, other) {
        let (graded, verdict) = grade(&mutant.trial, assertions, threshold);
        teeth.mutants += 1;
        for (tooth, one) in teeth.assertions.iter_mut().zip(&graded) {
            if matches!(one.grade, Grade::Broken { .. }) {
                tooth.broken_by.push(mutant.name.clone());
            }
        }
        if verdict == Verdict::Pass {
            teeth.survivors.push(mutant.name);
        }
    }
    teeth
}

impl Teeth {
    /// Of two trials of one case: what breaks an assertion once can break it.
    pub fn and(mut self, other: Self) -> Self {
        self.mutants += other.mutants;
        for (mine, theirs) in self.assertions.iter_mut().zip(other.assertions) {
            add(&mut mine.broken_by, theirs.broken_by);
        }
        add(&mut self.survivors, other.survivors);
        self
    }

    /// Whether every assertion can fail.
    pub fn all_can_fail(&self) -> bool {
        self.assertions.iter().all(Tooth::can_fail)
    }
}

/// What is not there yet.
fn add(all: &mut Vec<String>, more: Vec<String>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

#[cfg(test)]
mod tests;
