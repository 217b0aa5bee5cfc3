//! A stream of TAP, line by line: results, the block and the comments around each, and groups of them.

use std::collections::BTreeSet;

use super::dialect::Dialect;
use super::failure::Told;
use super::line::{Point, TapLine};
use super::names::{Names, is_file};
use super::yaml::{Took, Yaml};
use crate::{
    Event, Failure, FailureKind, Finished, Place, Problem, ProblemScope, Sink, TestId, TestStatus, strip_ansi,
};

/// Of the text around a result, this much is kept.
const LONGEST_TEXT: usize = 32 << 10;
/// Deeper groups are told as text.
const DEEPEST: usize = 64;
/// So many numbers may be ahead of their turn.
const MOST_AHEAD: usize = 10_000;

#[derive(Debug)]
pub(super) struct Reader {
    pub names: Names,
    dialect: Dialect,
    /// The results at the top, and those of each group that is open.
    levels: Vec<Level>,
    /// The last result, until all that belongs to it was read.
    held: Option<Held>,
    in_block: bool,
    /// Comments since the last result.
    comments: String,
    plan_was_last: bool,
    stopped: bool,
}

/// The results of one group.
#[derive(Debug, Default)]
struct Level {
    plan: Option<u64>,
    points: u64,
    /// All numbers up to this one were seen, and these above it.
    up_to: u64,
    ahead: BTreeSet<u64>,
    tests: u64,
    bad: u64,
    /// What went wrong in the first that failed.
    first_bad: Option<(String, Told)>,
}

#[derive(Debug)]
pub(super) struct Held {
    depth: usize,
    indent: usize,
    pub name: String,
    status: TestStatus,
    reason: String,
    pub ms: u64,
    pub text: String,
    /// Comments that stood before it.
    pub before: String,
    pub yaml: Yaml,
    within: Level,
}

