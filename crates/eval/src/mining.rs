//! Finds cases in a repository's history: commits that change tests and sources, each one tried.

use std::time::Duration;

use camino::Utf8Path;
use rehearsal_core::TestStatus;
use rehearsal_git::{Git, GitError};
use rehearsal_testing::is_test_file;
use serde::Serialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::attempt::{TestResults, TrialContext, Workspace};
use crate::case::RepositoryFile;
use crate::import::Mined;
use crate::run::TrialError;

/// A commit with more files is not one task for an agent.
const MOST_FILES: usize = 100;
/// Nor is a longer patch.
const LONGEST_PATCH: usize = 256 << 10;

/// How far to look.
#[derive(Debug, Clone, Copy)]
pub struct MiningLimits {
    /// How many commits to look at, newest first.
    pub commits: usize,
    /// How many cases to find.
    pub cases: usize,
    /// How long trying one commit may take.
    pub timeout: Duration,
}

/// What was looked at.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MiningStats {
    /// Commits.
    pub commits: u64,
    /// Commits that change tests and sources.
    pub candidates: u64,
    /// Candidates without a test that fails before and passes after.
    pub without_effect: u64,
    /// Candidates whose tests cannot be run.
    pub untestable: u64,
    /// Candidates that took too long.
    pub too_long: u64,
    /// Why the tests of the first untestable candidate cannot be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A candidate that was tried.
#[derive(Debug)]
pub struct TriedCommit {
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// The result.
    pub result: CommitResult,
}

/// The result of trying a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitResult {
    /// This many tests fail before it and pass after it.
    Found(usize),
    /// No test fails before it and passes after it.
    WithoutEffect,
    /// Its tests cannot be run.
    Untestable,
    /// It took too long.
    TooLong,
}

/// Looks for cases in the history of the repository at `root`. Cancelled, it returns what it found so far.
pub async fn mine(
    root: &Utf8Path,
    limits: MiningLimits,
    context: &TrialContext,
    mut tried: impl FnMut(TriedCommit),
    cancel: &CancellationToken,
) -> Result<(Vec<Mined>, MiningStats), GitError> {
    let miner = Miner { git: Git::at(root), root, context };
    let (mut mined, mut stats) = (Vec::new(), MiningStats::default());
    for (commit, parent) in miner.commits(limits.commits).await? {
        if mined.len() >= limits.cases || cancel.is_cancelled() {
            break;
        }
        stats.commits += 1;
        // A commit that git cannot show is skipped.
        let Ok(Some(candidate)) = miner.candidate(commit, parent).await else { continue };
        stats.candidates += 1;
        let subject = candidate.message.lines().next().unwrap_or_default().to_owned();
        let commit = candidate.commit.clone();
        let result = match miner.try_within(limits.timeout, candidate, cancel).await {
            Tried::Found(one) => {
                let result = CommitResult::Found(one.fail_to_pass.len());
                mined.push(one);
                result
            }
            Tried::WithoutEffect => {
                stats.without_effect += 1;
                CommitResult::WithoutEffect
            }
            Tried::Untestable(reason) => {
                stats.untestable += 1;
                stats.reason.get_or_insert(reason);
                CommitResult::Untestable
            }
            Tried::TooLong => {
                stats.too_long += 1;
                CommitResult::TooLong
            }
            Tried::Cancelled => break,
        };
        tried(TriedCommit { commit, subject, result });
    }
    Ok((mined, stats))
}

enum Tried {
    Found(Mined),
    WithoutEffect,
    Untestable(String),
    TooLong,
    Cancelled,
}

/// A commit that changes tests and sources.
struct Candidate {
    commit: String,
    parent: String,
    message: String,
    tests: String,
    sources: String,
}

struct Miner<'a> {
    git: Git,
    root: &'a Utf8Path,
    context: &'a TrialContext,
}

