use super::*;
use crate::parse::Parser;
use crate::parse::by_line::ByLine;
use crate::{Collected, Collector, Ending, Limits};

fn read(text: &str) -> Collected {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = ByLine::<JestText>::default();
    parser.feed(Stream::Err, text.as_bytes(), &mut collector);
    parser.finish(&mut collector);
    collector.finish(&Ending::of_status(1))
}

const FAILURE: &str = "  ● cart › adds up\n\n    expect(received).toBe(expected)\n\n      at Object.toBe (test/a.test.js:5:43)\n\n";

#[test]
fn a_file_is_found_in_its_line_with_project_colour_and_time() {
    assert_eq!(file_line("FAIL test/a.test.js"), Some("test/a.test.js"));
    assert_eq!(
        file_line(" PASS  server  packages/my app/a.test.ts (5.2 s, 120 MB heap size)"),
        Some("packages/my app/a.test.ts")
    );
    assert_eq!(file_line("FAIL\tgithub.com/x/y\t0.1s"), None);
    assert_eq!(file_line("FAIL: test_x (tests.T)"), None);
}

#[test]
fn failures_that_are_printed_twice_count_once() {
    let run = read(&format!(
        "FAIL test/a.test.js\n{FAILURE}PASS test/b.test.js\nSummary of all failing tests\nFAIL test/a.test.js\n{FAILURE}\nTest Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 2 passed, 3 total\n"
    ));
    assert_eq!((run.summary.failed, run.summary.passed, run.counted, run.ended), (1, 2, Some(3), true));
}

#[test]
fn several_runs_in_one_output_add_up() {
    let one = "PASS test/a.test.js\n\nTest Suites: 1 passed, 1 total\nTests:       2 passed, 2 total\nRan all test suites.\n";
    let run = read(&format!("{one}{one}"));
    assert_eq!((run.summary.passed, run.counted), (4, Some(4)));
}

#[test]
fn what_is_printed_to_the_console_is_no_test() {
    let run = read(
        "PASS test/a.test.js\n  ● Console\n\n    console.log\n      ✕ fake (1 ms)\n\n      at log (test/a.test.js:3:3)\n\n\nTest Suites: 1 passed, 1 total\nTests:       1 passed, 1 total\n",
    );
    assert_eq!((run.summary.total, run.summary.failed, run.problems.len()), (1, 0, 0));
}

#[test]
fn a_threshold_of_coverage_and_a_bad_configuration_are_told() {
    let run = read(
        "Jest: \"global\" coverage threshold for lines (80%) not met: 50%\n● Validation Error:\n\n  Preset x not found.\n\n",
    );
    assert_eq!(run.problems.len(), 2);
    assert_eq!(run.problems[1].message, "Validation Error:\nPreset x not found.");
}
