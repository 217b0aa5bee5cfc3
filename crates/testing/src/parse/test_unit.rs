//! test-unit of Ruby: failures between rulers on the way, counts at the end.

use super::ruby_failure;
use super::text_spec::{ANYWHERE, Does, INSIDE, OUTSIDE, TextFormat, TextSpec, Told, rule};
use crate::TestStatus::{Error, Fail, Pass, Skip};
use crate::{Failure, FailureKind};

/// `5 tests, 2 assertions, 1 failures, 1 errors, 1 pendings, 1 omissions, 0 notifications`; what was omitted is
/// counted, and what is pending too.
const COUNTS: &str = r"^(?<total>[0-9]+) tests, [0-9]+ assertions, (?<failed>[0-9]+) failures, (?<errors>[0-9]+) errors, (?<pending>[0-9]+) pendings, (?<omitted>[0-9]+) omissions, [0-9]+ notifications";

pub(super) static TEST_UNIT: TextFormat = TextFormat::new(TextSpec {
    begins: &[&[r"^Loaded suite "], &[COUNTS]],
    rules: &[
        rule(ANYWHERE | OUTSIDE, r"^={21,}$", &[Does::Entry(Fail)]),
        rule(ANYWHERE | INSIDE, r"^={21,}$", &[Does::Close]),
        rule(ANYWHERE | OUTSIDE, COUNTS, &[Does::Counts]),
        // The class whose tests are told, in verbose output.
        rule(ANYWHERE | OUTSIDE, r"^(?<suite>[^ ].*): $", &[Does::Suite]),
        rule(ANYWHERE | OUTSIDE, r"^(?<name>.*?):\t+\.: \((?<s>[0-9.]*)", &[Does::Result(Pass)]),
        rule(ANYWHERE | OUTSIDE, r"^(?<marks>[.FEPON]+)$", &[Does::Marks]),
    ],
    marks: &[(".", Pass), ("FE", Fail), ("PO", Skip)],
    full_name: |class, method| format!("{class}#{method}"),
    tidy,
    read: |entry| told(&entry.text).unwrap_or(Told::Nothing),
    ..TextSpec::DEFAULT
});

/// What is said, and then the frames; lines of source are neither.
fn tidy(text: &str) -> String {
    let (mut said, mut stack) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let plain = line.trim_start();
        let source = plain.trim_start_matches("=> ").split_once(':');
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_source = line.starts_with("  ") && source.is_some_and(|(number, _)| is_number(number));
        if ruby_failure::frame(line).is_some() {
            stack.push(plain);
        } else if !is_source {
            said.push(plain);
        }
    }
    format!("{}\0{}", said.join("\n").trim_end(), stack.join("\n"))
}

/// `Failure: test_fail(CartTest)`, `Error: test_err(CartTest): ArgumentError: bad`,
/// `Omission: later [test_omit(CartTest)]`.
fn told(text: &str) -> Option<Told<'_>> {
    let (said, stack) = text.split_once('\0')?;
    let (title, _) = said.split_once('\n').unwrap_or((said, ""));
    let (kind, test) = title.split_once(": ")?;
    let status = match kind {
        "Failure" => Fail,
        "Error" => Error,
        "Omission" | "Pending" => Skip,
        _ => return None,
    };
    let below = said[title.len()..].trim();
    let (test, message) = match test.strip_suffix(']').and_then(|title| title.rsplit_once(" [")) {
        Some((reason, test)) => (test, reason),
        None => match test.split_once("):") {
            Some((test, more)) => (test, said[title.len() - more.len()..].trim()),
            None => (test, below),
        },
    };
    let (method, class) = test.trim_end_matches(')').rsplit_once('(')?;
    let (error, bare) = ruby_failure::class_and_message(message);
    let kind = match status {
        Error => Some(ruby_failure::kind_of(error, bare)),
        Fail => Some(FailureKind::Assertion),
        _ => None,
    };
    let (expected, actual) = sides(message);
    let at = ruby_failure::place_of(stack.lines()).unwrap_or_default();
    let failure = Failure { kind, message, stack, at, expected, actual };
    Some(Told::test(class, &format!("{class}#{method}"), status, failure))
}

/// `<5> expected but was` / `<4>`.
fn sides(said: &str) -> (Option<&str>, Option<&str>) {
    let Some((before, after)) = said.split_once(" expected but was\n") else { return (None, None) };
    let inside = |text: &'_ str| -> Option<(usize, usize)> {
        let start = text.rfind('<')?;
        text.rfind('>').filter(|end| *end > start).map(|end| (start + 1, end))
    };
    let expected = before.lines().last().and_then(|line| inside(line).and_then(|(a, b)| line.get(a..b)));
    let actual = after.lines().next().and_then(|line| inside(line).and_then(|(a, b)| line.get(a..b)));
    (expected, actual)
}
