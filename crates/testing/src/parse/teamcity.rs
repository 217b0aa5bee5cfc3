//! `TeamCity`'s service messages, which many runners write; `PHPUnit` for anyone who wants a stream.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::by_line::LineReader;
use super::frames::{self, Deepest};
use super::wording::{compared, kind_of};
use super::{Head, Stream};
use crate::{Event, Failure, FailureKind, Finished, HeadTail, Place, Sink, TestId, TestStatus};

/// Parallel flows, and suites within one.
const MOST: usize = 64;
/// A longer name is not one of a flow or a suite.
const LONGEST_NAME: usize = 1 << 10;
const ROOM: usize = 16 << 10;

/// `PHPUnit` tells risky tests as failed, and counts them as good.
const RISKY: [&str; 7] = [
    "This test did not perform any assertions",
    "This test is not expected to perform assertions",
    "This test printed output",
    "This test does not have a @covers annotation",
    "This test does not define a code coverage target",
    "Test code or tested code ",
    "This test executed code that is not listed as code to be covered",
];

/// Whether this is such a stream.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| line.starts_with("##teamcity[test"))
}

#[derive(Debug, Default)]
pub(super) struct TeamCity {
    flows: BTreeMap<String, Flow>,
    seen: bool,
}

/// What runs after one another.
#[derive(Debug, Default)]
struct Flow {
    suites: Vec<String>,
    test: Option<Test>,
}

#[derive(Debug)]
struct Test {
    /// As the messages call it.
    name: String,
    full_name: String,
    suite: String,
    file: Option<String>,
    end: Option<(TestStatus, Told)>,
}

#[derive(Debug, Default)]
struct Told {
    message: String,
    details: String,
    expected: Option<String>,
    actual: Option<String>,
}

impl LineReader for TeamCity {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        // What a test printed without a line end stands before the message.
        let Some(at) = line.find("##teamcity[").filter(|_| stream == Stream::Out) else { return };
        let Some(message) = Message::new(&line[at..]) else { return };
        let flow_id = message.get("flowId").unwrap_or_default();
        let is_new = !self.flows.contains_key(&*flow_id);
        if is_new && (self.flows.len() >= MOST || flow_id.len() > LONGEST_NAME) {
            return;
        }
        self.seen = true;
        self.flows.entry(flow_id.into_owned()).or_default().message(&message, sink);
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        let is_open = |flow: &Flow| flow.test.is_some() || !flow.suites.is_empty();
        if self.seen && !self.flows.values().any(is_open) {
            sink.event(Event::Ended { counted: None });
        }
    }
}

impl Flow {
    fn message(&mut self, message: &Message<'_>, sink: &mut dyn Sink) {
        let name = message.get("name").unwrap_or_default();
        match message.kind {
            "testCount" => {
                if let Some(count) = message.get("count").and_then(|count| count.parse().ok()) {
                    sink.event(Event::Declared(count));
                }
            }
            "testSuiteStarted" if self.suites.len() < MOST && name.len() <= LONGEST_NAME => {
                self.suites.push(name.into_owned())
            }
            "testSuiteFinished" => self.end_suite(&name, sink),
            "testStarted" => self.start(message, &name, sink),
            "testFailed" => self.failed(message, &name),
            "testIgnored" => self.ignored(message, &name, sink),
            "testFinished" => self.finish(message, &name, sink),
            "testStdOut" | "testStdErr" => {
                if let Some(test) = self.test.as_ref().filter(|test| test.name == name) {
                    let text = message.get("out").unwrap_or_default();
                    sink.event(Event::Output { test: test.id(), text: &text });
                }
            }
            _ => {}
        }
    }

    fn end_suite(&mut self, name: &str, sink: &mut dyn Sink) {
        if self.suites.last().is_some_and(|last| last == name) {
            self.suites.pop();
            sink.event(Event::SuiteEnded(name));
        }
    }

    fn start(&mut self, message: &Message<'_>, name: &str, sink: &mut dyn Sink) {
        if let Some(test) = self.test.take() {
            // It never ended; whoever knows how the process ended says what that means.
            test.reopen(sink);
        }
        let test = Test::new(message, name, &self.suites);
        let at = Place { file: test.file.as_deref(), line: None };
        sink.event(Event::Started { test: test.id(), at });
        self.test = Some(test);
    }

    fn failed(&mut self, message: &Message<'_>, name: &str) {
        let Some(test) = self.test.as_mut().filter(|test| test.name == name && test.end.is_none()) else {
            return;
        };
        let told = Told {
            message: shortened(message.get("message").unwrap_or_default()),
            details: shortened(message.get("details").unwrap_or_default()),
            expected: message.get("expected").map(shortened),
            actual: message.get("actual").map(shortened),
        };
        let risky = test.is_phps() && RISKY.iter().any(|start| told.message.starts_with(start));
        test.end = Some((if risky { TestStatus::Pass } else { TestStatus::Fail }, told));
    }

