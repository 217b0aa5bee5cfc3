//! `gh api`, for the two questions that have no verb of their own.

use super::checks::CheckRuns;
use super::state::{MockState, SERVER_ERROR};
use super::{Call, MockGhError, Reply};

impl Call<'_> {
    pub(super) fn api(&self, state: &mut MockState) -> Result<Reply, MockGhError> {
        let path = self.arguments.target.as_deref().unwrap_or_default();
        let unknown = || {
            let played = "repos/OWNER/REPO/commits/SHA/check-runs, repos/OWNER/REPO/commits/SHA/status";
            MockGhError::Usage(format!("`api {path}` is not played: expected {played}"))
        };
        if self.arguments.value("method").is_some_and(|method| method != "GET") {
            return Err(unknown());
        }
        let parts: Vec<&str> =
            path.split('?').next().unwrap_or_default().trim_start_matches('/').split('/').collect();
        match parts[..] {
            ["repos", _, _, "commits", _, "check-runs"] => {
                let Some(runs) = CheckRuns::of(state.next_checks(self.env)?) else {
                    return Ok(Reply::fails(SERVER_ERROR));
                };
                let runs =
                    serde_json::to_string(&runs).map_err(|error| MockGhError::Usage(error.to_string()))?;
                Ok(Reply::says(runs))
            }
            ["repos", _, _, "commits", _, "status"] => {
                Ok(Reply::says(r#"{"state":"pending","total_count":0,"statuses":[]}"#))
            }
            _ => Err(unknown()),
        }
    }
}
