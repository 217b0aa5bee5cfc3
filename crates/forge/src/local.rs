//! A forge without an account and without a network: a bare repository, with the pull requests in it.
//!
//! A pull request is a JSON document in a blob, under `refs/rehearsal/pr/NUMBER`; the newest of a branch is under
//! `refs/rehearsal/pr-of/HASH`. Both only ever change by compare-and-swap, in one transaction with the base that a
//! merge moves.

mod records;

use async_trait::async_trait;
use camino::Utf8Path;

use crate::forge::{
    Checks, Comment, Forge, ForgeError, Mergeable, Merged, NewPullRequest, Opened, PrState, PullRequest,
    Review, ReviewVerdict,
};
use crate::merge::{CandidateError, check_fit, merge_commit};
use records::{Record, Remark, Stage, Stored, Swap};
use rehearsal_core::BoxFuture;
use rehearsal_git::{Git, GitError, Oid, parse_oid};

/// The pull requests of a bare repository.
#[derive(Debug, Clone)]
pub struct Local {
    git: Git,
}

impl Local {
    /// Those of a bare repository that is there.
    pub fn open(dir: &Utf8Path) -> BoxFuture<'_, Result<Self, GitError>> {
        Box::pin(async move {
            let dir = Git::at(dir).line(&["rev-parse", "--path-format=absolute", "--git-dir"]).await?;
            Ok(Self { git: Git::at(dir) })
        })
    }

    pub(crate) async fn tip(&self, branch: &str) -> Result<Option<Oid>, GitError> {
        self.git.find_commit(&format!("refs/heads/{branch}")).await
    }

    async fn shown(&self, stored: &Stored) -> Result<PullRequest, ForgeError> {
        let record = &stored.record;
        let (state, head_commit) = self.state(record).await?;
        let mergeable = match (&state, &head_commit) {
            (PrState::Open, Some(head)) => self.mergeable(&record.base, head).await?,
            _ => Mergeable::Unknown,
        };
        Ok(PullRequest {
            number: stored.number,
            url: format!("{}#{}", self.git.dir(), stored.number),
            title: record.title.clone(),
            body: record.body.clone(),
            head: record.head.clone(),
            head_commit,
            base: record.base.clone(),
            state,
            mergeable,
        })
    }

    /// A branch that is in its base is merged, whoever pushed it there.
    async fn state(&self, record: &Record) -> Result<(PrState, Option<Oid>), GitError> {
        match &record.stage {
            Stage::Merged { head, commit } => {
                Ok((PrState::Merged { commit: Some(commit.clone()) }, Some(head.clone())))
            }
            Stage::Closed { head } => Ok((PrState::Closed, head.clone())),
            Stage::Open => {
                let (head, base) = tokio::try_join!(self.tip(&record.head), self.tip(&record.base))?;
                let (Some(head), Some(base)) = (head.clone(), base) else { return Ok((PrState::Open, head)) };
                let landed = self.landed(&head, &base).await?;
                let state = landed.map_or(PrState::Open, |commit| PrState::Merged { commit: Some(commit) });
                Ok((state, Some(head)))
            }
        }
    }

    /// The commit by which the base came to have a commit.
    pub(crate) async fn landed(&self, head: &Oid, base: &Oid) -> Result<Option<Oid>, GitError> {
        if head == base {
            return Ok(Some(head.clone()));
        }
        if !self.git.is_ancestor(head, base).await? {
            return Ok(None);
        }
        let range = format!("{head}..{base}");
        let args = ["rev-list", "--first-parent", "--ancestry-path", "--reverse", &range];
        let since = self.git.line(&args).await?;
        // On the base's own line it landed as it is; else by the first merge after it.
        match since.lines().next().map(|line| parse_oid(line, &args)).transpose()? {
            Some(commit) if self.parents(&commit).await?.first() != Some(head) => Ok(Some(commit)),
            _ => Ok(Some(head.clone())),
        }
    }

    async fn parents(&self, commit: &Oid) -> Result<Vec<Oid>, GitError> {
        let args = ["rev-list", "--parents", "--max-count=1", commit.as_str()];
        let said = self.git.line(&args).await?;
        said.split(' ').skip(1).map(|oid| parse_oid(oid, &args)).collect()
    }

    async fn mergeable(&self, base: &str, head: &Oid) -> Result<Mergeable, ForgeError> {
        let Some(base) = self.tip(base).await? else { return Ok(Mergeable::Unknown) };
        match check_fit(&self.git, &base, head).await {
            Ok(()) => Ok(Mergeable::Clean),
            Err(CandidateError::Conflict { .. }) => Ok(Mergeable::Conflicting),
            Err(CandidateError::Git(error)) => Err(error.into()),
        }
    }

    /// Changes a record, again and again if others do at the same time. False if nothing is to be changed.
    async fn change(
        &self,
        number: u64,
        change: impl Fn(&mut Record) -> bool + Send + Sync,
    ) -> Result<(), ForgeError> {
        loop {
            let stored = self.load(number).await?;
            let mut record = stored.record.clone();
            if !change(&mut record) || self.swap(&stored, &record, &[]).await? == Swap::Done {
                return Ok(());
            }
        }
    }

    /// What is wrong with a pull request before it is opened; else its branch's commit.
    async fn check_new(&self, new: &NewPullRequest) -> Result<(), ForgeError> {
        let missing =
            |branch: &str| ForgeError::NotFound { what: format!("branch `{branch}` in {}", self.git.dir()) };
        let head = self.tip(&new.head).await?.ok_or_else(|| missing(&new.head))?;
        let base = self.tip(&new.base).await?.ok_or_else(|| missing(&new.base))?;
        if self.landed(&head, &base).await?.is_some() {
            let said = format!("no commits between {} and {}", new.base, new.head);
            return Err(ForgeError::Refused { action: "open a pull request".into(), said });
        }
        Ok(())
    }
}

