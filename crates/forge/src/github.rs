//! GitHub, through its own program `gh`: its login is the user's, and so is what it may do.

mod answer;
mod failure;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use serde::de::DeserializeOwned;

use crate::forge::{
    Checks, Comment, Forge, ForgeError, Merged, NewPullRequest, Opened, PrState, PullRequest, Review,
    ReviewVerdict,
};
use crate::policy::GH_LIMIT;
use answer::{CheckRuns, Comments, PullRequestAnswer, StatusAnswer, combine};
use failure::Failure;
use rehearsal_git::{Oid, without_git_variables};
use rehearsal_process::{Command, Input, Output, RunError};

/// What is asked of a pull request.
const FIELDS: &str =
    "number,url,title,body,state,headRefName,headRefOid,baseRefName,mergeStateStatus,mergeable,mergeCommit";

/// The most pages of 100 checks that are read of one commit.
const MAX_CHECK_PAGES: usize = 10;

/// The pull requests of the repository that a checkout was cloned from.
#[derive(Debug, Clone)]
pub struct GitHub {
    program: Utf8PathBuf,
    dir: Utf8PathBuf,
    variables: Vec<(String, String)>,
}

impl GitHub {
    /// Those of the repository around a directory, asked for with a program that is `gh`.
    pub fn new(program: impl Into<Utf8PathBuf>, dir: &Utf8Path) -> Self {
        Self { program: program.into(), dir: dir.to_owned(), variables: Vec::new() }
    }

    /// With these variables for `gh`, beside ours.
    pub fn with_variables(self, variables: Vec<(String, String)>) -> Self {
        Self { variables, ..self }
    }

    /// Runs `gh`; its answer, or the words in which it failed.
    async fn gh(&self, args: &[&str], input: &str) -> Result<String, Failure> {
        let variables = [
            ("GH_PROMPT_DISABLED", "1"),
            ("GH_NO_UPDATE_NOTIFIER", "1"),
            ("GH_PAGER", "cat"),
            ("NO_COLOR", "1"),
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ];
        let command = without_git_variables(Command::new(&self.program, &self.dir))
            .args(args)
            .envs(variables)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .input(if input.is_empty() { Input::Empty } else { Input::Bytes(input.into()) })
            .limit(GH_LIMIT);
        match command.run().await {
            Ok(Output { status, stdout, .. }) if status.success() => {
                Ok(String::from_utf8_lossy(&stdout).into_owned())
            }
            Ok(ended) => {
                let said = ended.stderr.trim();
                let said = if said.is_empty() { ended.status.to_string() } else { said.to_owned() };
                Err(Failure::Said { code: ended.status.code(), said })
            }
            Err(RunError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound && self.dir.is_dir() => {
                Err(Failure::Missing { program: self.program.clone() })
            }
            Err(RunError::Io(error)) => Err(Failure::NotStarted { reason: error.to_string() }),
            Err(RunError::TimedOut) => {
                Err(Failure::NoAnswer { reason: format!("no answer within {} s", GH_LIMIT.as_secs()) })
            }
            Err(RunError::TooMuch) => Err(Failure::NoAnswer { reason: "an answer without end".into() }),
        }
    }

    /// Runs `gh` for a document.
    async fn ask<T: DeserializeOwned>(&self, action: &str, args: &[&str]) -> Result<T, ForgeError> {
        let said = self.gh(args, "").await.map_err(|failure| failure.of_reading(action))?;
        serde_json::from_str(&said)
            .map_err(|error| ForgeError::Garbled { action: action.to_owned(), reason: error.to_string() })
    }

    async fn check_runs(&self, commit: &Oid) -> Result<Vec<CheckRuns>, ForgeError> {
        let mut pages: Vec<CheckRuns> = Vec::new();
        for page in 1..=MAX_CHECK_PAGES {
            let path = format!(
                "repos/{{owner}}/{{repo}}/commits/{commit}/check-runs?filter=latest&per_page=100&page={page}"
            );
            let answer: CheckRuns = self.ask("read the checks", &["api", &path]).await?;
            let (total, empty) = (answer.total_count, answer.check_runs.is_empty());
            pages.push(answer);
            if empty || pages.iter().map(|page| page.check_runs.len()).sum::<usize>() >= total {
                return Ok(pages);
            }
        }
        let reason = format!("more than {} checks", MAX_CHECK_PAGES * 100);
        Err(ForgeError::Garbled { action: "read the checks".into(), reason })
    }

    async fn read_checks(&self, commit: &Oid) -> Result<Checks, ForgeError> {
        let path = format!("repos/{{owner}}/{{repo}}/commits/{commit}/status");
        let runs = self.check_runs(commit).await?;
        let statuses: StatusAnswer = self.ask("read the checks", &["api", &path]).await?;
        Ok(combine(runs, statuses))
    }

    /// Whether a comment was made before.
    async fn has_comment(&self, number: u64, comment: &Comment) -> Result<bool, ForgeError> {
        let args = ["pr", "view", &number.to_string(), "--json", "comments"];
        let there: Comments = self.ask("read the comments", &args).await?;
        let mark = comment.mark();
        Ok(there.comments.iter().any(|found| found.body.contains(&mark)))
    }
}

#[async_trait]
impl Forge for GitHub {
    async fn find_pr(&self, head: &str) -> Result<Option<PullRequest>, ForgeError> {
        let args = ["pr", "list", "--head", head, "--state", "all", "--limit", "30", "--json", FIELDS];
        let found: Vec<PullRequestAnswer> = self.ask("list the pull requests", &args).await?;
        let mut found: Vec<PullRequest> = found.into_iter().map(PullRequest::from).collect();
        // The option also finds branches of that name in forks of others.
        found.retain(|it| it.head == head);
        found.sort_by_key(|it| (it.state == PrState::Open, it.number));
        Ok(found.pop())
    }

