//! What `gh` answers, as it is written, and what it means.

use serde::{Deserialize, Deserializer};

use crate::forge::{Checks, Mergeable, PrState, PullRequest};
use rehearsal_git::Oid;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PullRequestAnswer {
    number: u64,
    url: String,
    title: String,
    body: String,
    state: String,
    head_ref_name: String,
    #[serde(deserialize_with = "oid_or_nothing")]
    head_ref_oid: Option<Oid>,
    base_ref_name: String,
    merge_state_status: String,
    mergeable: String,
    merge_commit: Option<CommitAnswer>,
}

#[derive(Debug, Deserialize)]
struct CommitAnswer {
    #[serde(deserialize_with = "oid_or_nothing")]
    oid: Option<Oid>,
}

impl From<PullRequestAnswer> for PullRequest {
    fn from(answer: PullRequestAnswer) -> Self {
        let commit = answer.merge_commit.and_then(|commit| commit.oid);
        let state = match answer.state.as_str() {
            "MERGED" => PrState::Merged { commit },
            "CLOSED" => PrState::Closed,
            _ => PrState::Open,
        };
        Self {
            number: answer.number,
            url: answer.url,
            title: answer.title,
            body: answer.body,
            head: answer.head_ref_name,
            head_commit: answer.head_ref_oid,
            base: answer.base_ref_name,
            state,
            mergeable: mergeable(&answer.mergeable, &answer.merge_state_status),
        }
    }
}

/// GitHub leaves the id of a commit that is not there empty.
fn oid_or_nothing<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Oid>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() { Ok(None) } else { Oid::new(&text).map(Some).map_err(serde::de::Error::custom) }
}

/// `mergeable` is about conflicts, the status about all else. `BEHIND` and `UNSTABLE` can be merged, `HAS_HOOKS` too.
fn mergeable(conflicts: &str, status: &str) -> Mergeable {
    match (conflicts, status) {
        ("CONFLICTING", _) | (_, "DIRTY" | "CONFLICTING") => Mergeable::Conflicting,
        (_, "CLEAN" | "UNSTABLE" | "HAS_HOOKS" | "BEHIND") => Mergeable::Clean,
        (_, "BLOCKED" | "DRAFT") => Mergeable::Blocked { why: status.to_lowercase() },
        _ => Mergeable::Unknown,
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Comments {
    pub(super) comments: Vec<CommentAnswer>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CommentAnswer {
    pub(super) body: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct CheckRuns {
    pub(super) total_count: usize,
    pub(super) check_runs: Vec<CheckRun>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CheckRun {
    name: String,
    status: String,
    conclusion: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StatusAnswer {
    statuses: Vec<Status>,
}

#[derive(Debug, Deserialize)]
struct Status {
    context: String,
    state: String,
}

/// Both kinds of checks together. One that failed decides, even while others run.
pub(super) fn combine(runs: Vec<CheckRuns>, statuses: StatusAnswer) -> Checks {
    let runs = runs.into_iter().flat_map(|page| page.check_runs);
    let runs = runs.map(|run| {
        let said =
            if run.status == "completed" { run.conclusion.unwrap_or_default() } else { "pending".into() };
        (run.name, said)
    });
    let statuses = statuses.statuses.into_iter().map(|status| (status.context, status.state));
    let (mut passed, mut pending, mut failed) = (0, Vec::new(), Vec::new());
    for (name, said) in runs.chain(statuses) {
        match said.as_str() {
            "success" | "neutral" | "skipped" => passed += 1,
            "pending" => pending.push(name),
            _ => failed.push(name),
        }
    }
    if !failed.is_empty() {
        Checks::Failed { names: failed }
    } else if !pending.is_empty() {
        Checks::Pending { names: pending }
    } else if passed > 0 {
        Checks::Passed { count: passed }
    } else {
        Checks::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(runs: &[(&str, Option<&str>)], statuses: &[&str]) -> Checks {
        let run = |(status, conclusion): &(&str, Option<&str>)| CheckRun {
            name: "run".into(),
            status: (*status).into(),
            conclusion: conclusion.map(str::to_owned),
        };
        let check_runs: Vec<CheckRun> = runs.iter().map(run).collect();
        let status = |state: &&str| Status { context: "status".into(), state: (*state).into() };
        let statuses = StatusAnswer { statuses: statuses.iter().map(status).collect() };
        combine(vec![CheckRuns { total_count: check_runs.len(), check_runs }], statuses)
    }

    #[test]
    fn no_checks_are_not_a_pass() {
        assert_eq!(checks(&[], &[]), Checks::None);
    }

    #[test]
    fn one_failure_decides_and_one_that_runs_keeps_all_waiting() {
        let (green, red, runs) =
            (("completed", Some("success")), ("completed", Some("timed_out")), ("queued", None));
        assert_eq!(
            checks(&[green, ("completed", Some("skipped"))], &["success"]),
            Checks::Passed { count: 3 }
        );
        assert_eq!(checks(&[green, runs], &[]), Checks::Pending { names: vec!["run".into()] });
        assert_eq!(checks(&[green], &["pending"]), Checks::Pending { names: vec!["status".into()] });
        assert_eq!(checks(&[runs, red], &["pending"]), Checks::Failed { names: vec!["run".into()] });
        assert_eq!(checks(&[("completed", None)], &[]), Checks::Failed { names: vec!["run".into()] });
    }

    #[test]
    fn a_conflict_is_told_from_a_rule() {
        assert_eq!(mergeable("MERGEABLE", "CLEAN"), Mergeable::Clean);
        assert_eq!(mergeable("CONFLICTING", "DIRTY"), Mergeable::Conflicting);
        assert_eq!(mergeable("MERGEABLE", "BLOCKED"), Mergeable::Blocked { why: "blocked".into() });
        assert_eq!(mergeable("UNKNOWN", "UNKNOWN"), Mergeable::Unknown);
    }
}
