//! `grep`: lines by what is in them.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{Until, blocking};
use super::glob::Names;
use super::tool::{BuiltIn, ToolError};
use super::walk::{self, Walked};
use crate::Permission;
use crate::limits::{FOUND_LINE_BYTES, MAX_FOUND_LINES, MAX_SEARCHED, RESULT_HEAD};
use crate::worktree::{Wanted, Worktree};

pub(super) struct Grep {
    pub(super) worktree: Arc<Worktree>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A regular expression, as of ripgrep.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 2000)))]
    pattern: String,
    /// The file or directory to search; the worktree if left out.
    path: Option<String>,
    /// Only files that fit, such as `*.rs` or `src/**/*.py`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 1000)))]
    glob: Option<String>,
    /// Letters may be large or small.
    ignore_case: Option<bool>,
    /// Lines to show before and after each.
    #[cfg_attr(feature = "schema", schemars(range(max = 10)))]
    context: Option<usize>,
    /// Only say in which files it is.
    files_only: Option<bool>,
}

#[async_trait]
impl BuiltIn for Grep {
    type Arguments = Arguments;

    const NAME: &'static str = "grep";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/grep.json");
    const ABOUT: &'static str = "Search files of the worktree for lines that fit a regular expression. Answers with `path:line:text`. What \
    `.gitignore` hides, and binary files, are left out.";
    const NEEDS: Option<Permission> = Some(Permission::Read);
    const ONLY_READS: bool = true;

    async fn run(&self, asked: Arguments, cancel: &CancellationToken) -> Result<String, ToolError> {
        let worktree = Arc::clone(&self.worktree);
        blocking(cancel, move |until| search(&worktree, &asked, until)).await
    }
}

fn search(worktree: &Worktree, asked: &Arguments, until: &Until) -> Result<String, ToolError> {
    let mut finding = Finding::new(asked)?;
    let names = asked.glob.as_deref().map(Names::new).transpose()?;
    let wanted = worktree.wanted(asked.path.as_deref().unwrap_or("."))?;
    let walked = match worktree.directory(&wanted) {
        Ok(below) => walk::files(worktree, &below, until, |file, walked| {
            if names.as_ref().is_none_or(|names| names.fit(file, &below)) {
                finding.search(worktree, file, walked);
            }
            if finding.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?,
        Err(error) if error.is_no_directory() => {
            let mut walked = Walked::default();
            finding.search(worktree, &wanted, &mut walked);
            walked
        }
        Err(error) => return Err(error.into()),
    };
    Ok(finding.told(asked, &wanted) + &walked.notes())
}

/// What was found so far.
struct Finding {
    matcher: RegexMatcher,
    searcher: Searcher,
    files_only: bool,
    text: String,
    count: usize,
    is_full: bool,
}

/// Bytes that an expression may take when it is compiled.
const EXPRESSION_SIZE: usize = 8 << 20;
/// The longest line that is searched.
const LINE_SIZE: usize = 4 << 20;

impl Finding {
    fn new(asked: &Arguments) -> Result<Self, ToolError> {
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(asked.ignore_case.unwrap_or(false))
            .size_limit(EXPRESSION_SIZE)
            .dfa_size_limit(EXPRESSION_SIZE)
            .line_terminator(Some(b'\n'))
            .build(&asked.pattern)
            .map_err(|error| ToolError::failed(format!("the pattern is no regular expression: {error}")))?;
        let context = asked.context.unwrap_or(0);
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .heap_limit(Some(LINE_SIZE))
            .before_context(context)
            .after_context(context)
            .build();
        let files_only = asked.files_only.unwrap_or(false);
        Ok(Self { matcher, searcher, files_only, text: String::new(), count: 0, is_full: false })
    }

    fn search(&mut self, worktree: &Worktree, file: &Wanted, walked: &mut Walked) {
        let opened = match worktree.read(file) {
            Ok(opened) if opened.size > MAX_SEARCHED => {
                return walked.leave_out(format!("`{file}`, which has {} bytes", opened.size));
            }
            Ok(opened) => opened,
            // It was there a moment ago.
            Err(error) if error.is_not_found() => return,
            Err(error) => return walked.leave_out(error.to_string()),
        };
        let Self { matcher, searcher, files_only, text, count, is_full } = self;
        let mut sink = Lines { file, files_only: *files_only, text, count, is_full };
        // It may grow while it is read.
        if let Err(error) = searcher.search_reader(&*matcher, opened.file.take(MAX_SEARCHED), &mut sink) {
            walked.leave_out(format!("`{file}`: {error}"));
        }
    }

    fn told(self, asked: &Arguments, wanted: &Wanted) -> String {
        let mut text = self.text;
        if self.count == 0 {
            text.push_str(&format!("nothing in `{wanted}` fits `{}`\n", asked.pattern));
        }
        if self.is_full {
            text.push_str(&format!(
                "[… stopped after {} results; narrow the pattern, `path` or `glob` …]\n",
                self.count
            ));
        }
        text
    }
}

/// Writes the lines of one file down.
struct Lines<'a> {
    file: &'a Wanted,
    files_only: bool,
    text: &'a mut String,
    count: &'a mut usize,
    is_full: &'a mut bool,
}

impl Lines<'_> {
    /// Whether there is room for more.
    fn line(&mut self, number: Option<u64>, mark: char, line: &[u8]) -> bool {
        let shown = &line[..line.len().min(FOUND_LINE_BYTES)];
        let shown = String::from_utf8_lossy(shown);
        let goes_on = if line.trim_ascii_end().len() > FOUND_LINE_BYTES { "[…]" } else { "" };
        let number = number.unwrap_or(0);
        self.text.push_str(&format!("{}{mark}{number}{mark}{}{goes_on}\n", self.file, shown.trim_end()));
        *self.is_full = *self.count >= MAX_FOUND_LINES || self.text.len() > RESULT_HEAD;
        !*self.is_full
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        *self.count += 1;
        if self.files_only {
            self.text.push_str(&format!("{}\n", self.file));
            *self.is_full = *self.count >= MAX_FOUND_LINES;
            return Ok(false);
        }
        Ok(self.line(found.line_number(), ':', found.bytes()))
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.line(around.line_number(), '-', around.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.text.push_str("--\n");
        Ok(true)
    }
}
