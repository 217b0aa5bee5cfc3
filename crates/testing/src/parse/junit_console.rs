//! What `JUnit`'s console launcher prints: tree, verbose, or only a summary.

use super::by_line::LineReader;
use super::java;
use super::wording::{compared, kind_of};
use super::{Head, Stream};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

const ROOM: usize = 8 << 10;

/// Whether this is such a text.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        ["├─ JUnit ", "└─ JUnit ", "+-- JUnit ", "'-- JUnit "].iter().any(|start| line.starts_with(start))
            || line.starts_with("Test run finished after ")
            || line.starts_with("Test plan execution started. Number of static tests: ")
    })
}

#[derive(Debug, Default)]
pub(super) struct JunitConsole {
    section: Section,
    /// The name in the tree that stands last, for a class that fails.
    node: String,
    item: Option<Item>,
    /// A line in the list of failures that may be the name of the next.
    header: String,
    told: Counts,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    Tree,
    Failures,
    Counts,
}

#[derive(Debug, Default)]
struct Counts {
    successful: u64,
    failed: u64,
    skipped: u64,
    aborted: u64,
}

/// A test (or a class) of which more lines may come.
#[derive(Debug)]
struct Item {
    class: String,
    /// None for a class.
    method: Option<String>,
    text: HeadTail,
    ms: u64,
}

impl LineReader for JunitConsole {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if stream == Stream::Err {
            return;
        }
        if line.starts_with("Failures (") && line.ends_with("):") {
            self.section = Section::Failures;
        } else if line.starts_with("Test run finished after ") {
            self.end_failure(sink);
            self.section = Section::Counts;
        } else {
            match self.section {
                Section::Tree => self.tree(line, sink),
                Section::Failures => self.failures(line, sink),
                Section::Counts => self.count(line, sink),
            }
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        if self.section == Section::Failures {
            self.end_failure(sink);
        }
    }
}

impl JunitConsole {
    /// Only `--details=verbose` tells more here than the summary will.
    fn tree(&mut self, line: &str, sink: &mut dyn Sink) {
        let inner = line.trim_start_matches(['│', '|', ' ']);
        if let Some(node) =
            ["├─ ", "└─ ", "+-- ", "'-- "].iter().find_map(|branch| inner.strip_prefix(branch))
        {
            self.end_class(sink);
            node.clone_into(&mut self.node);
        } else if let Some(source) = inner.strip_prefix("source: MethodSource ") {
            self.begin(source, sink);
        } else if let Some(text) = inner.strip_prefix("caught: ") {
            let node = &self.node;
            let item = self.item.get_or_insert_with(|| Item::new(node.clone(), None));
            item.text.push(text);
        } else if let Some(text) = inner.strip_prefix("reason: ") {
            if let Some(item) = &mut self.item {
                item.text.push(text);
            }
        } else if let Some(id) = inner.strip_prefix("uniqueId: ") {
            id.clone_into(&mut self.header);
        } else if let Some(time) = inner.strip_prefix("duration: ") {
            if let Some(item) = &mut self.item {
                item.ms = time.split(' ').next().and_then(|ms| ms.parse().ok()).unwrap_or(0);
            }
        } else if let Some(status) = inner.strip_prefix("status: ") {
            self.end_test(status, sink);
        } else if let Some(item) = &mut self.item {
            item.text.push("\n");
            item.text.push(inner);
        }
    }

    fn begin(&mut self, source: &str, sink: &mut dyn Sink) {
        let Some((class, method)) = method_source(source) else { return };
        let invocation = invocation(&self.header);
        let item = Item::new(class.to_owned(), Some(format!("{method}{invocation}")));
        let name = item.name();
        let test = TestId { suite: class, name: &name };
        sink.event(Event::Started { test, at: Place::default() });
        self.item = Some(item);
    }

    fn end_test(&mut self, status: &str, sink: &mut dyn Sink) {
        let Some(item) = self.item.take() else { return };
        let status = match status.rsplit(' ').next() {
            Some("SUCCESSFUL") => TestStatus::Pass,
            Some("FAILED") => TestStatus::Fail,
            _ => TestStatus::Skip,
        };
        self.tell(item, status, sink);
    }

    /// A class has no status: it failed if something was caught.
    fn end_class(&mut self, sink: &mut dyn Sink) {
        if let Some(item) = self.item.take_if(|item| item.method.is_none()) {
            self.tell(item, TestStatus::Fail, sink);
        }
    }