#[async_trait]
impl Forge for Local {
    async fn find_pr(&self, head: &str) -> Result<Option<PullRequest>, ForgeError> {
        match self.newest_of(head).await? {
            Some(stored) => Ok(Some(self.shown(&stored).await?)),
            None => Ok(None),
        }
    }

    async fn create_pr(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        loop {
            let newest = self.newest_of(&new.head).await?;
            if let Some(stored) = &newest {
                let pull_request = self.shown(stored).await?;
                if pull_request.state == PrState::Open {
                    return Ok(Opened { pull_request, adopted: true });
                }
            }
            self.check_new(new).await?;
            let record = Record {
                title: new.title.clone(),
                body: new.body.clone(),
                head: new.head.clone(),
                base: new.base.clone(),
                stage: Stage::Open,
                comments: Vec::new(),
                reviews: Vec::new(),
            };
            if let Some(stored) = self.add(&record, newest.as_ref()).await? {
                return Ok(Opened { pull_request: self.shown(&stored).await?, adopted: false });
            }
        }
    }

    async fn view(&self, number: u64) -> Result<PullRequest, ForgeError> {
        self.shown(&self.load(number).await?).await
    }

    /// Nobody checks here but ourselves.
    async fn checks(&self, _commit: &Oid) -> Result<Checks, ForgeError> {
        Ok(Checks::Never)
    }

    async fn comment(&self, number: u64, comment: &Comment) -> Result<(), ForgeError> {
        self.change(number, |record| {
            let new = !record.comments.iter().any(|remark| remark.kind == comment.key);
            if new {
                record.comments.push(Remark { kind: comment.key.clone(), body: comment.body.clone() });
            }
            new
        })
        .await
    }

    async fn review(&self, number: u64, review: &Review) -> Result<(), ForgeError> {
        let kind = match review.verdict {
            ReviewVerdict::Approve => "approve",
            ReviewVerdict::RequestChanges => "request_changes",
            ReviewVerdict::Comment => "comment",
        };
        let remark = Remark { kind: kind.to_owned(), body: review.body.clone() };
        self.change(number, |record| {
            let new = record.reviews.last() != Some(&remark);
            if new {
                record.reviews.push(remark.clone());
            }
            new
        })
        .await
    }

    async fn merge(&self, number: u64, expected: &Oid) -> Result<Merged, ForgeError> {
        let stored = self.load(number).await?;
        let record = &stored.record;
        let (state, head) = self.state(record).await?;
        let refused = |reason: &str| ForgeError::NotMergeable { number, reason: reason.to_owned() };
        if head.as_ref() != Some(expected) {
            return Err(ForgeError::HeadMoved { number, expected: expected.clone(), found: head });
        }
        match state {
            PrState::Merged { commit } => return Ok(Merged { commit, already: true }),
            PrState::Closed => return Err(refused("it was closed")),
            PrState::Open => {}
        }
        let Some(base) = self.tip(&record.base).await? else { return Err(refused("its base is gone")) };
        let message = format!("Merge pull request #{number}: {}", record.title);
        let commit = match merge_commit(&self.git, &base, expected, &message).await {
            Ok(commit) => commit,
            Err(CandidateError::Conflict { files }) => {
                return Err(refused(&format!("conflicts with the base in {}", files.join(", "))));
            }
            Err(CandidateError::Git(error)) => return Err(error.into()),
        };
        let stage = Stage::Merged { head: expected.clone(), commit: commit.clone() };
        let branch = format!("update refs/heads/{} {commit} {base}\n", record.base);
        // A base that moved in between is told; so is a head.
        let still = format!("verify refs/heads/{} {expected}\n", record.head);
        match self.swap(&stored, &Record { stage, ..record.clone() }, &[branch, still]).await? {
            Swap::Done => Ok(Merged { commit: Some(commit), already: false }),
            Swap::Lost => Err(ForgeError::BaseMoved { number }),
        }
    }

    async fn close(&self, number: u64) -> Result<(), ForgeError> {
        let shown = self.view(number).await?;
        let head = shown.head_commit;
        if matches!(shown.state, PrState::Merged { .. }) {
            return Err(ForgeError::Refused { action: "close".into(), said: "it was merged".into() });
        }
        self.change(number, |record| {
            let open = record.stage == Stage::Open;
            record.stage = Stage::Closed { head: head.clone() };
            open
        })
        .await
    }
}
