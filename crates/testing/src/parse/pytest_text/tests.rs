use super::*;
use crate::parse::Parser;
use crate::parse::by_line::ByLine;
use crate::{Collected, Collector, Ending, FailureKind, Limits, TestStatus};

fn read(text: &str, exit: i32) -> Collected {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = ByLine::<PytestText>::default();
    parser.feed(Stream::Out, text.as_bytes(), &mut collector);
    parser.finish(&mut collector);
    collector.finish(&Ending::of_status(exit))
}

#[test]
fn what_a_test_prints_is_no_result() {
    let run = read(
        "===== test session starts =====\ncollected 1 item\n\na.py F   [100%]\n\n===== FAILURES =====\n_____ test_a _____\n\n>   assert 0\nE   assert 0\n\na.py:3: AssertionError\n---- Captured stdout call ----\n===== short test summary info =====\nFAILED fake.py::test_fake - trap\n===== 99 passed in 0.01s =====\n===== short test summary info =====\nFAILED a.py::test_a - assert 0\n===== 1 failed in 0.01s =====\n",
        1,
    );
    assert_eq!((run.summary.total, run.summary.failed, run.tests.len()), (1, 1, 1));
    assert_eq!((run.tests[0].name.as_str(), run.tests[0].line), ("a.py::test_a", Some(3)));
}

#[test]
fn a_test_that_failed_and_whose_clean_up_failed_is_one() {
    let run = read(
        "collected 1 item\n\na.py FE   [100%]\n\n===== ERRORS =====\n___ ERROR at teardown of test_a ___\nE   x\n\na.py:9: X\n===== FAILURES =====\n___ test_a ___\nE   assert 0\n\na.py:3: AssertionError\n===== short test summary info =====\nFAILED a.py::test_a - assert 0\nERROR a.py::test_a - x\n===== 1 failed, 1 error in 0.01s =====\n",
        1,
    );
    assert_eq!((run.summary.total, run.summary.failed), (1, 1));
}

#[test]
fn without_any_summary_the_characters_count() {
    let run = read(
        "..F.s                    [100%]\n===== FAILURES =====\n___ test_a ___\nE   assert 0\n\na.py:3: AssertionError\n",
        1,
    );
    assert_eq!((run.summary.total, run.summary.failed, run.summary.skipped, run.ended), (5, 1, 1, true));
}

#[test]
fn a_usage_error_and_an_internal_error_are_told() {
    let run = read("ERROR: file or directory not found: nope\n\n==== no tests ran in 0.00s ====\n", 4);
    assert_eq!(run.problems[0].message, "file or directory not found: nope");
    let run = read(
        "INTERNALERROR> Traceback (most recent call last):\nINTERNALERROR>   File \"/p/conftest.py\", line 4, in pytest_x\nINTERNALERROR>     1 / 0\nINTERNALERROR> ZeroDivisionError: division by zero\n\n==== no tests ran in 0.01s ====\n",
        3,
    );
    assert_eq!(run.problems[0].message, "pytest failed itself: ZeroDivisionError: division by zero");
    assert_eq!((run.problems[0].file.as_deref(), run.problems[0].line), (Some("conftest.py"), Some(4)));
}

#[test]
fn a_flaky_test_is_one_that_ran_again() {
    let run = read(
        "collected 1 item\n\na.py::test_a RERUN    [100%]\na.py::test_a PASSED   [100%]\n\n===== 1 passed, 1 rerun in 0.01s =====\n",
        0,
    );
    assert_eq!((run.summary.total, run.tests[0].status), (1, TestStatus::Flaky));
}

#[test]
fn tracebacks_of_every_style_tell_the_place() {
    for block in [
        "___ test_a ___\na.py:3: in test_a\n    assert 1 == 2\nE   assert 1 == 2\n",
        "___ test_a ___\nTraceback (most recent call last):\n  File \"/p/a.py\", line 3, in test_a\n    assert 1 == 2\nAssertionError: assert 1 == 2\n",
    ] {
        let run = read(
            &format!(
                "collected 1 item\n\na.py F  [100%]\n\n===== FAILURES =====\n{block}===== short test summary info =====\nFAILED a.py::test_a - assert 1 == 2\n===== 1 failed in 0.01s =====\n"
            ),
            1,
        );
        let test = &run.tests[0];
        assert_eq!(
            (test.file.as_deref(), test.line, test.kind),
            (Some("a.py"), Some(3), Some(FailureKind::Assertion))
        );
        assert!(test.error.contains("assert 1 == 2"), "{}", test.error);
    }
}

#[test]
fn names_are_not_needed_to_count() {
    let run = read("F.   [100%]\n1 failed, 1 passed in 0.01s\n", 1);
    assert_eq!((run.summary.total, run.summary.failed, run.summary.passed, run.ended), (2, 1, 1, true));
}

