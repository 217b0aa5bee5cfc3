use super::*;
use crate::parse::Parser;
use crate::parse::by_line::ByLine;
use crate::{Collected, Collector, Ending, Limits};

fn read(text: &str, exit: i32) -> Collected {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = ByLine::<UnittestText>::default();
    parser.feed(Stream::Err, text.as_bytes(), &mut collector);
    parser.finish(&mut collector);
    collector.finish(&Ending::of_status(exit))
}

#[test]
fn what_a_test_prints_stands_before_its_status() {
    let run = read(
        "test_a (tests.T.test_a) ... hello\nmore\nok\ntest_b (tests.T.test_b) ... no newlineok\n\n----------------------------------------------------------------------\nRan 2 tests in 0.001s\n\nOK\n",
        0,
    );
    assert_eq!((run.summary.passed, run.tests.len(), run.ended, run.counted), (2, 2, true, Some(2)));
}

#[test]
fn names_of_older_pythons_get_their_method() {
    let run = read(
        "test_sub (tests.test_a.T) ... test_b (tests.test_a.T) ... ok\n======================================================================\nFAIL: test_sub (tests.test_a.T) (i=1)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/p/tests/test_a.py\", line 9, in test_sub\n    x\nAssertionError: 1 != 2\n\n======================================================================\nFAIL: test_sub (tests.test_a.T) (i=2)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/p/tests/test_a.py\", line 9, in test_sub\nAssertionError: 2 != 3\n\n----------------------------------------------------------------------\nRan 2 tests in 0.001s\n\nFAILED (failures=2)\n",
        1,
    );
    let failed: Vec<_> = run.tests.iter().filter(|test| test.status == TestStatus::Fail).collect();
    assert_eq!((run.summary.total, run.summary.passed, failed.len()), (2, 1, 1));
    assert_eq!((failed[0].name.as_str(), failed[0].line), ("tests.test_a.T.test_sub", Some(9)));
    assert_eq!(failed[0].error, "AssertionError: 1 != 2");
}

#[test]
fn a_run_that_hangs_names_the_test() {
    let run = read("test_a (tests.T.test_a) ... ok\ntest_b (tests.T.test_b) ... ", 137);
    assert_eq!((run.tests[1].name.as_str(), run.tests[1].status), ("tests.T.test_b", TestStatus::Timeout));
    assert!(!run.ended);
}

#[test]
fn a_printed_summary_is_not_the_end_if_tests_follow() {
    let run =
        read("test_a (tests.T.test_a) ... Ran 5 tests in 0.1s\n\nOK\ntest_b (tests.T.test_b) ... ok\n", 0);
    assert!(!run.ended);
}

#[test]
fn dots_of_a_run_that_was_cut_are_counted() {
    let run = read("..F.s", 137);
    assert_eq!((run.summary.total, run.summary.failed, run.summary.skipped, run.ended), (5, 1, 1, false));
}

#[test]
fn what_was_printed_while_buffered_is_output() {
    let run = read(
        "F\n======================================================================\nFAIL: test_a (t.T.test_a)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/p/t.py\", line 3, in test_a\nAssertionError: x\n\nStdout:\nprinted\n\n----------------------------------------------------------------------\nRan 1 test in 0.001s\n\nFAILED (failures=1)\n",
        1,
    );
    assert_eq!((run.tests[0].error.as_str(), run.tests[0].output.trim()), ("AssertionError: x", "printed"));
}

#[test]
fn a_crash_is_of_the_test_that_ran() {
    let run = read(
        "test_a (t.T.test_a) ... Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  File \"/p/t.py\", line 3 in test_a\n",
        134,
    );
    assert_eq!((run.tests.len(), run.tests[0].name.as_str(), run.tests[0].line), (1, "t.T.test_a", Some(3)));
    assert_eq!(run.tests[0].error, "Fatal Python error: Aborted");
}

#[test]
fn what_fails_around_a_test_is_an_error_and_of_a_class_it_is_no_test() {
    let run = read(
        "test_a (t.T.test_a) ... ERROR\ntearDownClass (t.T) ... ERROR\n\n======================================================================\nERROR: test_a (t.T.test_a)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/p/t.py\", line 3, in setUp\n    x\nRuntimeError: no\n\n======================================================================\nERROR: tearDownClass (t.T)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/p/t.py\", line 9, in tearDownClass\nRuntimeError: td\n\n----------------------------------------------------------------------\nRan 1 test in 0.001s\n\nFAILED (errors=2)\n",
        1,
    );
    assert_eq!(
        (run.summary.total, run.tests[0].status, run.tests[0].kind),
        (1, TestStatus::Error, Some(FailureKind::Setup))
    );
    assert_eq!((run.problems[0].name.as_str(), run.problems[0].kind), ("t.T", Some(FailureKind::Teardown)));
}

#[test]
fn a_python_that_does_not_count_what_it_skips_is_understood() {
    let rest = "\n----------------------------------------------------------------------\nRan 1 test in 0.001s\n\nOK (skipped=1)\n";
    for progress in ["s.\n", "test_a (t.T.test_a) ... skipped 'no'\ntest_b (t.T.test_b) ... ok\n"] {
        let run = read(&format!("{progress}{rest}"), 0);
        assert_eq!((run.summary.passed, run.summary.skipped, run.counted), (1, 1, Some(2)), "{progress}");
    }
}