impl Reader {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            names: Names::new(dialect),
            dialect,
            levels: vec![Level::default()],
            held: None,
            in_block: false,
            comments: String::new(),
            plan_was_last: false,
            stopped: false,
        }
    }

    pub(super) fn line(&mut self, line: &str, sink: &mut dyn Sink) {
        let plain = strip_ansi(line);
        let line = plain.trim_start_matches('\u{feff}');
        if self.in_block
            && let Some(held) = &mut self.held
        {
            let took = held.yaml.line(line);
            self.in_block = took == Took::Line;
            if took != Took::Nothing {
                return;
            }
        }
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        if let Some(held) = self.held.as_mut().filter(|held| body == "---" && indent > held.indent) {
            held.yaml = Yaml::begin(indent);
            self.in_block = true;
            return;
        }
        let depth = indent / 4;
        let nests =
            matches!(self.dialect, Dialect::Plain | Dialect::NodeTest | Dialect::Vitest | Dialect::Deno);
        let in_place =
            indent == 0 || (nests && indent.is_multiple_of(4) && depth <= self.levels.len().min(DEEPEST));
        match if in_place { TapLine::read(body) } else { TapLine::Other } {
            TapLine::Point(point) => self.point(&point, depth, sink),
            TapLine::Plan { tests } => self.plan(tests, depth, sink),
            TapLine::Comment(text) => self.comment(text, depth, sink),
            TapLine::Close if self.dialect == Dialect::Vitest => self.close(depth, sink),
            TapLine::BailOut(reason) => self.bail_out(reason, sink),
            TapLine::Other | TapLine::Close if indent > 0 => {
                self.text(line.strip_prefix("  ").unwrap_or(body))
            }
            TapLine::Other | TapLine::Close | TapLine::Version | TapLine::Pragma => {}
        }
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        self.flush(sink);
        let top = &self.levels[0];
        let Some(plan) = top.plan else { return };
        let counts_as_declared = self.names.top_results_are_tests();
        if top.points > plan || (top.points < plan && self.plan_was_last && !counts_as_declared) {
            let complaint = format!("{plan} results were planned, {} came", top.points);
            sink.event(Event::Complaint(&complaint));
        }
        if !self.stopped && (self.plan_was_last || top.points >= plan) && self.names.all_closed() {
            sink.event(Event::Ended { counted: None });
        }
    }

    /// Begins anew, with the next file.
    pub(super) fn restart(&mut self, sink: &mut dyn Sink) -> (Option<u64>, u64) {
        self.flush(sink);
        let top = std::mem::take(&mut self.levels[0]);
        let suite = std::mem::take(&mut self.names.suite);
        *self = Self::new(self.dialect);
        self.names.suite = suite;
        (top.plan, top.points)
    }

    /// Whether all planned results came.
    pub(super) fn is_complete(&self) -> bool {
        self.levels[0].plan.is_some_and(|plan| self.levels[0].points >= plan)
    }

    /// Whether nothing came yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.levels[0].plan.is_none() && self.levels[0].points == 0
    }

    fn point(&mut self, point: &Point<'_>, depth: usize, sink: &mut dyn Sink) {
        self.flush(sink);
        self.plan_was_last = false;
        let misplaced = self.dialect == Dialect::Vitest && depth != self.names.open_groups();
        // These count without a gap: a number ahead of its turn was printed by a test.
        let counts = matches!(
            self.dialect,
            Dialect::Mocha | Dialect::Ava | Dialect::Deno | Dialect::Busted | Dialect::Pytest
        );
        let is_node = self.dialect == Dialect::NodeTest;
        let next = self.level(depth).up_to + 1;
        if misplaced || (counts && point.number.is_none_or(|number| number > next)) {
            return;
        }
        let within =
            if depth + 1 < self.levels.len() { self.levels.swap_remove(depth + 1) } else { Level::default() };
        self.levels.truncate(depth + 1);
        let level = self.level(depth);
        level.points += 1;
        let again = point.number.filter(|number| !level.is_new(*number));
        // Node gives a file without tests a number of its own, which a test may have too.
        if let Some(number) = again.filter(|_| !is_node) {
            sink.event(Event::Complaint(&format!("there are two results with number {number}")));
        }
        if point.opens && self.dialect == Dialect::Vitest && depth < DEEPEST {
            self.names.open(point.name, point.ok);
            self.levels.push(Level::default());
            self.comments.clear();
            return;
        }
        let number = point.number.unwrap_or(self.level(depth).points);
        let (name, reason, status, ms) = self.names.describe(point, number);
        self.held = Some(Held {
            depth,
            indent: depth * 4,
            name,
            status,
            reason,
            ms,
            text: String::new(),
            before: std::mem::take(&mut self.comments),
            yaml: Yaml::default(),
            within,
        });
    }

    fn level(&mut self, depth: usize) -> &mut Level {
        while self.levels.len() <= depth {
            self.levels.push(Level::default());
        }
        &mut self.levels[depth]
    }

    fn plan(&mut self, tests: u64, depth: usize, sink: &mut dyn Sink) {
        self.flush(sink);
        let level = self.level(depth);
        if level.plan.is_some() {
            sink.event(Event::Complaint("there are two plans"));
            return;
        }
        level.plan = Some(tests);
        if depth == 0 {
            self.plan_was_last = self.levels[0].points > 0 || tests == 0;
            if self.names.top_results_are_tests() {
                sink.event(Event::Declared(tests));
            }
        }
    }

    fn comment(&mut self, text: &str, depth: usize, sink: &mut dyn Sink) {
        if let Some(name) = text.strip_prefix("Subtest: ") {
            self.flush(sink);
            if let Some(test) = self.names.begin(name, depth) {
                sink.event(Event::Started { test: test.id(), at: Place::default() });
            }
            return;
        }
        if depth == 0 && self.names.is_file_heading(text) {
            self.flush(sink);
            text.clone_into(&mut self.names.suite);
            return;
        }
        match &mut self.held {
            // Its comments stand before the result they belong to.
            Some(held) if self.dialect != Dialect::NodeTest => push_line(&mut held.text, text),
            _ => push_line(&mut self.comments, text),
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(held) = self.held.as_mut().filter(|held| held.status == TestStatus::Fail) {
            push_line(&mut held.text, text);
        }
    }

    fn bail_out(&mut self, reason: &str, sink: &mut dyn Sink) {
        self.flush(sink);
        if self.stopped {
            return;
        }
        self.stopped = true;
        let message = if reason.is_empty() { "Bail out!".to_owned() } else { format!("Bail out! {reason}") };
        sink.event(Event::Problem(problem(ProblemScope::Run, String::new(), FailureKind::Exit, message)));
    }

    /// The end of a group in braces. A group that failed though its tests did not could not be set up.
    fn close(&mut self, depth: usize, sink: &mut dyn Sink) {
        self.flush(sink);
        if depth + 1 != self.names.open_groups() {
            return;
        }
        let mut level = self.levels.pop().unwrap_or_default();
        if let Some(group) = self.names.close()
            && !group.ok
            && level.bad == 0
        {
            let message = "it failed, and none of its tests did".to_owned();
            let mut problem = problem(ProblemScope::Suite, group.name, FailureKind::Setup, message);
            problem.file = Some(self.names.suite.clone()).filter(|suite| !suite.is_empty());
            sink.event(Event::Problem(problem));
            level.bad = 1;
        }
        if let Some(above) = self.levels.last_mut() {
            above.tests += level.tests;
            above.bad += level.bad;
        }
    }

    /// All that belongs to the last result was read.
    fn flush(&mut self, sink: &mut dyn Sink) {
        self.in_block = false;
        let Some(mut held) = self.held.take() else { return };
        let within = std::mem::take(&mut held.within);
        if let Some(ms) = held.yaml.get(&["duration_ms"]).and_then(|ms| ms.parse().ok()) {
            held.ms = crate::parse::milliseconds::of(ms);
        }
        let mut told = match held.status {
            TestStatus::Fail => Told::of(&held.yaml, &held.text, self.dialect),
            _ => Told::default(),
        };
        if !held.reason.is_empty() && held.status == TestStatus::Fail {
            (told.kind, told.message) = (Some(FailureKind::UnexpectedPass), held.reason.clone());
        }
        if held.depth > 0 && self.names.top_results_are_tests() {
            self.fold(held, told);
            return;
        }
        if told.file.is_none() {
            told.file = self.names.file_of(&held.name);
        }
        let test = self.names.of(&held.name, held.depth, told.place());
        if self.is_group(&held, &within, &told, test.id(), sink) {
            let level = self.level(held.depth);
            level.tests += within.tests;
            level.bad += within.bad;
            return;
        }
        let level = self.level(held.depth);
        level.tests += 1;
        if held.status == TestStatus::Fail {
            level.bad += 1;
            if let Some((name, inner)) = within.first_bad {
                told = told_by_part(&name, inner, told, self.dialect);
            }
        }
        finish(test.id(), &held, &told, sink);
    }

    /// A result inside a group, where only the group counts: its reason is the group's.
    fn fold(&mut self, held: Held, told: Told) {
        let (name, depth) = (held.name, held.depth);
        let level = self.level(depth);
        if held.status == TestStatus::Fail {
            level.bad += 1;
            let inner = held.within.first_bad;
            let told = match inner {
                Some((name, inner)) => told_by_part(&name, inner, told, Dialect::Plain),
                None => told,
            };
            let level = self.level(depth);
            level.first_bad.get_or_insert((name, told));
        }
    }

    /// Whether a result is of a group, a file or a hook, and not of a test.
    fn is_group(
        &self,
        held: &Held,
        within: &Level,
        told: &Told,
        test: TestId<'_>,
        sink: &mut dyn Sink,
    ) -> bool {
        let failed = held.status == TestStatus::Fail;
        if let Some(problem) = self.names.problem_of(held, told).filter(|_| failed && within.tests == 0) {
            sink.event(Event::Container(test));
            sink.event(Event::Problem(problem));
            return true;
        }
        if self.dialect != Dialect::NodeTest {
            return false;
        }
        let is_suite = held.yaml.get(&["type"]) == Some("suite");
        let fails_by_itself = failed && within.bad == 0;
        if within.tests == 0 && !is_suite && !is_file(&held.name) {
            return false;
        }
        if fails_by_itself && !is_suite {
            return false;
        }
        if fails_by_itself || (failed && held.yaml.get(&["failureType"]) == Some("hookFailed")) {
            let message =
                if told.message.is_empty() { "it failed, and none of its tests did" } else { &told.message };
            let mut problem =
                problem(ProblemScope::Suite, test.name.to_owned(), FailureKind::Setup, message.to_owned());
            (problem.file, problem.line) = (told.file.clone(), told.line);
            sink.event(Event::Problem(problem));
        }
        sink.event(Event::Container(test));
        true
    }
}