    async fn create_pr(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        let action = "open a pull request";
        let args = [
            "pr",
            "create",
            "--head",
            &new.head,
            "--base",
            &new.base,
            "--title",
            &new.title,
            "--body-file",
            "-",
        ];
        match self.gh(&args, &format!("{}\n", new.body)).await {
            Ok(said) => {
                let number = said.trim_end().rsplit('/').next().and_then(|number| number.parse().ok());
                let number = number.ok_or(ForgeError::Garbled { action: action.into(), reason: said })?;
                Ok(Opened { pull_request: self.view(number).await?, adopted: false })
            }
            // It may be there: before we asked, or because we asked.
            Err(failure) if failure.already_exists() || failure.may_have_worked() => {
                match self.find_pr(&new.head).await? {
                    Some(found) if found.state == PrState::Open => {
                        Ok(Opened { adopted: failure.already_exists(), pull_request: found })
                    }
                    _ => Err(failure.of_writing(action)),
                }
            }
            Err(failure) => Err(failure.of_writing(action)),
        }
    }

    async fn view(&self, number: u64) -> Result<PullRequest, ForgeError> {
        let action = format!("view pull request {number}");
        let answer: PullRequestAnswer =
            self.ask(&action, &["pr", "view", &number.to_string(), "--json", FIELDS]).await?;
        Ok(answer.into())
    }

    async fn checks(&self, commit: &Oid) -> Result<Checks, ForgeError> {
        match self.read_checks(commit).await {
            Err(
                error @ (ForgeError::NotFound { .. }
                | ForgeError::Unavailable { .. }
                | ForgeError::Garbled { .. }),
            ) => Ok(Checks::Unfetchable { reason: error.to_string() }),
            other => other,
        }
    }

    async fn comment(&self, number: u64, comment: &Comment) -> Result<(), ForgeError> {
        if self.has_comment(number, comment).await? {
            return Ok(());
        }
        let args = ["pr", "comment", &number.to_string(), "--body-file", "-"];
        match self.gh(&args, &comment.marked()).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.may_have_worked() && self.has_comment(number, comment).await? => Ok(()),
            Err(failure) => Err(failure.of_writing("comment")),
        }
    }

    async fn review(&self, number: u64, review: &Review) -> Result<(), ForgeError> {
        let verdict = match review.verdict {
            ReviewVerdict::Approve => "--approve",
            ReviewVerdict::RequestChanges => "--request-changes",
            ReviewVerdict::Comment => "--comment",
        };
        let args = ["pr", "review", &number.to_string(), verdict, "--body-file", "-"];
        match self.gh(&args, &format!("{}\n", review.body)).await {
            Ok(_) => Ok(()),
            // A review has no key by which it could be found again.
            Err(failure) if failure.may_have_worked() => Err(failure.unclear("review")),
            Err(failure) => Err(failure.of_writing("review")),
        }
    }

    async fn merge(&self, number: u64, expected: &Oid) -> Result<Merged, ForgeError> {
        let moved = |found| ForgeError::HeadMoved { number, expected: expected.clone(), found };
        let before = self.view(number).await?;
        match before.state {
            _ if before.head_commit.as_ref().is_some_and(|head| head != expected) => {
                return Err(moved(before.head_commit));
            }
            PrState::Merged { commit } => return Ok(Merged { commit, already: true }),
            PrState::Closed => {
                return Err(ForgeError::NotMergeable { number, reason: "it was closed".into() });
            }
            PrState::Open => {}
        }
        let args = ["pr", "merge", &number.to_string(), "--merge", "--match-head-commit", expected.as_str()];
        let failure = self.gh(&args, "").await.err();
        if failure.as_ref().is_some_and(Failure::head_moved) {
            return Err(moved(self.view(number).await?.head_commit));
        }
        match (self.view(number).await?.state, failure) {
            (PrState::Merged { commit }, _) => Ok(Merged { commit, already: false }),
            (_, Some(failure)) => Err(failure.of_merging(number)),
            (_, None) => Err(ForgeError::Unclear {
                action: "merge".into(),
                said: "it said yes, and nothing is merged".into(),
            }),
        }
    }

    async fn close(&self, number: u64) -> Result<(), ForgeError> {
        let Err(failure) = self.gh(&["pr", "close", &number.to_string()], "").await else {
            return Ok(());
        };
        match self.view(number).await?.state {
            PrState::Closed => Ok(()),
            PrState::Open | PrState::Merged { .. } => Err(failure.of_writing("close")),
        }
    }
}
