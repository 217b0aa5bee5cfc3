//! What the checks of a commit say.

use serde::Serialize;

use super::state::{Kept, MockChecks, MockState, SERVER_ERROR};
use super::{Call, MockGhError, Reply};

/// `gh pr checks` ends with this while some run.
const PENDING: u8 = 8;

/// The answer of `commits/SHA/check-runs`.
#[derive(Debug, Serialize)]
pub(super) struct CheckRuns {
    total_count: usize,
    check_runs: Vec<CheckRun>,
}

#[derive(Debug, Serialize)]
struct CheckRun {
    name: &'static str,
    status: &'static str,
    conclusion: Option<&'static str>,
}

impl CheckRuns {
    /// None if GitHub is to give no answer.
    pub(super) fn of(checks: MockChecks) -> Option<Self> {
        let (status, conclusion) = match checks {
            MockChecks::None => return Some(Self { total_count: 0, check_runs: Vec::new() }),
            MockChecks::Pending => ("in_progress", None),
            MockChecks::Red => ("completed", Some("failure")),
            MockChecks::Green => ("completed", Some("success")),
            MockChecks::Unreadable => return None,
        };
        Some(Self { total_count: 1, check_runs: vec![CheckRun { name: "ci", status, conclusion }] })
    }
}

impl Call<'_> {
    /// `gh pr checks`: a table that ends with its own status.
    pub(super) async fn pr_checks(&self, state: &mut MockState, kept: Kept) -> Result<Reply, MockGhError> {
        if let Err(reply) = self.find(state, kept).await? {
            return Ok(reply);
        }
        let (bucket, code) = match state.next_checks(self.env)? {
            MockChecks::None => return Ok(Reply::fails("no checks reported on the branch")),
            MockChecks::Unreadable => return Ok(Reply::fails(SERVER_ERROR)),
            MockChecks::Pending => ("pending", PENDING),
            MockChecks::Red => ("fail", 1),
            MockChecks::Green => ("pass", 0),
        };
        let stdout = match self.arguments.value("json") {
            None => format!("ci\t{bucket}\t1s\thttps://github.com/test/repo/actions/runs/1"),
            Some("name,bucket" | "bucket,name") => format!("[{{\"name\":\"ci\",\"bucket\":\"{bucket}\"}}]"),
            Some(other) => {
                let told = format!("`pr checks --json {other}` is not played: expected name,bucket");
                return Err(MockGhError::Usage(told));
            }
        };
        Ok(Reply { stdout, code, ..Reply::default() })
    }
}
