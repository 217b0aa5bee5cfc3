//! Lua's busted, with its terminal outputs.

use super::place;
use super::text_spec::{ANYWHERE, Does, Entry, OUTSIDE, TextFormat, TextSpec, Told, rule};
use crate::TestStatus::{Error, Fail, Pass, Skip};
use crate::{Failure, FailureKind, Problem, ProblemScope};

const LIST: u16 = 2;
/// `1 success / 1 failure / 3 errors / 1 pending : 0.001672 seconds`.
const COUNTS: &str = r"^(?<passed>[0-9]+) success\w* / (?<failed>[0-9]+) failure\w* / (?<errors>[0-9]+) error\w* / (?<pending>[0-9]+) pending\w* : .* seconds$";

pub(super) static BUSTED: TextFormat = TextFormat::new(TextSpec {
    begins: &[&[COUNTS]],
    rules: &[
        // A later one: the one before was printed by a test.
        rule(ANYWHERE, COUNTS, &[Does::Counts, Does::Go(LIST)]),
        rule(LIST, r"^Failure (?:->|→) (?<file>.+) @ (?<line>[0-9]+)$", &[Does::Close, Does::Entry(Fail)]),
        rule(LIST, r"^Error (?:->|→) (?<file>.+) @ (?<line>[0-9]+)$", &[Does::Close, Does::Entry(Error)]),
        rule(LIST, r"^Pending (?:->|→) (?<file>.+) @ (?<line>[0-9]+)$", &[Does::Close, Does::Entry(Skip)]),
        rule(LIST, r"^(?:Failure|Error|Pending) (?:->|→) (?<why>.*)$", &[Does::Close, Does::Problem]),
        rule(ANYWHERE | OUTSIDE, r"^(?<marks>[-+.*●◼◌✱]+)$", &[Does::Marks]),
    ],
    marks: &[("+●", Pass), ("-◼*✱", Fail), (".◌", Skip)],
    read,
    ..TextSpec::DEFAULT
});

/// The first line of an entry is the name.
fn read(entry: &Entry) -> Told<'_> {
    let (name, text) = entry.text.split_once('\n').unwrap_or((&entry.text, ""));
    let Some(defined) = entry.place() else { return Told::Problem(broken_file(name, &entry.why)) };
    let hook = name.rsplit(' ').next().unwrap_or_default();
    let kind = match (entry.status, hook) {
        (Fail, _) => FailureKind::Assertion,
        (_, "setup" | "before_each" | "lazy_setup" | "strict_setup") => FailureKind::Setup,
        (_, "teardown" | "after_each" | "lazy_teardown") => FailureKind::Teardown,
        _ if text.contains("(a nil value)") => FailureKind::NullDeref,
        _ => FailureKind::Error,
    };
    let (message, stack) = text.split_once("\nstack traceback:\n").unwrap_or((text, ""));
    let (at, said) = match place::leading(message.trim()) {
        Some((at, said)) if place::is_own(&at) => (at, said),
        _ => (defined, message.trim()),
    };
    let expected = after(said, "Expected:\n");
    let failure = Failure {
        kind: (entry.status != Skip).then_some(kind),
        message: said,
        stack,
        at,
        expected,
        actual: after(said, "Passed in:\n").filter(|_| expected.is_some()),
    };
    Told::test(defined.file.unwrap_or_default(), name, entry.status, failure)
}

/// A file that cannot be loaded stands where others have their place: `Error -> spec/bad_spec.lua:1: unexpected symbol`.
fn broken_file(file: &str, said: &str) -> Problem {
    let at = place::leading(said);
    let message = at.map_or(said, |(_, said)| said);
    let own = at.and_then(|(at, _)| at.file).unwrap_or(file).to_owned();
    Problem::new(ProblemScope::Suite, file, Some(FailureKind::Compile), message)
        .placed(Some(own), at.and_then(|(at, _)| at.line))
}

fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.split_once(label)?.1.lines().next()
}