#[test]
fn a_part_that_fails_makes_its_test_fail_and_is_none_itself() {
    for progress in [
        "a.py::T::test_a SUBPASSED(i=0)  [ 50%]\na.py::T::test_a \na.py::T::test_a PASSED  [ 50%]\na.py::test_b PASSED  [100%]\n",
        "a.py u..   [100%]\n",
    ] {
        let run = read(
            &format!(
                "collected 2 items / 1 skipped\n\n{progress}\n===== FAILURES =====\n___ T.test_a [m] (i=1) ___\nE   assert 0\n\na.py:3: AssertionError\n===== short test summary info =====\nSUBFAILED[m] (i=1) a.py::T::test_a - assert 0\n===== 1 failed, 2 passed, 1 skipped, 1 subtests passed in 0.01s =====\n"
            ),
            1,
        );
        let summary = run.summary;
        assert_eq!(
            (summary.total, summary.failed, summary.passed, run.complaints.len()),
            (2, 1, 1, 0),
            "{progress}"
        );
        let failed = run.tests.iter().find(|test| test.status == TestStatus::Fail).unwrap();
        assert_eq!((failed.name.as_str(), failed.line), ("a.py::T::test_a", Some(3)));
    }
}

#[test]
fn durations_may_stand_where_the_percentage_does() {
    let verbose = "collected 3 items\n\na.py::test_a[x 3s] PASSED      224.4us\na.py::test_b SKIPPED (after 2s) 86.07us\n\
        a.py::test_c FAILED            1m 12s\n\n===== short test summary info =====\nFAILED a.py::test_c - assert 0\n\
        ===== 1 failed, 1 passed, 1 skipped in 72.01s (0:01:12) =====\n";
    let run = read(verbose, 1);
    assert_eq!((run.summary.total, run.summary.passed, run.summary.failed), (3, 1, 1));
    assert_eq!((run.summary.crashed, run.tests[0].name.as_str()), (0, "a.py::test_a[x 3s]"));
    let run = read("a.py ..F                 4.177ms\n", 1);
    assert_eq!((run.summary.passed, run.summary.failed), (2, 1));
}

#[test]
fn a_part_that_failed_is_told_of_its_test_with_and_without_a_message() {
    for part in ["(i=1) SUBFAIL", "[msg] (i=1) SUBFAIL", "SUBFAILED(i=1)"] {
        let text = format!(
            "collected 1 item\n\na.py ,u.   [100%]\n\n===== FAILURES =====\n___ TestU.test_sub (i=1) ___\nE   x\n\n\
             a.py:9: X\n===== short test summary info =====\n{part} a.py::TestU::test_sub - x\n\
             ===== 1 failed, 1 passed, 2 subtests passed in 0.01s =====\n"
        );
        let run = read(&text, 1);
        assert_eq!((run.summary.total, run.summary.failed, run.tests[0].line), (1, 1, Some(9)), "{part}");
    }
}

#[test]
fn parameters_stand_in_titles_as_they_are() {
    let run = read(
        "a.py::T::test_p[x::y] FAILED [100%]\n===== FAILURES =====\n___ T.test_p[x::y] ___\nE   x\n\na.py:5: X\n\
         ===== short test summary info =====\nFAILED a.py::T::test_p[x::y] - x\n===== 1 failed in 0.01s =====\n",
        1,
    );
    assert_eq!((run.tests[0].name.as_str(), run.tests[0].line), ("a.py::T::test_p[x::y]", Some(5)));
}

#[test]
fn counts_that_a_failed_test_printed_are_not_those_of_a_run_that_prints_none() {
    let run = read(
        ".F.      [100%]\n===== FAILURES =====\n___ test_b ___\nE   x\n\na.py:5: X\n---- Captured stdout call ----\n\
         ===== 7 failed, 3 passed in 0.10s =====\n===== short test summary info =====\nFAILED a.py::test_b - x\n",
        1,
    );
    assert_eq!((run.summary.total, run.summary.failed, run.summary.passed), (3, 1, 2));
}

#[test]
fn a_node_that_a_test_prints_is_no_test_where_characters_are_the_progress() {
    let run = read(
        "collected 2 items\n\na.py .hello\nfake.py::test_fake PASSED\n.\n\n===== 2 passed in 0.01s =====\n",
        0,
    );
    assert_eq!((run.summary.total, run.summary.passed, run.tests.len()), (2, 2, 0));
}

#[test]
fn the_place_of_a_group_of_exceptions_is_where_it_was_raised() {
    let run = read(
        "a.py F     [100%]\n===== FAILURES =====\n___ test_g ___\n  + Exception Group Traceback (most recent call last):\n  \
         |   File \"/p/a.py\", line 3, in test_g\n  |     raise ExceptionGroup(\"many\", [ValueError(\"a\")])\n  | \
         ExceptionGroup: many (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | ValueError: a\n    \
         +------------------------------------\n===== short test summary info =====\n\
         FAILED a.py::test_g - ExceptionGroup: many (1 sub-exception)\n===== 1 failed in 0.01s =====\n",
        1,
    );
    assert_eq!(
        (run.tests[0].line, run.tests[0].error.lines().next()),
        (Some(3), Some("ExceptionGroup: many (1 sub-exception)"))
    );
}
