//! What AVA prints for people: a line a test, then each failure at length, then counts.

use super::frames::{Deepest, is_source, place_in};
use super::text_spec::{AFTER_BLANK, Does, Entry, INSIDE, Streams, TextFormat, TextSpec, Told, rule};
use crate::TestStatus::{Fail, Pass, Skip};
use crate::{Failure, FailureKind, Place, Problem, ProblemScope};

const RESULTS: u16 = 1;
const DETAILS: u16 = 2;
const COUNTS: u16 = 4;
const COUNT: &[Does] = &[Does::Count, Does::Go(COUNTS)];

pub(super) static AVA: TextFormat = TextFormat::new(TextSpec {
    begins: &[
        &[r"^\s*(?:[✘✖] \[fail\]: |- \[(?:skip|todo)\] |✔ \[expected fail\] )"],
        &[
            r"^  [0-9]+ (?:tests? )?(?:failed|passed|skipped|todo|remaining|known failures?|uncaught exceptions?|unhandled rejections?)\s*$",
            r"^\s*─\s*$",
        ],
    ],
    streams: Streams::Out,
    trimmed: true,
    names_all: true,
    rules: &[
        // The line above and below the details, by version and terminal.
        rule(RESULTS | DETAILS, "^  (?:─|---)$", &[Does::Close, Does::Go(DETAILS)]),
        rule(DETAILS | AFTER_BLANK, "^  (?<failed>[0-9]+) (?:tests? )?failed$", COUNT),
        rule(DETAILS | AFTER_BLANK, "^  (?<passed>[0-9]+) (?:tests? )?passed", COUNT),
        rule(DETAILS | AFTER_BLANK, OTHER_COUNT, COUNT),
        rule(COUNTS, "^  (?<failed>[0-9]+) (?:tests? )?failed$", COUNT),
        rule(COUNTS, "^  (?<passed>[0-9]+) (?:tests? )?passed", COUNT),
        rule(RESULTS, r"^  [✘✖×] \[fail\]: (?<name>.*)$", &[Does::Await]),
        rule(
            RESULTS,
            r"^  [✔√] (?:\[expected fail\] )?(?<name>.*?)(?: \((?:(?<ms>[0-9]+)ms|(?<s>[0-9.]+)s)\))?$",
            &[Does::Result(Pass)],
        ),
        rule(RESULTS, r"^  - \[(?:skip|todo)\] (?<name>.*)$", &[Does::Result(Skip)]),
        rule(DETAILS | AFTER_BLANK, r"^  (?<name>[^ ].*)$", &[Does::Close, Does::Explains]),
        rule(DETAILS | INSIDE, "^(?:  )?(?<text>.*)$", &[Does::Text]),
        rule(RESULTS, r"^  [✘✖×] (?<why>.*)$", &[Does::Problem, Does::Close]),
        rule(DETAILS | COUNTS, r"^  (?:[✘✖×] )?(?<why>[^ ].*)$", &[Does::Problem, Does::Close]),
    ],
    read,
    ..TextSpec::DEFAULT
});

const OTHER_COUNT: &str = "^  [0-9]+ (?:tests? )?(?:skipped|todo|remaining|known failures?|uncaught exceptions?|unhandled rejections?)$";

fn read(entry: &Entry) -> Told<'_> {
    if entry.is_problem {
        return outside(&entry.why).map_or(Told::Nothing, Told::Problem);
    }
    let details = entry.text.trim();
    let stack = details.find("\n    at ").map_or("", |at| details[at..].trim_matches('\n'));
    let message = details[..details.len() - stack.len()].trim();
    // A snippet's heading is the only place that names the assertion; a frame is as good.
    let heading = message.lines().next().filter(|line| !line.contains(' ')).unwrap_or_default();
    let at = place_in(heading, Deepest::First).or_else(|| place_in(stack, Deepest::First));
    // Without a file before the names there is only one, so a failure without a place is in it too.
    let only = entry.near.as_deref().filter(|_| !entry.name.contains(" › "));
    let thrown = ["Error thrown in test", "Rejected promise returned by test", "Error: "]
        .iter()
        .any(|start| message.starts_with(start));
    let failure = Failure {
        kind: Some(if thrown { FailureKind::Error } else { FailureKind::Assertion }),
        message,
        stack,
        at: at.unwrap_or(Place { file: only, line: None }),
        ..Failure::default()
    };
    Told::test("", &entry.name, Fail, failure)
}

/// What failed and is no test: a file, the whole run.
fn outside(line: &str) -> Option<Problem> {
    let outside = [
        "exited with a non-zero exit code",
        "exited due to ",
        "No tests found in ",
        "Uncaught exception in ",
        "Unhandled rejection in ",
        "Couldn’t find any files to test",
        "Couldn't find any files to test",
        "Timed out while running tests",
        "Exited because no new tests completed",
        "Internal error",
    ];
    outside.iter().find(|part| line.contains(**part))?;
    let file = line.split(' ').find(|word| is_source(word)).map(str::to_owned);
    let scope = if file.is_some() { ProblemScope::Suite } else { ProblemScope::Run };
    let kind = if line.contains("xited") { FailureKind::Crash } else { FailureKind::Error };
    Some(Problem::new(scope, file.clone().unwrap_or_default(), Some(kind), line).placed(file, None))
}

#[cfg(test)]
mod tests {
    use crate::parse::retelling::retold;
    use insta::assert_snapshot;

    #[test]
    fn a_name_is_told_from_the_reason_behind_it_by_the_details() {
        let text = "\n  ✔ a › good (1.2s)\n  ✘ [fail]: a › bad Error thrown in test\n  ─\n\n  a › bad\n\n  Error thrown in test:\n\n  Error: boom\n      at file:///w/test/a.js:3:1\n\n  ─\n\n  1 test failed\n";
        assert_snapshot!(retold("ava-text", text, ""), @r"
        pass a › good
        fail a › bad @ test/a.js:3 | Error thrown in test:
        ended
        ");
    }

    #[test]
    fn counts_that_differ_from_what_was_seen_are_complained_about() {
        let text = "  ✔ good\n  ─\n\n  2 tests failed\n";
        assert_snapshot!(retold("ava-text", text, ""), @r"
        pass good
        complaint | the runner counted 2 failed and 0 passed, 0 and 1 were seen
        ended
        ");
    }
}
