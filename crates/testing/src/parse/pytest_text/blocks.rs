//! The blocks of the sections: what went wrong in each failed test.

use std::collections::{HashMap, VecDeque};

use crate::HeadTail;
use crate::parse::place::{is_own, leading};
use crate::parse::python_failure;

/// Of a block this much is kept at each end.
const ROOM: usize = 8 << 10;
/// All blocks together take no more than this: later ones are not explained.
const MOST: usize = 3 << 20;

/// The blocks by their titles; those with the same title in their order.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    by_title: HashMap<String, VecDeque<Block>>,
    /// Files that could not be collected, and what pytest said.
    pub uncollected: Vec<(String, String)>,
    /// `--tb=line`: a line a failure, in the order of the failures.
    lines: VecDeque<Block>,
    open: Option<(String, Writing)>,
    in_failures: bool,
    used: usize,
    /// How many clean-ups failed.
    pub teardowns: u64,
    /// Workers of xdist that died: the test each was running.
    pub crashed: Vec<(String, String)>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Block {
    pub text: String,
    pub output: String,
    pub message: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

#[derive(Debug)]
struct Writing {
    text: HeadTail,
    output: HeadTail,
    in_output: bool,
}

impl Blocks {
    pub(super) fn begin(&mut self, title: &str) {
        self.in_failures = title == "FAILURES";
    }

    pub(super) fn line(&mut self, line: &str) {
        if let Some(title) = title(line) {
            self.end();
            let writing =
                Writing { text: HeadTail::new(ROOM), output: HeadTail::new(ROOM), in_output: false };
            self.open = Some((title.to_owned(), writing));
            return;
        }
        let Some((_, writing)) = &mut self.open else {
            self.one_line(line);
            return;
        };
        if line.starts_with("---") && line.ends_with("---") {
            // `Captured stdout call`; other such lines are plugins', after the last block.
            writing.in_output = true;
            return;
        }
        let text = if writing.in_output { &mut writing.output } else { &mut writing.text };
        text.push_line(line);
    }

    /// The block at hand is over.
    pub(super) fn end(&mut self) {
        let Some((title, writing)) = self.open.take() else { return };
        let block = Block::new(writing.text.into_text(), writing.output.into_text());
        self.used += block.text.len() + block.output.len() + title.len();
        if title.starts_with("ERROR at teardown of ") {
            self.teardowns += 1;
        }
        if self.used > MOST {
            return;
        }
        if let Some(file) = title.strip_prefix("ERROR collecting ") {
            self.uncollected.push((file.to_owned(), block.text));
        } else if let Some(node) = crashed_worker(&block.text) {
            self.crashed.push((node.to_owned(), block.text.trim().to_owned()));
        } else {
            self.by_title.entry(title).or_default().push_back(block);
        }
    }

    fn one_line(&mut self, line: &str) {
        if !self.in_failures || self.used > MOST {
            return;
        }
        let Some((place, message)) =
            leading(line).filter(|(place, _)| place.file.is_some_and(|it| it.ends_with(".py")))
        else {
            return;
        };
        self.used += line.len();
        let own = is_own(&place);
        self.lines.push_back(Block {
            message: message.to_owned(),
            file: place.file.filter(|_| own).map(str::to_owned),
            line: place.line.filter(|_| own),
            ..Block::default()
        });
    }

    /// The block of a test: `error` says of which section.
    pub(super) fn take(&mut self, node: &str, error: bool, message: &str) -> Option<(&'static str, Block)> {
        let name = titled(node.split_once("::").map_or(node, |(_, name)| name));
        let titles: &[(&str, &'static str)] = if error {
            &[("ERROR at setup of ", "setup"), ("ERROR at teardown of ", "teardown")]
        } else {
            &[("", "call")]
        };
        for (prefix, phase) in titles {
            let block = self.by_title.get_mut(&format!("{prefix}{name}")).and_then(VecDeque::pop_front);
            if let Some(block) = block {
                return Some((*phase, block));
            }
        }
        if error {
            return None;
        }
        // A part of a test has its parameters in the title. Of several, any will do.
        let part = self.by_title.keys().filter(|title| title.starts_with(&format!("{name} "))).min().cloned();
        if let Some(block) = part.and_then(|title| self.by_title.get_mut(&title)?.pop_front()) {
            return Some(("call", block));
        }
        // The short summary shortens messages with dots.
        let told = message.trim_end_matches('.');
        let at = self.lines.iter().position(|block| !told.is_empty() && block.message.starts_with(told))?;
        self.lines.drain(..at);
        self.lines.pop_front().map(|block| ("call", block))
    }
}

impl Block {
    fn new(text: String, output: String) -> Self {
        let plain = text.lines().find(|line| !line.is_empty() && !line.starts_with("[gw"));
        let message = python_failure::marked_message(&text)
            .or_else(|| python_failure::group(&text).map(str::to_owned))
            .or_else(|| text.contains("Traceback (most").then(|| python_failure::exception(&text).to_owned()))
            .or_else(|| plain.map(str::to_owned))
            .unwrap_or_default();
        let at = python_failure::place(&text);
        let (file, line) = (at.and_then(|at| at.file).map(str::to_owned), at.and_then(|at| at.line));
        Self { text, output, message, file, line }
    }
}

/// `TestGroup::test_key[a::b]` as titles have it: classes are parted by dots, parameters stay as they are.
fn titled(name: &str) -> String {
    let (path, parameters) = name.split_at(name.find('[').unwrap_or(name.len()));
    path.replace("::", ".") + parameters
}

/// `_____ TestGroup.test_key _____`; a frame of a traceback is parted by `_ _ _`.
fn title(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('_')?.trim_start_matches('_').strip_prefix(' ')?;
    let title = inner.trim_end_matches('_').strip_suffix(' ')?;
    (line.ends_with('_') && !title.is_empty() && !title.starts_with("_ _") && title != "_").then_some(title)
}

/// `worker 'gw0' crashed while running 'tests/test_a.py::test_x'`.
fn crashed_worker(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("worker 'gw"))?;
    line.split_once("' crashed while running '")?.1.strip_suffix('\'')
}
