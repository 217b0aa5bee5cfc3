//! What was required, and whether it holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cell, Cost};
use crate::case::{Eval, Require};
use crate::statistics::{pass_at_k, pass_hat_k};
use crate::trial::Variant;

/// One thing that was required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requirement {
    /// Of whom, of what case, and what.
    pub what: String,
    /// Whether it holds.
    pub holds: bool,
    /// What it came to.
    pub because: String,
}

type Estimate = fn(u64, u64, u64) -> Option<f64>;

/// All of them. Without a word of the user every sample of every case must pass.
pub(super) fn all(eval: &Eval, cells: &[Cell]) -> Vec<Requirement> {
    let mut found = Vec::new();
    let own_words = |require: &Require| *require != Require::default();
    let says_nothing =
        !own_words(&eval.require) && !eval.cases.iter().any(|case| own_words(&case.file.require));
    let strict = Require { pass_rate: Some(1.0), ..Require::default() };
    let of_eval = if says_nothing { strict } else { eval.require };
    let mut variants: Vec<&Variant> = cells.iter().map(|cell| &cell.variant).collect();
    variants.dedup();
    variants.sort();
    variants.dedup();
    for variant in variants {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.variant == *variant).collect();
        check(&variant.to_string(), &of_eval, &own, &mut found);
    }
    let mut of_case: BTreeMap<&str, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        of_case.entry(&cell.case).or_default().push(cell);
    }
    for case in eval.cases.iter().filter(|case| own_words(&case.file.require)) {
        for cell in of_case.get(case.name.as_str()).into_iter().flatten() {
            check(&format!("{}, {}", cell.case, cell.variant), &case.file.require, &[cell], &mut found);
        }
    }
    found
}

fn check(who: &str, require: &Require, cells: &[&Cell], found: &mut Vec<Requirement>) {
    let sum = |count: fn(&Cell) -> u64| cells.iter().map(|cell| count(cell)).sum::<u64>();
    let (passed, samples, errors) = (sum(|cell| cell.passed), sum(Cell::samples), sum(|cell| cell.errors));
    let mut add = |what: String, holds: bool, because: String| {
        found.push(Requirement { what: format!("{who}: {what}"), holds, because });
    };
    if let Some(least) = require.pass_rate {
        // What could not be said is not what was required.
        #[expect(clippy::cast_precision_loss, reason = "trials are counted in thousands")]
        let holds = samples > 0 && passed as f64 / samples as f64 >= least && (least < 1.0 || errors == 0);
        add(format!("pass rate {least}"), holds, told(passed, samples, errors));
    }
    let estimates: [(&str, _, Estimate); 2] =
        [("pass@", require.pass_at, pass_at_k), ("pass^", require.pass_hat, pass_hat_k)];
    for (name, at, estimate) in estimates {
        let Some(at) = at else { continue };
        let values: Vec<f64> =
            cells.iter().filter_map(|cell| estimate(cell.samples(), cell.passed, at.k)).collect();
        #[expect(clippy::cast_precision_loss, reason = "cases are counted in thousands")]
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let complete = values.len() == cells.len() && !cells.is_empty();
        let because = if complete {
            format!("{mean:.3}")
        } else {
            format!("{} of {} cases have {} samples", values.len(), cells.len(), at.k)
        };
        add(format!("{name}{} of {}", at.k, at.least), complete && mean >= at.least, because);
    }
    if let Some(most) = require.max_cost {
        let cost = cells.iter().fold(Cost::default(), |sum, cell| sum.and(cell.cost));
        let unknown = if cost.unknown > 0 {
            format!(", and {} trials do not tell theirs", cost.unknown)
        } else {
            String::new()
        };
        add(
            format!("at most ${most}"),
            cost.usd <= most && cost.unknown == 0,
            format!("${:.4}{unknown}", cost.usd),
        );
    }
    if let Some(most) = require.max_errors {
        add(format!("at most {most} errors"), errors <= most, format!("{errors} errors"));
    }
}

fn told(passed: u64, samples: u64, errors: u64) -> String {
    let errors = match errors {
        0 => String::new(),
        1 => ", and 1 error".to_owned(),
        errors => format!(", and {errors} errors"),
    };
    format!("{passed} of {samples} passed{errors}")
}