/// The reason of a group is that of its first part that failed.
fn told_by_part(name: &str, part: Told, group: Told, dialect: Dialect) -> Told {
    if dialect == Dialect::Deno {
        return part;
    }
    let message = format!("{name}: {}\n{}", part.message, group.message);
    let mut told = if part.file.is_some() { part } else { group };
    message.trim_end_matches([':', ' ', '\n']).clone_into(&mut told.message);
    told
}

fn finish(test: TestId<'_>, held: &Held, told: &Told, sink: &mut dyn Sink) {
    let mut finished = Finished::new(test, held.status, held.ms);
    if held.status == TestStatus::Fail {
        if !held.text.is_empty() {
            sink.event(Event::Output { test, text: &held.text });
        }
        finished = finished.failure(told.failure());
    } else if !held.reason.is_empty() {
        finished = finished.failure(Failure { message: &held.reason, ..Failure::default() });
    }
    sink.event(Event::Finished(finished));
}

pub(super) fn problem(scope: ProblemScope, name: String, kind: FailureKind, message: String) -> Problem {
    Problem::new(scope, name, Some(kind), message)
}

impl Level {
    fn is_new(&mut self, number: u64) -> bool {
        if number <= self.up_to {
            return number == 0;
        }
        if number == self.up_to + 1 {
            self.up_to = number;
            while self.ahead.remove(&(self.up_to + 1)) {
                self.up_to += 1;
            }
            return true;
        }
        self.ahead.len() >= MOST_AHEAD || self.ahead.insert(number)
    }
}

fn push_line(text: &mut String, line: &str) {
    if text.len() + line.len() < LONGEST_TEXT {
        text.push_str(line);
        text.push('\n');
    }
}
