//! minitest: dots or a line a test, then the failures, then the counts. Rails tells failures on the way.

use super::text_spec::{Does, Entry, INSIDE, OUTSIDE, TextFormat, TextSpec, Told, rule, value};
use super::{place, ruby_failure};
use crate::TestStatus::{Error, Fail, Pass, Skip};
use crate::{Failure, FailureKind, Problem, ProblemScope};

const LOADING: u16 = 1;
const RUNNING: u16 = 2;
const LISTING: u16 = 4;
/// After `Failure:`, where its name stands.
const TITLE: u16 = 8;
/// `5 runs, 3 assertions, 2 failures, 1 errors, 1 skips`.
const COUNTS: &str = r"^(?<total>[0-9]+) (?:runs|tests), [0-9]+ assertions, (?<failed>[0-9]+) failures, (?<errors>[0-9]+) errors, (?<skipped>[0-9]+) skips$";
const TITLED: [&[Does]; 3] = [
    &[Does::Close, Does::Titled(Fail), Does::Go(TITLE)],
    &[Does::Close, Does::Titled(Error), Does::Go(TITLE)],
    &[Does::Close, Does::Titled(Skip), Does::Go(TITLE)],
];

pub(super) static MINITEST: TextFormat = TextFormat::new(TextSpec {
    begins: &[&[r"^# Running:$|^Run options: .*--seed"], &[COUNTS]],
    rules: &[
        rule(LOADING, r"^# Running(?::$| tests:)", &[Does::Forget, Does::Go(RUNNING)]),
        // A file that cannot be loaded: Ruby itself says why.
        rule(LOADING | OUTSIDE, r"^(?<why>.*: syntax error.*|.*Error\))$", &[Does::Problem]),
        rule(RUNNING | LISTING | TITLE, COUNTS, &[Does::Close, Does::Counts]),
        // `CartTest#test_fail [test/cart_test.rb:5]:`, or `test_fail(CartTest) [test/cart_test.rb:5]:` of old.
        rule(TITLE, r"^(?<name>.+?)(?: \[(?<file>.+):(?<line>[0-9]+)\])?:$", &[Does::Named, Does::Back]),
        rule(TITLE, "", &[Does::Back]),
        rule(LISTING, r"^ {2,}(?<number>[0-9]+)\) Failure:$", TITLED[0]),
        rule(LISTING, r"^ {2,}(?<number>[0-9]+)\) Error:$", TITLED[1]),
        rule(LISTING, r"^ {2,}(?<number>[0-9]+)\) Skipped:$", TITLED[2]),
        rule(RUNNING, r"^Failure:$", TITLED[0]),
        rule(RUNNING, r"^Error:$", TITLED[1]),
        rule(RUNNING, r"^Skipped:$", TITLED[2]),
        rule(RUNNING | LISTING | INSIDE, r"^(?:bin/)?rails test ", &[Does::Close]),
        rule(RUNNING | OUTSIDE, r"^Finished in ", &[Does::Go(LISTING)]),
        rule(
            RUNNING | OUTSIDE,
            r"^(?<name>(?<suite>[^#]*)#.*?) = (?<s>[0-9.]+) s = \.$",
            &[Does::Result(Pass)],
        ),
        rule(RUNNING | OUTSIDE, r"^(?<marks>[.FES]+)$", &[Does::Marks]),
    ],
    marks: &[(".", Pass), ("FE", Fail), ("S", Skip)],
    read,
    ..TextSpec::DEFAULT
});

fn read(entry: &Entry) -> Told<'_> {
    if entry.is_problem {
        return Told::Problem(load_error(&entry.why, &entry.text));
    }
    let old = entry.name.strip_suffix(')').and_then(|name| name.split_once('('));
    let (class, name) = match (entry.name.split_once('#'), old) {
        (Some((class, _)), _) => (class, entry.name.clone()),
        (None, Some((test, class))) => (class, format!("{class}#{test}")),
        (None, None) => ("", entry.name.clone()),
    };
    let (said, stack) = split(&entry.text);
    let (error, bare) = ruby_failure::class_and_message(said);
    let kind = match entry.status {
        Error => Some(ruby_failure::kind_of(error, bare)),
        Fail => Some(FailureKind::Assertion),
        _ => None,
    };
    let failure = Failure {
        kind,
        message: said,
        stack,
        at: entry.place().or_else(|| ruby_failure::place_of(stack.lines())).unwrap_or_default(),
        expected: value(said, "Expected: "),
        actual: value(said, "Actual: "),
    };
    Told::test(class, &name, entry.status, failure)
}

fn load_error(line: &str, below: &str) -> Problem {
    let kind = if line.contains(": syntax error") || line.ends_with("(SyntaxError)") {
        FailureKind::Compile
    } else if line.ends_with("(LoadError)") {
        FailureKind::Import
    } else {
        FailureKind::Error
    };
    let at = place::leading(line).filter(|(at, _)| place::is_own(at));
    let message = at.map_or(line, |(_, rest)| rest);
    let place = at.map(|(at, _)| at);
    let name = place.and_then(|at| at.file).unwrap_or_default();
    let found = place.or_else(|| ruby_failure::place_of(below.lines()));
    Problem::new(ProblemScope::Suite, name, Some(kind), message).at(found)
}

/// What is said, and the frames below it.
fn split(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("    ") && ruby_failure::frame(line).is_some() {
            return (text[..at].trim(), text[at..].trim_end());
        }
        at += line.len();
    }
    (text.trim(), "")
}
