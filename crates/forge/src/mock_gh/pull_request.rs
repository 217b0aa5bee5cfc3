//! The verbs of `gh pr`.

use serde_json::Value;

use super::shown::{printed, url_of};
use super::state::{Kept, MockPullRequest, MockRemark, MockState, PullRequestState};
use super::upstream::{Landed, Method};
use super::{Call, MockGhError, Reply, is_kept};
use rehearsal_git::{Git, Oid};

/// The number that the first scripts gave.
const FIRST_NUMBER: u64 = 99;

impl Call<'_> {
    pub(super) async fn create(&self, state: &mut MockState, kept: Kept) -> Result<Reply, MockGhError> {
        if self.env.flag("GH_MOCK_CREATE_FAIL") {
            return Ok(Reply::fails(
                "pull request create failed: GraphQL: Something went wrong (createPullRequest)",
            ));
        }
        let number = self.told_number()?;
        let head = match self.arguments.value("head") {
            Some(head) => head.to_owned(),
            None => self.branch().await,
        };
        let base = self.arguments.value("base").unwrap_or("main").to_owned();
        let open = |pr: &&MockPullRequest| pr.head == head && pr.state == PullRequestState::Open;
        let existing = state.pull_requests.iter().find(open).map(|pr| pr.number);
        let taken = |number: &u64| state.pull_requests.iter().any(|pr| pr.number == *number);
        let next = state.pull_requests.iter().map(|pr| pr.number + 1).max().unwrap_or(FIRST_NUMBER);
        let number = number.filter(|number| !taken(number)).unwrap_or(next);
        let exists = |number| {
            let told = format!("a pull request for branch \"{head}\" into branch \"{base}\" already exists:");
            Ok(Reply::fails(format!("{told}\n{}", url_of(number))))
        };
        if let Some(number) = existing {
            return exists(number);
        }
        let head_commit = match &self.upstream {
            None => String::new(),
            Some(upstream) => match upstream.tip(&head).await? {
                Some(commit) => commit.into(),
                None => return Ok(Reply::fails(NO_HEAD)),
            },
        };
        let (title, body) = (self.arguments.value("title").unwrap_or(&head).to_owned(), self.body()?);
        let new = MockPullRequest {
            number,
            title,
            body,
            head: head.clone(),
            head_commit,
            base: base.clone(),
            ..Default::default()
        };
        state.pull_requests.push(new);
        if self.env.flag("GH_MOCK_PR_EXISTS") && is_kept(kept) {
            return exists(number);
        }
        if self.env.flag("GH_MOCK_PR_EXISTS") {
            return exists(self.told_number()?.unwrap_or(FIRST_NUMBER));
        }
        Ok(Reply::says(url_of(number)))
    }

    pub(super) async fn view(&self, state: &mut MockState, kept: Kept) -> Result<Reply, MockGhError> {
        self.notice_landed(state).await?;
        match self.find(state, kept).await? {
            Ok(pr) => {
                let shown = self.show(pr).await?;
                Ok(Reply::says(printed(&shown, self.arguments.value("jq"))?))
            }
            Err(reply) => Ok(reply),
        }
    }

    pub(super) async fn list(&self, state: &mut MockState) -> Result<Reply, MockGhError> {
        self.notice_landed(state).await?;
        let wanted = self.arguments.value("state").unwrap_or("open");
        let limit = self.arguments.value("limit").unwrap_or("30");
        let limit: usize =
            limit.parse().map_err(|_| MockGhError::Usage(format!("`--limit {limit}` is no number")))?;
        let is_wanted = |pr: &&MockPullRequest| {
            let state = match wanted {
                "all" => true,
                "open" => pr.state == PullRequestState::Open,
                "closed" => pr.state != PullRequestState::Open,
                _ => pr.state == PullRequestState::Merged,
            };
            let is = |option: &str, value: &str| self.arguments.value(option).is_none_or(|it| it == value);
            state && is("head", &pr.head) && is("base", &pr.base)
        };
        let mut shown = Vec::new();
        for pr in state.pull_requests.iter().rev().filter(is_wanted).take(limit) {
            shown.push(self.show(pr).await?);
        }
        Ok(Reply::says(printed(&Value::Array(shown), self.arguments.value("jq"))?))
    }

    pub(super) fn review(&self, state: &mut MockState, kept: Kept) -> Result<Reply, MockGhError> {
        let verdict =
            ["approve", "request-changes", "comment"].into_iter().find(|name| self.arguments.has(name));
        let verdict = match verdict {
            Some("approve") => "APPROVED",
            Some("request-changes") => "CHANGES_REQUESTED",
            Some(_) => "COMMENTED",
            None => {
                return Err(MockGhError::Usage(
                    "`pr review` needs --approve, --request-changes or --comment".into(),
                ));
            }
        };
        let remark = MockRemark { state: verdict.to_owned(), body: self.body()? };
        self.change(state, kept, |pr| pr.reviews.push(remark))
    }

    pub(super) fn comment(&self, state: &mut MockState, kept: Kept) -> Result<Reply, MockGhError> {
        let remark = MockRemark { state: String::new(), body: self.body()? };
        self.change(state, kept, |pr| pr.comments.push(remark))
    }

    pub(super) async fn close(&self, state: &mut MockState, kept: Kept) -> Result<Reply, MockGhError> {
        self.notice_landed(state).await?;
        if let Some(pr) = self.position(state, "").and_then(|position| state.pull_requests.get(position))
            && pr.state == PullRequestState::Merged
        {
            return Ok(Reply::fails(format!(
                "X Pull request test/repo#{} ({}) can't be closed because it was already merged",
                pr.number, pr.title
            )));
        }
        self.change(state, kept, |pr| pr.state = PullRequestState::Closed)
    }

    pub(super) fn edit(&self, state: &mut MockState, kept: Kept) -> Result<Reply, MockGhError> {
        let (title, base) = (self.arguments.value("title"), self.arguments.value("base"));
        let body = if self.arguments.has("body") || self.arguments.has("body-file") {
            Some(self.body()?)
        } else {
            None
        };
        self.change(state, kept, |pr| {
            pr.title = title.map_or_else(|| pr.title.clone(), str::to_owned);
            pr.base = base.map_or_else(|| pr.base.clone(), str::to_owned);
            pr.body = body.unwrap_or_else(|| pr.body.clone());
        })
    }

    pub(super) async fn merge(&self, state: &mut MockState, kept: Kept) -> Result<Reply, MockGhError> {
        if self.env.flag("GH_MOCK_MERGE_FAIL") {
            return Ok(Reply::fails("! Pull request merge failed"));
        }
        if !is_kept(kept) {
            return Ok(Reply::says("✓ Merged"));
        }
        self.notice_landed(state).await?;
        let mut pr = match self.find(state, kept).await? {
            Ok(pr) => pr.clone(),
            Err(reply) => return Ok(reply),
        };
        let number = pr.number;
        match pr.state {
            PullRequestState::Merged => {
                return Ok(Reply::says(format!("! Pull request #{number} was already merged")));
            }
            PullRequestState::Closed => {
                return Ok(Reply::fails(format!("X Pull request #{number} is closed")));
            }
            PullRequestState::Open => {}
        }
        let reply = self.land(&mut pr).await?;
        if let Some(stored) = state.pull_requests.iter_mut().find(|stored| stored.number == number) {
            *stored = pr;
        }
        Ok(reply)
    }

    async fn land(&self, pr: &mut MockPullRequest) -> Result<Reply, MockGhError> {
        let unclean = format!(
            "X Pull request #{} is not mergeable: the merge commit cannot be cleanly created.",
            pr.number
        );
        if matches!(self.env.var("GH_MOCK_MERGE_STATUS"), Some("CONFLICTING" | "DIRTY")) {
            return Ok(Reply::fails(unclean));
        }
        if matches!(self.env.var("GH_MOCK_MERGE_STATUS"), Some("BLOCKED")) {
            let told = format!(
                "X Pull request #{} is not mergeable: the base branch policy prohibits the merge.",
                pr.number
            );
            return Ok(Reply::fails(told));
        }
        let head = match &self.upstream {
            Some(upstream) => {
                upstream.tip(&pr.head).await?.map_or_else(|| pr.head_commit.clone(), String::from)
            }
            None => pr.head_commit.clone(),
        };
        if self
            .arguments
            .value("match-head-commit")
            .is_some_and(|expected| !head.is_empty() && expected != head)
        {
            return Ok(Reply::fails(
                "GraphQL: Head branch was modified. Review and try the merge again. (mergePullRequest)",
            ));
        }
        if let (Some(upstream), Ok(commit)) = (&self.upstream, Oid::new(&head)) {
            let method = if self.arguments.has("squash") { Method::Squash } else { Method::Merge };
            let message = format!("Merge pull request #{}: {}", pr.number, pr.title);
            match upstream.merge(&commit, &pr.base, &message, method).await? {
                Landed::Merged(landed) => pr.merge_commit = Some(landed.into()),
                Landed::Conflict => return Ok(Reply::fails(unclean)),
                Landed::Lost => {
                    return Ok(Reply::fails(
                        "GraphQL: Base branch was modified. Review and try the merge again. (mergePullRequest)",
                    ));
                }
            }
            if self.arguments.has("delete-branch") {
                upstream.delete(&pr.head).await?;
            }
        }
        pr.state = PullRequestState::Merged;
        pr.head_commit = head;
        Ok(Reply::says(format!("✓ Merged pull request #{} ({})", pr.number, pr.title)))
    }

    /// GitHub calls a branch merged as soon as its base has it, whoever pushed.
    async fn notice_landed(&self, state: &mut MockState) -> Result<(), MockGhError> {
        let Some(upstream) = &self.upstream else { return Ok(()) };
        for pr in state.pull_requests.iter_mut().filter(|pr| pr.state == PullRequestState::Open) {
            let Some(head) = upstream.tip(&pr.head).await? else { continue };
            if let Some(commit) = upstream.landed(&head, &pr.base).await? {
                pr.state = PullRequestState::Merged;
                pr.head_commit = head.into();
                pr.merge_commit = Some(commit.into());
            }
        }
        Ok(())
    }

    fn change(
        &self,
        state: &mut MockState,
        kept: Kept,
        change: impl FnOnce(&mut MockPullRequest),
    ) -> Result<Reply, MockGhError> {
        if !is_kept(kept) {
            return Ok(Reply::says(url_of(
                self.target_number().or(self.told_number()?).unwrap_or(FIRST_NUMBER),
            )));
        }
        let Some(number) = self.position(state, "") else { return Ok(self.none_found()) };
        let pr = &mut state.pull_requests[number];
        change(pr);
        Ok(Reply::says(url_of(pr.number)))
    }

    /// The one that is meant. Without a memory there is always one.
    pub(super) async fn find<'s>(
        &self,
        state: &'s mut MockState,
        kept: Kept,
    ) -> Result<Result<&'s MockPullRequest, Reply>, MockGhError> {
        if !is_kept(kept) {
            let number = self.target_number().or(self.told_number()?).unwrap_or(FIRST_NUMBER);
            state.pull_requests.push(MockPullRequest { number, base: "main".into(), ..Default::default() });
        }
        let branch = if self.arguments.target.is_none() { self.branch().await } else { String::new() };
        Ok(match self.position(state, &branch) {
            Some(position) => Ok(&state.pull_requests[position]),
            None => Err(self.none_found()),
        })
    }

    /// By number, address or branch; without a word, the one of the branch that is checked out, else the newest.
    fn position(&self, state: &MockState, branch: &str) -> Option<usize> {
        let all = &state.pull_requests;
        match (self.target_number(), &self.arguments.target) {
            (Some(number), _) => all.iter().position(|pr| pr.number == number),
            (None, Some(name)) => all.iter().rposition(|pr| pr.head == *name),
            (None, None) => all.iter().rposition(|pr| pr.head == branch).or(all.len().checked_sub(1)),
        }
    }

    fn none_found(&self) -> Reply {
        match (self.target_number(), &self.arguments.target) {
            (Some(number), _) => Reply::fails(format!(
                "GraphQL: Could not resolve to a PullRequest with the number of {number}. (repository.pullRequest)"
            )),
            (None, name) => {
                let name = name.as_deref().unwrap_or("HEAD");
                Reply::fails(format!("no pull requests found for branch \"{name}\""))
            }
        }
    }

    fn target_number(&self) -> Option<u64> {
        let target = self.arguments.target.as_deref()?;
        target.trim_start_matches('#').rsplit('/').next()?.parse().ok()
    }

    fn told_number(&self) -> Result<Option<u64>, MockGhError> {
        let told = self.env.var("GH_MOCK_PR_NUMBER");
        let number = told.map(str::parse).transpose();
        number.map_err(|_| MockGhError::Usage("`GH_MOCK_PR_NUMBER` is no number".into()))
    }

    fn body(&self) -> Result<String, MockGhError> {
        match self.arguments.value("body-file") {
            Some("-") => Ok(self.input.clone()),
            Some(path) => {
                let path = self.env.dir.join(path);
                fs_err::read_to_string(&path)
                    .map_err(|error| MockGhError::File { path: path.clone(), reason: error.to_string() })
            }
            None => Ok(self.arguments.value("body").unwrap_or_default().to_owned()),
        }
    }

    async fn branch(&self) -> String {
        Git::at(&self.env.dir).line(&["branch", "--show-current"]).await.unwrap_or_default()
    }
}

const NO_HEAD: &str = "pull request create failed: GraphQL: Head sha can't be blank, Base sha can't be blank, \
                       Head ref must be a branch (createPullRequest)";