    /// Some runners ignore a test that they never started.
    fn ignored(&mut self, message: &Message<'_>, name: &str, sink: &mut dyn Sink) {
        let told = Told { message: shortened(message.get("message").unwrap_or_default()), ..Told::default() };
        if let Some(test) = self.test.as_mut().filter(|test| test.name == name) {
            test.end = Some((TestStatus::Skip, told));
            return;
        }
        let mut test = Test::new(message, name, &self.suites);
        test.end = Some((TestStatus::Skip, told));
        test.tell(0, sink);
    }

    fn finish(&mut self, message: &Message<'_>, name: &str, sink: &mut dyn Sink) {
        let Some(test) = self.test.take_if(|test| test.name == name) else { return };
        let ms = message.get("duration").and_then(|ms| ms.parse().ok()).unwrap_or(0);
        test.tell(ms, sink);
    }
}

impl Test {
    fn new(message: &Message<'_>, name: &str, suites: &[String]) -> Self {
        let hint = message.get("locationHint").unwrap_or_default();
        // `php_qn:///p/tests/CartTest.php::\App\CartTest::testSum`
        let php = hint.strip_prefix("php_qn://").and_then(|hint| hint.split_once("::\\"));
        let (suite, full_name, file) = match php {
            Some((file, rest)) => {
                let class = rest.split("::").next().unwrap_or(rest);
                (class.to_owned(), format!("{class}::{name}"), Some(file.to_owned()))
            }
            None => {
                let suite = suites.last().cloned().unwrap_or_default();
                let around: Vec<&str> =
                    suites.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
                let is_whole = around.is_empty() || name.starts_with(around[around.len() - 1]);
                let full_name =
                    if is_whole { name.to_owned() } else { format!("{} {name}", around.join(" ")) };
                (suite, full_name, hint.strip_prefix("file://").map(str::to_owned))
            }
        };
        Self { name: name.to_owned(), full_name, suite, file, end: None }
    }

    fn id(&self) -> TestId<'_> {
        TestId { suite: &self.suite, name: &self.full_name }
    }

    fn is_phps(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.ends_with(".php"))
    }

    fn tell(self, ms: u64, sink: &mut dyn Sink) {
        let Some((status, told)) = self.end.as_ref().filter(|(status, _)| *status != TestStatus::Pass) else {
            return sink.event(Event::Finished(Finished::new(self.id(), TestStatus::Pass, ms)));
        };
        let at = frames::place_in(&told.details, Deepest::First)
            .or_else(|| frames::place_in(&told.message, Deepest::First))
            .unwrap_or(Place { file: self.file.as_deref(), line: None });
        let in_words = compared(&told.message);
        let kind =
            kind_of("", &told.message).or_else(|| told.expected.as_ref().map(|_| FailureKind::Assertion));
        let failure = Failure {
            kind: kind.or(Some(FailureKind::Error)).filter(|_| *status == TestStatus::Fail),
            message: &told.message,
            stack: told.details.trim(),
            at,
            expected: told.expected.as_deref().or(in_words.map(|it| it.0)),
            actual: told.actual.as_deref().or(in_words.map(|it| it.1)),
        };
        sink.event(Event::Finished(Finished::new(self.id(), *status, ms).failure(failure)));
    }

    /// A test that failed has failed, though its end is missing; any other stays open.
    fn reopen(self, sink: &mut dyn Sink) {
        if self.end.is_some() {
            self.tell(0, sink);
        }
    }
}

fn shortened(text: Cow<'_, str>) -> String {
    if text.len() <= ROOM {
        return text.into_owned();
    }
    let mut short = HeadTail::new(ROOM / 2);
    short.push(&text);
    short.into_text()
}

/// `##teamcity[kind name='value' …]`.
struct Message<'a> {
    kind: &'a str,
    attributes: &'a str,
}

impl<'a> Message<'a> {
    fn new(text: &'a str) -> Option<Self> {
        let inner = text.strip_prefix("##teamcity[")?;
        let end = inner.find([' ', ']'])?;
        Some(Self { kind: &inner[..end], attributes: &inner[end..] })
    }

    fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut rest = self.attributes;
        loop {
            let (key, after) = rest.split_once("='")?;
            let end = value_end(after)?;
            if key.trim() == name {
                return Some(unescape(&after[..end]));
            }
            rest = &after[end + 1..];
        }
    }
}

/// The quote that is not escaped.
fn value_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'|' => escaped = true,
            b'\'' => return Some(at),
            _ => {}
        }
    }
    None
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('|') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('|') {
        plain.push_str(before);
        let Some(what) = after.chars().next() else { break };
        rest = &after[what.len_utf8()..];
        match what {
            'n' => plain.push('\n'),
            'r' => plain.push('\r'),
            'x' => plain.push('\u{85}'),
            'l' => plain.push('\u{2028}'),
            'p' => plain.push('\u{2029}'),
            '0' => {
                let code = rest.get(1..5).filter(|_| rest.starts_with('x'));
                let character =
                    code.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
                if let Some(character) = character {
                    plain.push(character);
                    rest = &rest[5..];
                } else {
                    plain.push('0');
                }
            }
            other => plain.push(other),
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}