impl Miner<'_> {
    /// The commits with exactly one parent and their parents, newest first.
    async fn commits(&self, most: usize) -> Result<Vec<(String, String)>, GitError> {
        let most = format!("--max-count={most}");
        let listed = self.git.line(&["log", "--no-merges", &most, "--format=%H %P", "HEAD"]).await?;
        let pair = |line: &str| line.split_once(' ').map(|(one, parent)| (one.to_owned(), parent.to_owned()));
        Ok(listed.lines().filter_map(pair).filter(|(_, parent)| !parent.is_empty()).collect())
    }

    /// What a commit did to tests and to sources; none if it did not change both, or changed too much.
    async fn candidate(&self, commit: String, parent: String) -> Result<Option<Candidate>, GitError> {
        let names = ["diff-tree", "-r", "--no-renames", "-z", "--name-only", &parent, &commit];
        let Ok(names) = String::from_utf8(self.git.run(&names).await?) else { return Ok(None) };
        let names: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        let (tests, sources): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| is_test_file(name));
        let is_source = |name: &&&str| !is_prose(name) && !name.starts_with(".rehearsal/");
        if tests.is_empty() || names.len() > MOST_FILES || !sources.iter().any(|name| is_source(&name)) {
            return Ok(None);
        }
        let (Some(tests), Some(sources)) =
            (self.patch(&parent, &commit, &tests).await?, self.patch(&parent, &commit, &sources).await?)
        else {
            return Ok(None);
        };
        let message = self.git.line(&["log", "-1", "--format=%B", &commit]).await?;
        Ok(Some(Candidate { commit, parent, message, tests, sources }))
    }

    /// A part of a commit; none if it is too long or not text.
    async fn patch(&self, parent: &str, commit: &str, names: &[&str]) -> Result<Option<String>, GitError> {
        let mut args: Vec<String> = ["diff", "--binary", "--no-renames", "--no-ext-diff", "--no-color"]
            .into_iter()
            .chain([parent, commit, "--"])
            .map(str::to_owned)
            .collect();
        args.extend(names.iter().map(|name| format!(":(top,literal){name}")));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let patch = String::from_utf8(self.git.run(&args).await?).ok();
        Ok(patch.filter(|patch| !patch.is_empty() && patch.len() <= LONGEST_PATCH))
    }

    async fn try_within(&self, limit: Duration, candidate: Candidate, cancel: &CancellationToken) -> Tried {
        let own = cancel.child_token();
        let trying = self.try_out(candidate, &own);
        tokio::pin!(trying);
        if let Ok(tried) = timeout(limit, &mut trying).await {
            return tried;
        }
        own.cancel();
        // Its processes end with it.
        trying.await;
        if cancel.is_cancelled() { Tried::Cancelled } else { Tried::TooLong }
    }

    /// Compares the tests with only the commit's changes to tests against those with the whole commit.
    async fn try_out(&self, candidate: Candidate, cancel: &CancellationToken) -> Tried {
        match self.test(&candidate, cancel).await {
            _ if cancel.is_cancelled() => Tried::Cancelled,
            Err(TrialError::Cancelled) => Tried::Cancelled,
            Err(error) => Tried::Untestable(error.to_string()),
            Ok((_, after)) if after.is_empty() => Tried::Untestable("no test was run".to_owned()),
            Ok((before, after)) => {
                let passes = |status: Option<&TestStatus>| status == Some(&TestStatus::Pass);
                let fail_to_pass: Vec<String> = after
                    .iter()
                    .filter(|(name, status)| passes(Some(status)) && !passes(before.get(*name)))
                    .map(|(name, _)| name.clone())
                    .collect();
                let Candidate { commit, parent, message, tests, sources } = candidate;
                if fail_to_pass.is_empty() {
                    return Tried::WithoutEffect;
                }
                Tried::Found(Mined { commit, parent, message, tests, sources, fail_to_pass })
            }
        }
    }

    async fn test(
        &self,
        candidate: &Candidate,
        cancel: &CancellationToken,
    ) -> Result<(TestResults, TestResults), TrialError> {
        let repository = RepositoryFile {
            path: Some(".".to_owned()),
            at: Some(candidate.parent.clone()),
            patch: Some(candidate.tests.clone()),
            ..RepositoryFile::default()
        };
        let workspace = Workspace::create(&repository, None, self.root, self.context, cancel).await?;
        let before = workspace.test(self.context, cancel).await?;
        if cancel.is_cancelled() {
            return Err(TrialError::Cancelled);
        }
        workspace.apply(&candidate.sources).await?;
        let after = workspace.test(self.context, cancel).await?;
        Ok((before, after))
    }
}

/// Whether a file is documentation.
fn is_prose(name: &str) -> bool {
    let end = name.rsplit('/').next().unwrap_or(name).rsplit_once('.').map(|(_, end)| end);
    matches!(end, Some("md" | "markdown" | "txt" | "rst" | "adoc"))
}
