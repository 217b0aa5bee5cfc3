//! Cases from the project's own history: commits that touch tests and sources, each really tried.

use std::collections::BTreeMap;
use std::sync::Arc;

use rehearsal_core::TestStatus;
use rehearsal_core::config::{Overrides, Settings};
use rehearsal_eval::case::RepositoryFile;
use rehearsal_eval::import::{Mined, history};
use rehearsal_eval::run::Unmade;
use rehearsal_forge::{Git, GitError};
use rehearsal_store::Store;
use rehearsal_testing::is_test_file;
use serde::Serialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{ImportArgs, Target};
use crate::commands::Done;
use crate::commands::eval::scene::Scene;
use crate::commands::eval::{stop_on_signal, tested};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::Project;
use crate::ui::one_line;
use crate::words;

/// A larger commit is not one thing that an agent could be asked for.
const MOST_FILES: usize = 100;
/// A longer patch is not either.
const LONGEST_PATCH: usize = 256 << 10;
/// As many cases as a first eval needs.
const MOST_CASES: usize = 20;

/// What was looked at.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Looked {
    /// Commits.
    commits: u64,
    /// Of these, those that touch tests and sources.
    candidates: u64,
    /// Candidates of which no test fails before and passes after.
    without_effect: u64,
    /// Candidates whose tests cannot be run.
    untestable: u64,
    /// Candidates that took too long.
    too_long: u64,
    /// Why the first of those whose tests cannot be run could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What trying a commit came to.
enum Tried {
    Found(Mined),
    WithoutEffect,
    Untestable(String),
    TooLong,
    Stopped,
}

/// A commit that touches tests and sources.
struct Candidate {
    commit: String,
    parent: String,
    message: String,
    tests: String,
    sources: String,
}

pub(super) async fn run(args: &ImportArgs, target: &Target, project: &Project, context: &Context) -> Done {
    let stop = stop_on_signal()?;
    let miner = Miner {
        git: Git::at(project.root.clone()),
        settings: project.settings(Overrides::default())?,
        store: project.store().await?,
        project,
        context,
        args,
    };
    let (mined, looked) = miner.mine(&stop).await?;
    let ui = context.ui;
    ui.aside(told(&looked, mined.len()));
    if mined.is_empty() {
        if stop.is_cancelled() {
            return Ok(Exit::Interrupted);
        }
        let error = CliError::new(Exit::Red, "no commit was found whose tests fail before and pass after");
        return Err(
            error.hint("look further back: --last N; `rehearsal test` shows whether the tests run at all")
        );
    }
    // Where the eval is not in the repository, `.` would be another one.
    let directory = target.directory(&project.root);
    let real = directory.canonicalize_utf8();
    let is_inside = real.as_deref().unwrap_or(directory).starts_with(&project.root);
    let path = if is_inside { "." } else { project.root.as_str() };
    let text =
        history(&target.name, path, &mined).map_err(|error| CliError::in_file(error, &target.shown))?;
    target.write(&text)?;
    target.tell(&text, mined.len(), context);
    let mut document = target.document(&text, mined.len(), Vec::new());
    document.history = Some(looked);
    ui.document(document);
    if stop.is_cancelled() {
        ui.aside("stopped: what was found until then is written");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Ok)
}