    fn failures(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some(source) = line.strip_prefix("    MethodSource ") {
            self.end_failure(sink);
            let Some((class, method)) = method_source(source) else { return };
            let index = self.header.rsplit(":[").next().and_then(|last| last.split_once(']'));
            let is_invocation = self.header.contains(":[");
            let method = match index.filter(|(number, _)| is_invocation && number.parse::<u32>().is_ok()) {
                Some((number, _)) => format!("{method}[{number}]"),
                None => method.to_owned(),
            };
            self.item = Some(Item::new(class.to_owned(), Some(method)));
        } else if let Some(source) = line.strip_prefix("    ClassSource ") {
            self.end_failure(sink);
            let class = quoted(source, "className").unwrap_or_default();
            self.item = Some(Item::new(class.to_owned(), None));
        } else if line.starts_with("  ") && !line.starts_with("   ") {
            line.trim().clone_into(&mut self.header);
        } else if let Some(item) = &mut self.item {
            item.text.push_line(line.trim_start().strip_prefix("=> ").unwrap_or(line));
        }
    }

    fn end_failure(&mut self, sink: &mut dyn Sink) {
        if let Some(item) = self.item.take() {
            self.tell(item, TestStatus::Fail, sink);
        }
    }

    fn tell(&mut self, item: Item, status: TestStatus, sink: &mut dyn Sink) {
        if item.method.is_none() {
            return sink.event(Event::Problem(item.into_problem()));
        }
        match status {
            TestStatus::Pass => self.told.successful += 1,
            TestStatus::Fail => self.told.failed += 1,
            _ => self.told.skipped += 1,
        }
        item.tell(status, sink);
    }

    fn count(&mut self, line: &str, sink: &mut dyn Sink) {
        let Some(inner) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) else { return };
        let words: Vec<&str> = inner.split_whitespace().collect();
        let [number, "tests", what] = words[..] else { return };
        let Ok(number) = number.parse() else { return };
        match what {
            "skipped" => self.counts.skipped = number,
            "aborted" => self.counts.aborted = number,
            "successful" => self.counts.successful = number,
            "failed" => {
                self.counts.failed = number;
                self.conclude(sink);
            }
            _ => {}
        }
    }

    /// What was counted and not named is told as that.
    fn conclude(&mut self, sink: &mut dyn Sink) {
        let skipped = self.counts.skipped.saturating_add(self.counts.aborted);
        let (counts, told) = (&self.counts, &self.told);
        for (status, counted, told) in [
            (TestStatus::Pass, counts.successful, told.successful),
            (TestStatus::Fail, counts.failed, told.failed),
            (TestStatus::Skip, skipped, told.skipped),
        ] {
            let count = counted.saturating_sub(told);
            if count > 0 {
                sink.event(Event::Counted { status, count });
            }
        }
        let counted = counts.successful.saturating_add(counts.failed).saturating_add(skipped);
        sink.event(Event::Ended { counted: Some(counted) });
    }
}

impl Item {
    fn new(class: String, method: Option<String>) -> Self {
        Self { class, method, text: HeadTail::new(ROOM), ms: 0 }
    }

    fn name(&self) -> String {
        format!("{}.{}", self.class, self.method.as_deref().unwrap_or_default())
    }

    fn tell(self, status: TestStatus, sink: &mut dyn Sink) {
        let name = self.name();
        let text = self.text.into_text();
        let test = TestId { suite: &self.class, name: &name };
        let finished = Finished::new(test, status, self.ms);
        if status == TestStatus::Pass {
            return sink.event(Event::Finished(finished));
        }
        let place = java::place_in(&text, &self.class);
        let (exception, message) = java::exception(&text);
        let (expected, actual) = compared(message).unzip();
        let kind = kind_of(exception, message).or(Some(FailureKind::Error));
        let at = place.as_ref().map_or(Place::default(), |place| Place::new(&place.file, place.line));
        let kind = kind.filter(|_| status == TestStatus::Fail);
        let failure = Failure { kind, message, stack: &text, at, expected, actual };
        sink.event(Event::Finished(finished.failure(failure)));
    }

    fn into_problem(self) -> Problem {
        let text = self.text.into_text();
        // The tree shows the class without its package, but the trace knows.
        let class = java::full_name(&text, &self.class).unwrap_or(&self.class).to_owned();
        let place = java::place_in(&text, &class);
        Problem {
            scope: ProblemScope::Suite,
            name: class,
            kind: Some(FailureKind::Setup),
            message: java::before_frames(&text).trim().to_owned(),
            line: place.as_ref().map(|place| place.line),
            file: place.map(|place| place.file),
        }
    }
}

/// `[className = 'shop.CartTest', methodName = 'param', methodParameterTypes = 'int']`.
fn method_source(source: &str) -> Option<(&str, &str)> {
    Some((quoted(source, "className")?, quoted(source, "methodName")?))
}

fn quoted<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = source.split_once(&format!("{name} = '"))?;
    rest.split_once('\'').map(|(value, _)| value)
}

/// `[3]` of `…/[test-template:param(int)]/[test-template-invocation:#3]`.
fn invocation(unique_id: &str) -> String {
    let last = unique_id.rsplit('/').next().unwrap_or_default();
    match last.strip_suffix(']').and_then(|last| last.rsplit_once(":#")) {
        Some((_, number)) => format!("[{number}]"),
        None => String::new(),
    }
}
