//! What really happened in a sample, and how a report differs from it.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use rehearsal_testing::{Problem, TestCase, TestReport, TestStatus};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Sample {
    pub(crate) id: String,
    pub(crate) dir: String,
    pub(crate) exit_code: Option<i32>,
    #[serde(default)]
    pub(crate) signal: Option<i32>,
    files: BTreeMap<String, Option<String>>,
    truth: Truth,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Truth {
    total: Option<u64>,
    passed: Option<u64>,
    failed: Option<u64>,
    skipped: Option<u64>,
    xfailed: Option<u64>,
    failing: Vec<Expected>,
    suite_errors: Vec<Expected>,
    build_errors: Vec<Expected>,
    run_errors: Vec<Expected>,
    flaky: Names,
    in_progress: Names,
    traps: Names,
    package_failed: Names,
    timed_out: bool,
    crashed: bool,
    success: Option<bool>,
}

/// A list of names; some samples only count.
#[derive(Debug, Default)]
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(input)?;
        let names =
            value.as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned));
        Ok(Self(names.collect()))
    }
}

#[derive(Debug, Deserialize)]
struct Expected {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    message_contains: Option<String>,
}

/// All samples of runs; what sandboxed programs print is read elsewhere.
pub(crate) fn samples() -> Vec<Sample> {
    let index = fs_err::read_to_string(crate::fixtures().join("index.jsonl")).unwrap();
    let all = index.lines().map(|line| serde_json::from_str::<Sample>(line).unwrap());
    all.filter(|sample| sample.dir != "denials").collect()
}

impl Sample {
    pub(crate) fn paths(&self) -> Vec<Utf8PathBuf> {
        let dir = crate::fixtures().join(&self.dir);
        self.files.values().flatten().map(|name| dir.join(name.trim_end_matches('/'))).collect()
    }

    /// Whether a file tells the whole of the run by itself.
    pub(crate) fn is_whole(file: &Utf8PathBuf) -> bool {
        let name = file.file_name().unwrap();
        !name.contains("stderr")
            && !name.ends_with(".err")
            && !name.ends_with(".stdout.txt")
            && !file.is_dir()
    }

    /// Everything in which a report differs from the truth. Of a report read alone, places and messages are not
    /// asked: not every format has them.
    pub(crate) fn mismatches(&self, report: &TestReport, whole: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        self.counts(report, &mut wrong);
        self.names(report, &mut wrong);
        for expected in &self.truth.failing {
            wrong.extend(failing(report, expected, whole));
        }
        let problems: Vec<&Problem> =
            [&report.suite_errors, &report.build_errors, &report.run_errors].into_iter().flatten().collect();
        if whole {
            for (what, expected) in self.truth.problems() {
                if !problems.iter().any(|problem| fits(problem, expected)) {
                    wrong.push(format!("{what} {expected:?} is missing in {problems:#?}"));
                }
            }
        }
        if whole
            && self.truth.problems().next().is_none()
            && self.truth.package_failed.0.is_empty()
            && !problems.is_empty()
            && self.truth.total.is_some()
            && !self.truth.was_cut()
        {
            wrong.push(format!("problems that are none: {problems:#?}"));
        }
        let exited_well = self.exit_code.unwrap_or(0) == 0 && self.signal.is_none();
        let success = self.truth.success.unwrap_or_else(|| exited_well && self.truth.is_good());
        if report.success != success {
            wrong.push(format!("success is {} ({}, {:?})", report.success, report.verdict, report.reasons));
        }
        wrong
    }

    fn counts(&self, report: &TestReport, wrong: &mut Vec<String>) {
        let (truth, summary) = (&self.truth, &report.summary);
        for (what, truth, ours) in [
            ("total", truth.total, summary.total),
            ("passed", truth.passed, summary.passed),
            ("failed", truth.failed, summary.failed),
            ("skipped", truth.skipped, summary.skipped),
            ("xfailed", truth.xfailed, summary.xfailed),
        ] {
            if truth.is_some_and(|truth| truth != ours) {
                wrong.push(format!("{what} is {ours}, not {}", truth.unwrap_or_default()));
            }
        }
    }

    fn names(&self, report: &TestReport, wrong: &mut Vec<String>) {
        for (what, names, status) in [
            ("flaky", &self.truth.flaky, TestStatus::Flaky),
            ("running at the end", &self.truth.in_progress, TestStatus::Timeout),
        ] {
            for name in &names.0 {
                let told = report.tests.iter().any(|test| test.name == *name && test.status == status);
                let suite = report.suite_errors.iter().any(|problem| problem.name == *name);
                if !told && !suite {
                    wrong.push(format!("{name} is not told as {what}"));
                }
            }
        }
        for package in &self.truth.package_failed.0 {
            let told = [&report.suite_errors, &report.run_errors].into_iter().flatten();
            if !told.into_iter().any(|problem| problem.name == *package) {
                wrong.push(format!("{package} is not told as failed"));
            }
        }
        for trap in &self.truth.traps.0 {
            if report.tests.iter().any(|test| test.name.contains(trap.as_str())) {
                wrong.push(format!("{trap} is no test"));
            }
        }
    }
}

impl Truth {
    fn problems(&self) -> impl Iterator<Item = (&'static str, &Expected)> {
        let tag = |what: &'static str| move |expected| (what, expected);
        self.suite_errors
            .iter()
            .map(tag("suite error"))
            .chain(self.build_errors.iter().map(tag("build error")))
            .chain(self.run_errors.iter().map(tag("run error")))
    }

    /// Whether what was running may be told as a problem.
    fn was_cut(&self) -> bool {
        self.timed_out || self.crashed
    }

    fn is_good(&self) -> bool {
        self.total.is_some_and(|total| total > 0)
            && self.failed == Some(0)
            && self.problems().next().is_none()
    }
}

fn failing(report: &TestReport, expected: &Expected, whole: bool) -> Option<String> {
    let name = expected.name.as_deref().unwrap();
    let named: Vec<&TestCase> = report.tests.iter().filter(|test| test.name == name).collect();
    let Some(test) = named.iter().find(|test| test.status.is_failure()) else {
        let failing: Vec<&str> = report
            .tests
            .iter()
            .filter(|test| test.status.is_failure())
            .map(|test| test.name.as_str())
            .collect();
        return Some(format!("`{name}` is not told as failed; these are: {failing:?}"));
    };
    if !whole {
        return None;
    }
    let place = (test.file.as_deref(), test.line);
    let told = expected.file.is_none() || place == (expected.file.as_deref(), expected.line.or(test.line));
    let message = expected.message_contains.as_deref().unwrap_or_default();
    let said = [&test.error, &test.stack_trace, &test.output].iter().any(|text| text.contains(message));
    match (told, said) {
        (false, _) => Some(format!("`{name}` is at {place:?}, not {:?}:{:?}", expected.file, expected.line)),
        (_, false) => Some(format!("`{name}` does not say `{message}` but `{}`", test.error)),
        (true, true) => None,
    }
}

fn fits(problem: &Problem, expected: &Expected) -> bool {
    let file = expected.file.is_none() || problem.file == expected.file;
    let line = expected.line.is_none() || problem.line == expected.line;
    let message = expected.message_contains.as_deref().unwrap_or_default();
    file && line && problem.message.contains(message)
}
