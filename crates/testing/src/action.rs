//! The action `run_tests`: what an agent asks for, and what it is answered.

use serde::{Deserialize, Serialize};

use crate::{FailureAnalysis, Framework, TestReport, Verdict};

/// An agent asks for tests to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunTests {
    /// Always `run_tests`.
    pub action: RunTestsAction,
    /// Which tests, and how.
    #[serde(default)]
    pub parameters: RunTestsParameters,
}

/// The name of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunTestsAction {
    /// Run tests.
    #[default]
    RunTests,
}

/// Which tests, and how. Everything may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunTestsParameters {
    /// Only tests whose names fit, such as `TestFoo*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_pattern: Option<String>,
    /// The runner, if it is not to be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<Framework>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunTestsAnswer {
    /// What the run came to.
    pub test_result: ActionResult,
}

/// What a run came to, as briefly as an agent needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionResult {
    /// Whether the verdict is `passed`.
    pub success: bool,
    /// What to think of the run.
    pub verdict: Verdict,
    /// Why it is not better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// How many of each kind.
    pub summary: ActionSummary,
    /// What failed; not all of it if that is much.
    pub failed_tests: Vec<ActionFailure>,
    /// What is behind it; none if nothing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<ActionAnalysis>,
}

/// Counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionSummary {
    /// All that ran or were left out on purpose.
    pub total: u64,
    /// Good ones.
    pub passed: u64,
    /// Bad ones.
    pub failed: u64,
    /// Left out.
    pub skipped: u64,
}

/// A test that failed, or an error outside of tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionFailure {
    /// The test, or what could not be built or loaded.
    pub name: String,
    /// What happened.
    pub error: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What is behind the failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionAnalysis {
    /// What most of them go back to.
    pub root_cause: Option<String>,
    /// What to look at.
    pub suggestions: Vec<String>,
    /// The files to look at.
    pub affected_files: Vec<String>,
}

/// An agent's context is dear: more failures than this are counted, not listed.
const LISTED: usize = 50;

impl RunTestsAnswer {
    /// The answer for a run.
    pub fn new(report: &TestReport, analysis: &FailureAnalysis) -> Self {
        let summary = &report.summary;
        let tests = analysis.failed_tests.iter().map(|test| ActionFailure {
            name: test.name.clone(),
            error: test.error.clone(),
            file: test.file.clone(),
            line: test.line,
        });
        let problems =
            analysis.groups.iter().filter(|group| group.scope.is_some()).map(|group| ActionFailure {
                name: group.test_names.first().cloned().unwrap_or_default(),
                error: group.message.clone(),
                file: group.file.clone(),
                line: group.line,
            });
        let failed_tests: Vec<ActionFailure> = problems.chain(tests).take(LISTED).collect();
        let behind = ActionAnalysis {
            root_cause: analysis.root_cause.clone(),
            suggestions: analysis.suggestions.clone(),
            affected_files: analysis.affected_files.clone(),
        };
        Self {
            test_result: ActionResult {
                success: report.success,
                verdict: report.verdict,
                reasons: report.reasons.clone(),
                summary: ActionSummary {
                    total: summary.total,
                    passed: summary.passed,
                    failed: summary.failed + summary.timed_out,
                    skipped: summary.skipped + summary.xfailed,
                },
                failed_tests,
                analysis: (!report.success).then_some(behind),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{compared, passed, report};
    use crate::{FailureContext, analyse};
    use insta::assert_snapshot;

    #[test]
    fn the_request_is_read_as_agents_write_it() {
        let text = r#"{"action": "run_tests", "parameters": {"test_pattern": "TestFoo*", "framework": "go", "timeout_seconds": 300}}"#;
        let request: RunTests = serde_json::from_str(text).unwrap();
        assert_eq!(request.parameters.framework, Some(Framework::Go));
        assert_eq!(request.parameters.test_pattern.as_deref(), Some("TestFoo*"));
        assert_eq!(request.parameters.timeout_seconds, Some(300));
        let least: RunTests = serde_json::from_str(r#"{"action": "run_tests"}"#).unwrap();
        assert_eq!(least.parameters, RunTestsParameters::default());
    }

    #[test]
    fn a_request_with_a_mistake_is_told_what_is_wrong() {
        let error = |text: &str| serde_json::from_str::<RunTests>(text).unwrap_err().to_string();
        assert_snapshot!(error(r#"{"action": "run_test"}"#), @"unknown variant `run_test`, expected `run_tests` at line 1 column 21");
        assert_snapshot!(error(r#"{"action": "run_tests", "parameters": {"pattern": "x"}}"#), @"unknown field `pattern`, expected one of `test_pattern`, `framework`, `timeout_seconds` at line 1 column 48");
    }

    #[test]
    fn the_answer_has_the_failures_and_what_is_behind_them() {
        let report = report(
            Framework::Go,
            vec![passed("TestA"), compared("TestTotal", ("calc_test.go", 45), "100", "99")],
        );
        let answer = RunTestsAnswer::new(&report, &analyse(&report, &FailureContext::default()));
        assert_snapshot!(serde_json::to_string_pretty(&answer).unwrap(), @r#"
        {
          "test_result": {
            "success": false,
            "verdict": "failed",
            "reasons": [
              "1 test failed"
            ],
            "summary": {
              "total": 2,
              "passed": 1,
              "failed": 1,
              "skipped": 0
            },
            "failed_tests": [
              {
                "name": "TestTotal",
                "error": "expected 100, got 99",
                "file": "calc_test.go",
                "line": 45
              }
            ],
            "analysis": {
              "root_cause": "calc_test.go:45: expected 100, got 99",
              "suggestions": [
                "calc_test.go:45: got 99, expected 100"
              ],
              "affected_files": [
                "calc_test.go"
              ]
            }
          }
        }
        "#);
    }

    #[test]
    fn two_projects_are_one_answer_and_two_causes_are_no_common_one() {
        let go = report(Framework::Go, vec![compared("TestTotal", ("calc_test.go", 45), "100", "99")]);
        let jest =
            report(Framework::Jest, vec![passed("adds"), compared("divides", ("a.test.js", 3), "1", "2")]);
        let good = report(Framework::Pytest, vec![passed("test_it")]);
        let analysed = |report: &TestReport| analyse(report, &FailureContext::default());
        let answer = |reports: &[&TestReport]| {
            let analyses: Vec<FailureAnalysis> = reports.iter().map(|report| analysed(report)).collect();
            let whole = TestReport::together(reports.iter().copied());
            RunTestsAnswer::new(&whole, &FailureAnalysis::together(analyses.iter())).test_result
        };
        let both = answer(&[&go, &jest]);
        assert_eq!((both.summary.total, both.summary.failed), (3, 2));
        let names: Vec<&str> = both.failed_tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["TestTotal", "divides"]);
        let behind = both.analysis.unwrap();
        assert_eq!(behind.root_cause, None);
        assert_eq!(behind.affected_files, ["calc_test.go", "a.test.js"]);
        let one_bad = answer(&[&good, &go]);
        assert!(!one_bad.success);
        let cause = one_bad.analysis.unwrap().root_cause.unwrap();
        assert_eq!(cause, "calc_test.go:45: expected 100, got 99");
    }
}
