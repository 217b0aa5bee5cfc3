//! A run compared with one of the base: what is new, what failed before, what is fixed.

use std::collections::HashMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::analyse::failed;
use crate::words::{count, one_line};
use crate::{Problem, TestCase, TestReport, TestStatus};

/// How a failure stands to the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AgainstBase {
    /// It did not fail before.
    New,
    /// It failed before.
    Known,
    /// It failed before and is good now.
    Fixed,
}

/// A test, or something outside of tests, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// Its package, class or file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// Its name.
    pub name: String,
}

/// What changed between two runs. Every list is in the order of the report that it is from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// What it is compared with, such as `main`.
    pub base: String,
    /// Whether the base passed its tests.
    #[serde(default)]
    pub base_is_green: bool,
    /// Failing now, and not before.
    pub new: Vec<Compared>,
    /// Failing now as before.
    pub known: Vec<Compared>,
    /// Failing before, and good now.
    pub fixed: Vec<Compared>,
    /// Good before, and not there any more: whoever deletes a test has not made it pass.
    pub gone: Vec<Compared>,
    /// What makes the comparison unsure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// Compares a run with one of the base.
pub fn compare(base: &str, before: &TestReport, now: &TestReport) -> Comparison {
    let (old, new) = (Known::of(before), Known::of(now));
    let mut comparison =
        Comparison { base: base.to_owned(), base_is_green: before.success, ..Comparison::default() };
    for key in new.order.iter().filter(|key| new.is_bad(key)) {
        let list = if old.is_bad(key) { &mut comparison.known } else { &mut comparison.new };
        list.push(key.compared());
    }
    let complete = is_complete(now);
    for key in &old.order {
        match (old.is_bad(key), new.ended.get(key)) {
            (true, Some(false)) => comparison.fixed.push(key.compared()),
            // An error outside of tests is gone if it is not told again.
            (true, None) if key.of_problem && complete => comparison.fixed.push(key.compared()),
            (false, None) if complete => comparison.gone.push(key.compared()),
            _ => {}
        }
    }
    comparison.doubts = doubts(base, before, now);
    comparison
}

impl Comparison {
    /// How a failure of now stands to the base; none if it did not fail in either.
    pub fn of(&self, package: &str, name: &str) -> Option<AgainstBase> {
        let has = |list: &[Compared]| list.iter().any(|it| it.package == package && it.name == name);
        [(&self.new, AgainstBase::New), (&self.known, AgainstBase::Known), (&self.fixed, AgainstBase::Fixed)]
            .into_iter()
            .find_map(|(list, since)| has(list).then_some(since))
    }
}

/// For people: the counts, then the names that matter.
impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lists =
            [("new", &self.new), ("known", &self.known), ("fixed", &self.fixed), ("gone", &self.gone)];
        let counts: Vec<String> = lists
            .iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(what, list)| format!("{} {what}", list.len()))
            .collect();
        let counts = if counts.is_empty() { "no difference".to_owned() } else { counts.join(", ") };
        writeln!(f, "compared with `{}`: {counts}", self.base)?;
        for (what, list) in lists.into_iter().filter(|(what, _)| *what != "known") {
            f.write_str(&listed(what, list))?;
        }
        self.doubts.iter().try_for_each(|doubt| writeln!(f, "  note: {doubt}"))
    }
}

fn listed(what: &str, list: &[Compared]) -> String {
    const MOST: usize = 10;
    let mut text = String::new();
    for it in list.iter().take(MOST) {
        let _ = writeln!(text, "  {what:<5}  {}", one_line(&it.name, 160));
    }
    if list.len() > MOST {
        let _ = writeln!(text, "  {what:<5}  … and {} more", list.len() - MOST);
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key<'a> {
    of_problem: bool,
    package: &'a str,
    name: &'a str,
}

impl Key<'_> {
    fn compared(&self) -> Compared {
        Compared { package: self.package.to_owned(), name: self.name.to_owned() }
    }
}

/// What a report knows of each test, and of errors outside of tests.
struct Known<'a> {
    order: Vec<Key<'a>>,
    /// Whether it ended badly.
    ended: HashMap<Key<'a>, bool>,
}

