//! What bats prints for people: a line a test, what went wrong below it, and a count at the end.

use super::frames::{Deepest, place_in};
use super::text_spec::{Does, Entry, INSIDE, Streams, TextFormat, TextSpec, Told, rule};
use crate::TestStatus::{Fail, Pass, Skip};
use crate::{Failure, FailureKind, Problem, ProblemScope};

const RESULTS: u16 = 1;
const OVER: u16 = 2;

pub(super) static BATS: TextFormat = TextFormat::new(TextSpec {
    // Others use its marks too, but none has files that end so.
    begins: &[&[r" [✓✗] ", r"\.bats\s*$|in test file "]],
    // On standard error are only warnings about the way in which tests are written.
    streams: Streams::Out,
    trimmed: true,
    rules: &[
        rule(RESULTS, r"^(?<total>[0-9]+) tests?, .* failure", &[Does::Close, Does::Total, Does::Go(OVER)]),
        rule(RESULTS, r"^ ✓ (?<name>.*?)(?: \[(?<ms>[0-9]+)\])?$", &[Does::Close, Does::Result(Pass)]),
        rule(RESULTS, r"^ ✗ (?<name>.*?)(?: \[(?<ms>[0-9]+)\])?$", &[Does::Close, Does::Entry(Fail)]),
        rule(
            RESULTS,
            r"^ - (?<name>.*) \(skipped[: ]*(?<why>.*?)\)*(?: \[(?<ms>[0-9]+)\])?$",
            &[Does::Close, Does::Result(Skip)],
        ),
        rule(RESULTS | INSIDE, r"^   (?<text>.*)$", &[Does::Text]),
        rule(RESULTS, r"^(?<suite>[^ ].*\.bats)$", &[Does::Close, Does::Suite]),
        rule(RESULTS | OVER, "", &[]),
    ],
    read,
    ..TextSpec::DEFAULT
});

fn read(entry: &Entry) -> Told<'_> {
    let text = &entry.text;
    let at = place_in(text, Deepest::First).unwrap_or_default();
    let kind = match &*entry.name {
        "setup_file failed" => FailureKind::Setup,
        "teardown_file failed" => FailureKind::Teardown,
        _ => {
            let kind = Some(FailureKind::Assertion);
            let failure = Failure { kind, message: text, at, ..Failure::default() };
            return Told::test(&entry.suite, &entry.name, entry.status, failure);
        }
    };
    let name = at.file.unwrap_or(&entry.suite);
    let message = format!("{}\n{text}", entry.name);
    Told::Problem(Problem::new(ProblemScope::Suite, name, Some(kind), message).at(at))
}

#[cfg(test)]
mod tests {
    use crate::parse::retelling::retold;
    use insta::assert_snapshot;

    #[test]
    fn results_are_read_with_and_without_a_terminal() {
        let text = "x.bats\n ✓ good [12]\n\x1b[1G   bad\x1b[K\x1b[77G2/3\x1b[2G\x1b[1G ✗ bad\x1b[K\n   (in test file test/x.bats, line 9)\n     `false' failed\n - later (skipped: why)\n\n3 tests, 1 failure, 1 skipped\n";
        assert_snapshot!(retold("bats-text", text, ""), @r"
        pass good
        fail bad @ test/x.bats:9 | (in test file test/x.bats, line 9)
        skip later | why
        ended
        ");
    }
}