fn told(looked: &Looked, found: usize) -> String {
    let mut text = format!(
        "looked at {}: {} touch tests and sources; {found} found",
        words::count(looked.commits, "commit"),
        looked.candidates,
    );
    for (count, what) in [
        (looked.without_effect, "without a test that fails before and passes after"),
        (looked.untestable, "whose tests cannot be run"),
        (looked.too_long, "that took too long"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    if let Some(reason) = &looked.reason {
        text.push_str(&format!(" ({})", one_line(reason, 160)));
    }
    text
}

/// Goes through the history.
struct Miner<'a> {
    git: Git,
    settings: Settings,
    store: Arc<dyn Store>,
    project: &'a Project,
    context: &'a Context,
    args: &'a ImportArgs,
}

impl Miner<'_> {
    async fn mine(&self, stop: &CancellationToken) -> Result<(Vec<Mined>, Looked), CliError> {
        let most = self.args.most.map_or(MOST_CASES, |most| most as usize);
        let (mut mined, mut looked) = (Vec::new(), Looked::default());
        for (commit, parent) in self.commits().await? {
            if mined.len() >= most || stop.is_cancelled() {
                break;
            }
            looked.commits += 1;
            // What git cannot tell of a commit makes it no case; others are looked at.
            let Ok(Some(candidate)) = self.candidate(commit, parent).await else { continue };
            looked.candidates += 1;
            let subject = candidate.message.lines().next().unwrap_or_default().to_owned();
            let short: String = candidate.commit.chars().take(8).collect();
            let tried = self.try_for_a_while(candidate, stop).await;
            let word = match tried {
                Tried::Found(one) => {
                    let word = format!(
                        "{} fail before and pass after",
                        words::count(one.fail_to_pass.len() as u64, "test")
                    );
                    mined.push(one);
                    word
                }
                Tried::WithoutEffect => {
                    looked.without_effect += 1;
                    "no test fails before and passes after".to_owned()
                }
                Tried::Untestable(reason) => {
                    looked.untestable += 1;
                    looked.reason.get_or_insert(reason);
                    "its tests cannot be run".to_owned()
                }
                Tried::TooLong => {
                    looked.too_long += 1;
                    "it took too long".to_owned()
                }
                Tried::Stopped => break,
            };
            if self.context.ui.is_live() {
                self.context.ui.aside(format!("{short} {}: {word}", one_line(&subject, 60)));
            }
        }
        Ok((mined, looked))
    }

    /// The commits with one parent, the newest first, each with that.
    async fn commits(&self) -> Result<Vec<(String, String)>, CliError> {
        let most = format!("--max-count={}", self.args.last);
        let listed = self.git.line(&["log", "--no-merges", &most, "--format=%H %P", "HEAD"]).await;
        let listed = listed.map_err(|error| CliError::of(Exit::Git, &error))?;
        let pair = |line: &str| line.split_once(' ').map(|(one, parent)| (one.to_owned(), parent.to_owned()));
        Ok(listed.lines().filter_map(pair).filter(|(_, parent)| !parent.is_empty()).collect())
    }

    /// What a commit did to tests and to sources; none if it did not touch both, or too much.
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

    /// A part of a commit; none if it cannot be written down.
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

    /// Tries a commit, and gives up when its time is over.
    async fn try_for_a_while(&self, candidate: Candidate, stop: &CancellationToken) -> Tried {
        let cancel = stop.child_token();
        let trying = self.try_out(candidate, &cancel);
        tokio::pin!(trying);
        if let Ok(tried) = timeout(self.args.timeout.0, &mut trying).await {
            return tried;
        }
        cancel.cancel();
        // Whatever it started ends with it.
        trying.await;
        if stop.is_cancelled() { Tried::Stopped } else { Tried::TooLong }
    }

    /// The tests with what the commit did to tests alone, and with all that it did.
    async fn try_out(&self, candidate: Candidate, cancel: &CancellationToken) -> Tried {
        match self.tested(&candidate, cancel).await {
            _ if cancel.is_cancelled() => Tried::Stopped,
            Err(Unmade::Cancelled) => Tried::Stopped,
            Err(Unmade::Skipped(reason) | Unmade::Failed(reason)) => Tried::Untestable(reason),
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

    async fn tested(
        &self,
        candidate: &Candidate,
        cancel: &CancellationToken,
    ) -> Result<(Tests, Tests), Unmade> {
        let repository = RepositoryFile {
            path: Some(".".to_owned()),
            at: Some(candidate.parent.clone()),
            patch: Some(candidate.tests.clone()),
            ..RepositoryFile::default()
        };
        let scene = Scene::make(&repository, None, &self.project.root, cancel).await?;
        let before = self.tests(&scene, cancel).await?;
        if cancel.is_cancelled() {
            return Err(Unmade::Cancelled);
        }
        scene.apply(&candidate.sources).await?;
        let after = self.tests(&scene, cancel).await?;
        Ok((before, after))
    }

    async fn tests(&self, scene: &Scene, cancel: &CancellationToken) -> Result<Tests, Unmade> {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.context.clock));
        tested::by_name(scene, self.settings.testing.clone(), store, clock, cancel).await
    }
}

/// Tests by name.
type Tests = BTreeMap<String, TestStatus>;

/// Whether a file is for people only.
fn is_prose(name: &str) -> bool {
    let end = name.rsplit('/').next().unwrap_or(name).rsplit_once('.').map(|(_, end)| end);
    matches!(end, Some("md" | "markdown" | "txt" | "rst" | "adoc"))
}
