//! `run_tests`, on a runner that says what it was told.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use insta::assert_snapshot;
use rehearsal_crew::{CallEnd, TestRunError, TestRunner};
use rehearsal_testing::{RunTestsAnswer, RunTestsParameters};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::place::Place;

/// Remembers what it was asked.
#[derive(Default)]
pub(crate) struct Runner {
    asked: Mutex<Vec<RunTestsParameters>>,
}

#[async_trait]
impl TestRunner for Runner {
    async fn run_tests(
        &self,
        parameters: &RunTestsParameters,
        _: &CancellationToken,
    ) -> Result<RunTestsAnswer, TestRunError> {
        self.asked.lock().unwrap().push(parameters.clone());
        if parameters.test_pattern.as_deref() == Some("none") {
            return Err(TestRunError("there are no tests".into()));
        }
        let answer = json!({"test_result": {
            "success": true, "verdict": "passed",
            "summary": {"total": 1, "passed": 1, "failed": 0, "skipped": 0}, "failed_tests": [],
        }});
        Ok(serde_json::from_value(answer).unwrap())
    }
}

#[tokio::test]
async fn tests_are_asked_for_and_answered_as_with_the_action() {
    let mut place = Place::new();
    let runner = Arc::new(Runner::default());
    place.workplace.tests = Some(Arc::clone(&runner) as _);
    let text = place
        .text("run_tests", json!({"test_pattern": "TestFoo*", "framework": "go", "timeout_seconds": 9}))
        .await;
    assert_snapshot!(text, @r#"
    {
      "test_result": {
        "success": true,
        "verdict": "passed",
        "summary": {
          "total": 1,
          "passed": 1,
          "failed": 0,
          "skipped": 0
        },
        "failed_tests": []
      }
    }
    "#);
    let asked = runner.asked.lock().unwrap().pop().unwrap();
    assert_eq!((asked.test_pattern.as_deref(), asked.timeout_seconds), (Some("TestFoo*"), Some(9)));
    assert_eq!(place.text("run_tests", json!({"test_pattern": "none"})).await, "ERROR: there are no tests");
    let wrong = place.call("run_tests", json!({"framework": "nonsense"})).await;
    assert_eq!(wrong.end, CallEnd::Malformed);
}
