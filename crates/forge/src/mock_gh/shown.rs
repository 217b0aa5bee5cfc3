//! A pull request as `gh --json` shows it.

use serde::Serialize;
use serde_json::{Map, Value};

use super::state::{MockPullRequest, MockRemark, PullRequestState};
use super::{Call, MockGhError};
use rehearsal_git::{GitError, Oid};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    number: u64,
    url: String,
    title: &'a str,
    body: &'a str,
    state: PullRequestState,
    head_ref_name: &'a str,
    head_ref_oid: String,
    base_ref_name: &'a str,
    merge_state_status: String,
    mergeable: &'static str,
    merge_commit: Option<ShownCommit>,
    comments: &'a [MockRemark],
    reviews: &'a [MockRemark],
    is_draft: bool,
}

#[derive(Debug, Serialize)]
struct ShownCommit {
    oid: String,
}

/// The address that every pull request has here.
pub(super) fn url_of(number: u64) -> String {
    format!("https://github.com/test/repo/pull/{number}")
}

impl Call<'_> {
    /// The fields that are asked for; those that the first scripts knew if none are.
    pub(super) async fn show(&self, pr: &MockPullRequest) -> Result<Value, MockGhError> {
        let fields = self.arguments.value("json").unwrap_or("mergeStateStatus,number,url");
        let (status, head) = self.looked_at(pr).await?;
        let mergeable = match status.as_str() {
            "CONFLICTING" | "DIRTY" => "CONFLICTING",
            "UNKNOWN" => "UNKNOWN",
            _ => "MERGEABLE",
        };
        let shown = Shown {
            number: pr.number,
            url: url_of(pr.number),
            title: &pr.title,
            body: &pr.body,
            state: pr.state,
            head_ref_name: &pr.head,
            head_ref_oid: head.map_or_else(|| pr.head_commit.clone(), String::from),
            base_ref_name: &pr.base,
            merge_state_status: status,
            mergeable,
            merge_commit: pr.merge_commit.clone().map(|oid| ShownCommit { oid }),
            comments: &pr.comments,
            reviews: &pr.reviews,
            is_draft: false,
        };
        let Ok(Value::Object(all)) = serde_json::to_value(&shown) else { return Ok(Value::Null) };
        select(&all, fields)
    }

    /// How the merge stands, as told or as git says, and the newest commit of the branch.
    async fn looked_at(&self, pr: &MockPullRequest) -> Result<(String, Option<Oid>), GitError> {
        let told = self.env.var("GH_MOCK_MERGE_STATUS").map(str::to_owned);
        let head = match &self.upstream {
            Some(upstream) if pr.state == PullRequestState::Open => upstream.tip(&pr.head).await?,
            _ => None,
        };
        let status = match (told, &self.upstream, &head) {
            (Some(told), ..) => told,
            (None, Some(upstream), Some(head)) if upstream.conflicts(head, &pr.base).await? => "DIRTY".into(),
            _ if pr.state == PullRequestState::Open => "CLEAN".into(),
            _ => "UNKNOWN".into(),
        };
        Ok((status, head))
    }
}

fn select(all: &Map<String, Value>, fields: &str) -> Result<Value, MockGhError> {
    let mut chosen = Map::new();
    for field in fields.split(',') {
        let Some(value) = all.get(field) else {
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            return Err(MockGhError::Usage(format!(
                "there is no field `{field}`: expected {}",
                known.join(", ")
            )));
        };
        chosen.insert(field.to_owned(), value.clone());
    }
    Ok(Value::Object(chosen))
}

/// `--jq` with a path of names, such as `.mergeCommit.oid`; a text without its quotes, as `gh` prints it.
pub(super) fn printed(value: &Value, jq: Option<&str>) -> Result<String, MockGhError> {
    let Some(path) = jq else { return Ok(value.to_string()) };
    let mut found = value;
    for name in path.strip_prefix('.').unwrap_or(path).split('.').filter(|name| !name.is_empty()) {
        found = match found.get(name) {
            Some(found) => found,
            None => {
                let told =
                    format!("`--jq {path}` is not played: expected a path of fields such as `.number`");
                return Err(MockGhError::Usage(told));
            }
        };
    }
    Ok(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
}