impl<'a> Known<'a> {
    fn of(report: &'a TestReport) -> Self {
        let mut known = Self { order: Vec::new(), ended: HashMap::new() };
        let ran = |test: &&TestCase| !matches!(test.status, TestStatus::NotRun);
        for test in report.tests.iter().filter(ran) {
            known.add(
                Key { of_problem: false, package: &test.package, name: &test.name },
                failed(test.status),
            );
        }
        let problems = [&report.build_errors, &report.suite_errors, &report.run_errors];
        for problem in problems.into_iter().flatten() {
            known.add(key_of(problem), true);
        }
        known
    }

    fn add(&mut self, key: Key<'a>, bad: bool) {
        if let Some(known) = self.ended.get_mut(&key) {
            *known |= bad;
        } else {
            self.ended.insert(key, bad);
            self.order.push(key);
        }
    }

    fn is_bad(&self, key: &Key<'a>) -> bool {
        self.ended.get(key).copied().unwrap_or(false)
    }
}

/// A problem is the same if it says the same about the same thing; lines move.
fn key_of(problem: &Problem) -> Key<'_> {
    let package =
        if problem.name.is_empty() { problem.file.as_deref().unwrap_or_default() } else { &problem.name };
    Key { of_problem: true, package, name: problem.message.lines().next().unwrap_or_default() }
}

/// Whether every test of the run is in its report.
fn is_complete(report: &TestReport) -> bool {
    !report.partial && report.tests.len() as u64 >= report.summary.total
}

fn doubts(base: &str, before: &TestReport, now: &TestReport) -> Vec<String> {
    let mut doubts = Vec::new();
    for (report, whose) in [(before, format!("the run of `{base}`")), (now, "this run".to_owned())] {
        if report.partial {
            doubts.push(format!("{whose} did not come to its end"));
        } else if !is_complete(report) {
            let kept = report.tests.len() as u64;
            let total = count(report.summary.total, "test", "tests");
            doubts.push(format!("of {whose} only {kept} of {total} could be compared"));
        }
    }
    if before.framework != now.framework {
        doubts.push(format!("`{base}` was tested with {}, this with {}", before.framework, now.framework));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{failed, passed, problem, report};
    use crate::{Framework, ProblemScope};
    use insta::assert_snapshot;

    fn bad(name: &str) -> TestCase {
        failed(name, ("a_test.go", 1), "boom")
    }

    #[test]
    fn each_failure_is_new_known_or_fixed() {
        let before = report(Framework::Go, vec![passed("A"), bad("B"), bad("C"), passed("D")]);
        let now = report(Framework::Go, vec![bad("A"), bad("B"), passed("C"), bad("E")]);
        let comparison = compare("main", &before, &now);
        assert_eq!(comparison.of("", "A"), Some(AgainstBase::New));
        assert_eq!(comparison.of("", "B"), Some(AgainstBase::Known));
        assert_eq!(comparison.of("", "C"), Some(AgainstBase::Fixed));
        assert_snapshot!(comparison, @r"
        compared with `main`: 2 new, 1 known, 1 fixed, 1 gone
          new    A
          new    E
          fixed  C
          gone   D
        ");
    }

    #[test]
    fn a_build_error_is_fixed_when_it_is_not_told_again() {
        let mut before = report(Framework::Go, vec![]);
        before.build_errors = vec![problem(ProblemScope::Build, "calc", ("calc.go", 3), "undefined: x")];
        let mut now = before.clone();
        now.build_errors[0].line = Some(5);
        assert_eq!(compare("main", &before, &now).known.len(), 1, "lines move");
        let now = report(Framework::Go, vec![passed("A")]);
        assert_eq!(compare("main", &before, &now).fixed[0].name, "undefined: x");
    }

    #[test]
    fn of_a_run_that_was_cut_nothing_is_called_gone() {
        let before = report(Framework::Go, vec![passed("A"), passed("B")]);
        let mut now = report(Framework::Go, vec![passed("A")]);
        now.partial = true;
        assert_snapshot!(compare("main", &before, &now), @r"
        compared with `main`: no difference
          note: this run did not come to its end
        ");
    }
}
