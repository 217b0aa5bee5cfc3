//! `glob`: files by their names.

use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::tool::{BuiltIn, ToolError};
use super::walk;
use crate::Permission;
use crate::limits::{MAX_FOUND_FILES, RESULT_HEAD};
use crate::worktree::{Wanted, Worktree};

pub(super) struct Glob {
    pub(super) worktree: Arc<Worktree>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Such as `src/**/*.rs`; without a slash it is the name of a file anywhere, such as `*.md`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 1000)))]
    pattern: String,
    /// The directory to look in, and which the pattern is relative to; the worktree if left out.
    path: Option<String>,
}

#[async_trait]
impl BuiltIn for Glob {
    type Arguments = Arguments;

    const NAME: &'static str = "glob";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/glob.json");
    const ABOUT: &'static str =
        "List files of the worktree by their names, in order. What `.gitignore` hides is left out.";
    const NEEDS: Option<Permission> = Some(Permission::Read);
    const ONLY_READS: bool = true;

    async fn run(&self, asked: Arguments, cancel: &CancellationToken) -> Result<String, ToolError> {
        let worktree = Arc::clone(&self.worktree);
        blocking(cancel, move |until| {
            let names = Names::new(&asked.pattern)?;
            let below = worktree.directory(&worktree.wanted(asked.path.as_deref().unwrap_or("."))?)?;
            let (mut text, mut count) = (String::new(), 0);
            let mut is_full = false;
            let walked = walk::files(&worktree, &below, until, |file, _| {
                if !names.fit(file, &below) {
                    return ControlFlow::Continue(());
                }
                is_full = count == MAX_FOUND_FILES || text.len() > RESULT_HEAD;
                if is_full {
                    return ControlFlow::Break(());
                }
                count += 1;
                text.push_str(&format!("{file}\n"));
                ControlFlow::Continue(())
            })?;
            if count == 0 {
                text.push_str(&format!("no file in `{below}` fits `{}`\n", asked.pattern));
            }
            if is_full {
                text.push_str(&format!("[… more than {count} files fit; narrow the pattern …]\n"));
            }
            Ok(text + &walked.notes())
        })
        .await
    }
}

/// Names that fit a pattern.
pub(super) struct Names {
    matcher: GlobMatcher,
    /// Whether only the name of a file counts.
    is_bare: bool,
}

impl Names {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob =
            glob.map_err(|error| ToolError::failed(format!("`{pattern}` is no pattern: {}", error.kind())))?;
        Ok(Self { matcher: glob.compile_matcher(), is_bare: !pattern.contains('/') })
    }

    /// Whether a file fits, by its path below a directory.
    pub(super) fn fit(&self, file: &Wanted, below: &Wanted) -> bool {
        let path = file.as_path();
        if self.is_bare {
            return path.file_name().is_some_and(|name| self.matcher.is_match(name));
        }
        path.strip_prefix(below.as_path()).is_ok_and(|path| self.matcher.is_match(path))
    }
}
