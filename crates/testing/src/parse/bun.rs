//! `bun test`, which tells results on standard error.

use super::js_failure;
use super::text_spec::{AFTER_BLANK, ANYWHERE, Does, Entry, INSIDE, TextFormat, TextSpec, Told, rule, value};
use crate::TestStatus::{Fail, Pass, Skip};
use crate::{Failure, FailureKind, Place, Problem, ProblemScope};

const TESTS: u16 = 1;
/// A file that cannot be loaded, or an error outside of tests, stands between two rulers.
const UNHANDLED: u16 = 2;
const BELOW_RULER: u16 = 4;
const RULER: &str = "^-{11,}$";

/// What a test that failed says stands before its result.
pub(super) static BUN: TextFormat = TextFormat::new(TextSpec {
    begins: &[&[
        r"^bun test v|^# Unhandled error between tests$|^\((?:pass|fail|skip|todo)\) .* \[[0-9.]+ms\]$|^Ran .* tests across .*\]$",
    ]],
    details_before: true,
    rules: &[
        rule(ANYWHERE, r"^bun test v(?<version>[^ ]+)", &[Does::Version]),
        rule(TESTS, "^# Unhandled error between tests$", &[Does::Close, Does::Problem, Does::Go(UNHANDLED)]),
        rule(UNHANDLED, RULER, &[Does::Go(BELOW_RULER)]),
        rule(BELOW_RULER, RULER, &[Does::Close, Does::Go(TESTS)]),
        rule(TESTS | INSIDE, r"^  \^ (?<text>.*)$", &[Does::OnlyText]),
        rule(
            TESTS,
            r"^(?:\(pass\)|✓) (?<name>.*?)(?: \[(?<ms>[0-9.]+)ms\])?$",
            &[Does::Close, Does::Result(Pass)],
        ),
        rule(
            TESTS,
            r"^(?:\(fail\)|✗) (?<name>.*?)(?: \[(?<ms>[0-9.]+)ms\])?$",
            &[Does::Close, Does::Entry(Fail)],
        ),
        rule(
            TESTS,
            r"^(?:\(skip\)|»|\(todo\)|✎) (?<name>.*?)(?: \[(?<ms>[0-9.]+)ms\])?$",
            &[Does::Close, Does::Result(Skip)],
        ),
        rule(
            TESTS | AFTER_BLANK,
            r"^(?<suite>[^ ].*\.(?:[mc]?[jt]s|[jt]sx)):$",
            &[Does::Close, Does::Forget, Does::Suite],
        ),
        rule(TESTS, r"^ (?<passed>[0-9]+) pass$", &[Does::Close, Does::Counts]),
        rule(TESTS, r"^ (?<failed>[0-9]+) fail$", &[Does::Count]),
        rule(TESTS, r"^ (?<skipped>[0-9]+) (?:skip|todo)$", &[Does::Count]),
        rule(TESTS, r"^ [0-9]+ ", &[]),
        rule(TESTS, r"^Ran (?<total>[0-9]+) .* across ", &[Does::Close, Does::Total]),
    ],
    full_name: |_, name| name.replace(" > ", " "),
    read,
    ..TextSpec::DEFAULT
});

fn read(entry: &Entry) -> Told<'_> {
    let (said, stack) = js_failure::message_and_stack(error_in(&entry.text));
    let (class, message) = js_failure::class_and_message(said);
    if entry.is_problem {
        return Told::Problem(problem(&entry.suite, class, message, stack));
    }
    let fallback = Place { file: (!entry.suite.is_empty()).then_some(entry.suite.as_str()), line: None };
    let hook = entry.name.ends_with("(unnamed)").then_some(FailureKind::Setup);
    let failure = Failure {
        kind: Some(hook.unwrap_or_else(|| js_failure::kind_of(class, message))),
        message: if class == "error" { message } else { said },
        stack,
        at: js_failure::place_of(stack).unwrap_or(fallback),
        expected: value(said, "Expected: "),
        actual: value(said, "Received: "),
    };
    Told::test(&entry.suite, &entry.name, Fail, failure)
}

fn problem(suite: &str, class: &str, message: &str, stack: &str) -> Problem {
    let at = js_failure::place_of(stack);
    let own = at.and_then(|at| at.file).filter(|file| *file != suite);
    let kind = match js_failure::kind_of(class, message) {
        // Bun calls everything `error` that its own parser finds.
        FailureKind::Error if class == "error" && own.is_some() => FailureKind::Compile,
        kind => kind,
    };
    // A module that cannot be found has no line: the file's beginning is where imports stand.
    let line = at.and_then(|at| at.line).or(Some(1));
    let file = own.unwrap_or(suite).to_owned();
    Problem::new(ProblemScope::Suite, suite, Some(kind), message).placed(Some(file), line)
}

/// What follows the lines of source that Bun shows first.
fn error_in(text: &str) -> &str {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (class, _) = js_failure::class_and_message(line.trim_end());
        if !class.is_empty() && !line.starts_with(' ') {
            return &text[at..];
        }
        at += line.len();
    }
    text.trim()
}
