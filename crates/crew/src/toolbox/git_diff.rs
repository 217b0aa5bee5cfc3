//! `git_diff`: what has changed.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::tool::{BuiltIn, ToolError};
use crate::Permission;
use crate::limits::{GIT_TAKES, RESULT_HEAD, RESULT_TAIL};
use crate::shell::{Order, RanEnd, Shell, Streams};
use crate::worktree::Worktree;

pub(super) struct GitDiff {
    pub(super) worktree: Arc<Worktree>,
    /// In which nothing can be written.
    pub(super) shell: Arc<Shell>,
    /// What the work began from.
    pub(super) base: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// `base`: everything since the work began, committed or not. `head`: what is not committed. Left out: `base`.
    against: Option<Against>,
    /// Only these files and directories.
    #[cfg_attr(feature = "schema", schemars(length(max = 100)))]
    paths: Option<Vec<String>>,
    /// Only names and counts of lines.
    stat: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Against {
    Base,
    Head,
}

/// Nothing that a repository says makes git run a program, and nothing that a user likes changes the form of its answer.
const SAFE: &[&str] = &[
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
    "-c",
    "safe.directory=*",
    "--no-pager",
    "--literal-pathspecs",
];
const DIFF: &[&str] = &["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"];
/// Of a diff, and of the names beside it: together no more than a result may have.
const DIFF_KEPT: (usize, usize) = (RESULT_HEAD - 3072, RESULT_TAIL - 2048);
const NAMES_KEPT: (usize, usize) = (3072, 1024);
/// The tree without anything that every repository knows, for one that has no commit of its own.
const NOTHING: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

#[async_trait]
impl BuiltIn for GitDiff {
    type Arguments = Arguments;

    const NAME: &'static str = "git_diff";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/git_diff.json");
    const ABOUT: &'static str = "Show what has changed in the worktree: as a diff against the commit that the work began from or against \
    the last one. New files that git does not know yet are named.";
    const NEEDS: Option<Permission> = Some(Permission::Read);
    const ONLY_READS: bool = true;

    async fn run(&self, asked: Arguments, cancel: &CancellationToken) -> Result<String, ToolError> {
        let paths = self.paths(asked.paths.as_deref().unwrap_or_default())?;
        let against = match (asked.against, &self.base) {
            (None | Some(Against::Base), Some(base)) => {
                self.git(&["merge-base", base, "HEAD"], cancel).await?
            }
            (Some(Against::Base), None) => {
                return Err(ToolError::failed("nobody said what the work began from; `head` is known"));
            }
            (None | Some(Against::Head), _) => self.head(cancel).await?,
        };
        let mut diff: Vec<&str> = DIFF.to_vec();
        diff.extend(asked.stat.unwrap_or(false).then_some("--stat"));
        diff.extend([against.trim(), "--"]);
        diff.extend(paths.iter().map(String::as_str));
        let mut text = self.git_kept(&diff, DIFF_KEPT, cancel).await?;
        let mut new = vec!["ls-files", "--others", "--exclude-standard", "--"];
        new.extend(paths.iter().map(String::as_str));
        let new = self.git(&new, cancel).await?;
        if text.is_empty() && new.is_empty() {
            return Ok("nothing has changed\n".to_owned());
        }
        if !new.is_empty() {
            text.push_str(&format!("New files that git does not know yet:\n{new}"));
        }
        Ok(text)
    }
}

impl GitDiff {
    /// Below the worktree, as with every other tool.
    fn paths(&self, given: &[String]) -> Result<Vec<String>, ToolError> {
        let checked = given.iter().map(|path| Ok(self.worktree.wanted(path)?.to_string()));
        checked.collect()
    }

    async fn head(&self, cancel: &CancellationToken) -> Result<String, ToolError> {
        match self.git(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], cancel).await {
            Err(ToolError::Failed(_)) => Ok(NOTHING.to_owned()),
            head => head,
        }
    }

    async fn git(&self, args: &[&str], cancel: &CancellationToken) -> Result<String, ToolError> {
        self.git_kept(args, NAMES_KEPT, cancel).await
    }

    /// What git says, with so much of its beginning and of its end.
    async fn git_kept(
        &self,
        args: &[&str],
        kept: (usize, usize),
        cancel: &CancellationToken,
    ) -> Result<String, ToolError> {
        let order = Order {
            program: "git".to_owned(),
            args: SAFE.iter().chain(args).map(|arg| (*arg).to_owned()).collect(),
            env: vec![("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned())],
            timeout: GIT_TAKES,
            streams: Streams::Apart,
            kept,
        };
        let ran =
            self.shell.run(order, cancel).await.map_err(|error| ToolError::failed(error.to_string()))?;
        match ran.end {
            RanEnd::Exited(0) => Ok(ran.stdout.finish("name `paths`, or take `stat` first")),
            RanEnd::Cancelled => Err(ToolError::Cancelled),
            RanEnd::TimedOut => {
                Err(ToolError::failed(format!("git took longer than {} s", GIT_TAKES.as_secs())))
            }
            _ => Err(ToolError::failed(format!("git failed: {}", ran.stderr.finish("").trim()))),
        }
    }
}
