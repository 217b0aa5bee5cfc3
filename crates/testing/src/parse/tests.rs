//! What is read of short texts: the traps that each format has.

use super::{Format, Head, Stream};
use crate::{Collected, Collector, Ending, Limits, TestStatus};

/// A text of one format, and the other things that may be in it.
pub(super) fn read(format: &str, text: &str) -> Collected {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = Format::named(format).unwrap().parser();
    parser.feed(Stream::Out, text.as_bytes(), &mut collector);
    parser.finish(&mut collector);
    collector.finish(&Ending::of_status(1))
}

/// The tests that did not pass: status, name and place.
pub(super) fn bad(run: &Collected) -> Vec<String> {
    let is_bad = |status| !matches!(status, TestStatus::Pass | TestStatus::Skip);
    let tests = run.tests.iter().filter(|test| is_bad(test.status));
    tests
        .map(|test| {
            let place = test.file.as_ref().map(|file| format!(" at {file}:{}", test.line.unwrap_or(0)));
            format!("{:?} {}{}", test.status, test.name, place.unwrap_or_default())
        })
        .collect()
}

/// Passed, failed and skipped.
pub(super) fn counts(run: &Collected) -> (u64, u64, u64) {
    (run.summary.passed, run.summary.failed, run.summary.skipped)
}

#[test]
fn no_format_claims_the_text_of_another() {
    for (text, name) in [
        ("<?xml version='1.0'?><testsuites/>", "junit"),
        ("a line of a test\n<testsuite name='Mocha Tests'/>", "junit"),
        ("it wrote <testsuite> somewhere\n", "generic"),
        ("<TestRun xmlns='http://microsoft.com/schemas/VisualStudio/TeamTest/2010'>", "trx"),
        ("<Catch2TestRun name='x'>", "catch2-xml"),
        ("[INFO] Scanning for projects...\n[INFO] Running shop.ATest\n", "maven"),
        ("> Task :test FAILED\n", "gradle"),
        ("Test project /p/build\n    Start 1: a\n1: [==========] Running 1 test from 1 test suite.", "ctest"),
        ("[==========] Running 1 test from 1 test suite.\n", "gtest"),
        ("PHPUnit 10.5.1 by Sebastian Bergmann and contributors.\n", "phpunit"),
        ("##teamcity[testCount count='1']\n", "teamcity"),
        ("ok 1 a\n\n  2 passing (3ms)\n", "tap"),
        ("not ok 1 - a\n  2 passing (3ms)\nok 2 - b\n", "tap"),
        ("not ok 1 - printed\n\n  2 passing (3ms)\n", "mocha"),
        ("TAP version 13\n===== 2 passed in 0.01s =====\nok 1 - a\n", "tap"),
        ("I talk of BUILD FAILED in 3s and [INFO] Running things\n", "generic"),
    ] {
        let head = Head { file_name: "output.txt", text };
        assert_eq!(Format::of(&head, None).name, name, "{text}");
    }
}

#[test]
fn a_summary_that_a_php_test_prints_counts_nothing() {
    let run = read(
        "phpunit",
        "PHPUnit 9.6.7 by Sebastian Bergmann and contributors.\n\n.OK (9 tests, 9 assertions)\nF  2 / 2 (100%)\n\n\
         Time: 00:00.039, Memory: 6.00 MB\n\nThere was 1 failure:\n\n1) A\\BTest::testX with data set \"a (b)\" (1)\nno\n\n\
         /p/tests/BTest.php:7\n\nFAILURES!\nTests: 2, Assertions: 2, Failures: 1.\n",
    );
    assert_eq!(counts(&run), (1, 1, 0));
    assert_eq!(bad(&run), ["Fail A\\BTest::testX with data set \"a (b)\" at tests/BTest.php:7"]);
    assert_eq!((run.ended, run.counted, run.complaints.len()), (true, Some(2), 0));
}

#[test]
fn a_whole_end_that_a_php_test_prints_makes_the_run_doubtful() {
    let end = "Time: 00:00.039, Memory: 6.00 MB\n\nOK (1 test, 1 assertion)\n";
    let run = read("phpunit", &format!("PHPUnit 11.0 by Sebastian Bergmann\n\n{end}F 1 / 1 (100%)\n\n{end}"));
    assert_eq!(run.complaints, ["the output has more than one end"]);
}

#[test]
fn a_php_run_that_dies_says_where() {
    let run = read(
        "phpunit",
        "PHPUnit 9.6.7 by Sebastian Bergmann\n\n..PHP Fatal error:  Allowed memory\nFatal error:  Out of it in /p/src/Cart.php on line 4\n",
    );
    assert!(!run.ended);
    assert_eq!(run.problems[0].file.as_deref(), Some("src/Cart.php"));
    assert_eq!(run.problems[0].line, Some(4));
}

#[test]
fn a_service_message_of_a_test_that_does_not_run_ends_nothing() {
    let run = read(
        "teamcity",
        "##teamcity[testSuiteStarted name='s']\n##teamcity[testStarted name='a']\n##teamcity[testFinished name='b']\n\
         ##teamcity[testFailed name='a' message='x |[y|] |0x00fc|n' details='']\n##teamcity[testFinished name='a' duration='5']\n\
         ##teamcity[testIgnored name='c' message='later']\n##teamcity[testSuiteFinished name='s']\n",
    );
    assert_eq!(counts(&run), (0, 1, 1));
    assert_eq!(bad(&run), ["Fail s a"]);
    assert_eq!(run.tests[0].error, "x [y] ü");
    assert!(run.ended);
}

#[test]
fn a_test_of_google_that_prints_the_end_of_another_does_not_end_it() {
    let run = read(
        "gtest",
        "[==========] Running 2 tests from 1 test suite.\n[ RUN      ] A.B\n[       OK ] A.C (0 ms)\nunit.cpp(6): error: Value of: x\n  Actual: 1\n\
         no line end[  FAILED  ] A.B (1 ms)\n[ RUN      ] A.C\n",
    );
    assert_eq!(bad(&run), ["Fail A.B at unit.cpp:6", "Crash A.C"]);
    assert_eq!(run.tests[0].error, "Value of: x\n  Actual: 1\nno line end");
    assert!(!run.ended);
}

#[test]
fn a_line_like_a_result_in_the_output_of_a_ctest_is_none() {
    let run = read(
        "ctest",
        "Test project /p/b\n    Start 1: a\n1/2 Test #1: a ....***Failed  Regex=[yes\n]  0.01 sec\n2/2 Test #2: b ...   Passed    0.01 sec\n\
         /p/x.cpp:12: no\n    Start 2: b\n2/2 Test #2: b ....   Passed    0.02 sec\n\n50% tests passed, 1 tests failed out of 2\n",
    );
    assert_eq!(counts(&run), (1, 1, 0));
    assert_eq!(bad(&run), ["Fail a at x.cpp:12"]);
    assert_eq!((run.ended, run.counted), (true, Some(2)));
}

#[test]
fn a_ctest_that_passes_when_repeated_is_flaky() {
    let run = read(
        "ctest",
        "Test project /p/b\n    Start 1: a\n1/1 Test #1: a ....***Failed    0.01 sec\n    Start 1: a\n    Test #1: a ....   Passed    0.01 sec\n\n\
         100% tests passed, 0 tests failed out of 1\n",
    );
    assert_eq!((run.summary.flaky, run.summary.total, run.complaints.len()), (1, 1, 0));
}

#[test]
fn surefire_of_any_version_names_its_failures() {
    for (head, test) in [
        (
            "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.2 sec <<< FAILURE! - in a.b.XTest",
            "bad(a.b.XTest)  Time elapsed: 0.1 sec  <<< FAILURE!",
        ),
        (
            "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.2 s <<< FAILURE! - in a.b.XTest",
            "[ERROR] bad  Time elapsed: 0.1 s  <<< FAILURE!",
        ),
        (
            "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.2 s <<< FAILURE! -- in a.b.XTest",
            "[ERROR] a.b.XTest.bad -- Time elapsed: 0.1 s <<< FAILURE!",
        ),
    ] {
        let run = read(
            "maven",
            &format!(
                "[INFO] Scanning for projects...\n[INFO] Running a.b.XTest\n[INFO] BUILD SUCCESS\n{head}\n{test}\nexpected:<1> but was:<2>\n\tat a.b.XTest.bad(XTest.java:9)\n\n[INFO] Results:\n[INFO] BUILD FAILURE\n"
            ),
        );
        assert_eq!(counts(&run), (1, 1, 0), "{head}");
        assert_eq!(bad(&run), ["Fail a.b.XTest.bad at src/test/java/a/b/XTest.java:9"]);
        assert_eq!(run.tests[0].actual.as_deref(), Some("2"));
        assert!(run.ended);
    }
}

#[test]
fn gradle_names_failures_and_counts_the_rest() {
    let run = read(
        "gradle",
        "> Task :test FAILED\n\nshop.CartTest > adds() FAILED\n    org.opentest4j.AssertionFailedError: no ==> expected: <1> but was: <2>\n        at shop.CartTest.adds(CartTest.java:15)\n\n\
         CartTest > param(int) > [3] 3 FAILED\n    java.lang.AssertionError at CartTest.java:36\n\nSetupTest > initializationError FAILED\n    java.lang.IllegalStateException at SetupTest.java:7\n\n\
         5 tests completed, 3 failed, 1 skipped\n\nFAILURE: Build failed with an exception.\n\n* What went wrong:\nExecution failed for task ':test'.\n> There were failing tests. See the report\n\n* Try:\n\nBUILD FAILED in 3s\n",
    );
    assert_eq!(counts(&run), (1, 2, 1));
    assert_eq!(
        bad(&run),
        [
            "Fail shop.CartTest.adds at src/test/java/shop/CartTest.java:15",
            "Fail CartTest.param[3] at CartTest.java:36"
        ]
    );
    assert_eq!(run.problems.len(), 1);
    assert_eq!(run.problems[0].name, "SetupTest");
    assert!(run.ended);
}

#[test]
fn gradle_tells_what_does_not_compile() {
    let run = read(
        "gradle",
        "> Task :compileJava FAILED\n/p/src/main/java/Cart.java:4: error: incompatible types\n  int x = \"\";\n          ^\n1 error\n\n* What went wrong:\n> Compilation failed; see the compiler error output\n\nBUILD FAILED in 1s\n",
    );
    assert_eq!(run.problems.len(), 1);
    assert_eq!(
        (run.problems[0].file.as_deref(), run.problems[0].line),
        (Some("src/main/java/Cart.java"), Some(4))
    );
}

#[test]
fn catch2_counts_what_it_does_not_name() {
    let ruler = "-".repeat(79);
    let dots = ".".repeat(79);
    let run = read(
        "catch2",
        &format!(
            "x is a Catch2 v3.4.0 host application.\n{ruler}\na long name that\ngoes on\n  section\n{ruler}\n/p/x.cpp:3\n{dots}\n\n/p/x.cpp:5: FAILED:\n  CHECK( 1 == 2 )\n\n===\ntest cases: 4 | 2 passed | 1 failed | 1 skipped\nassertions: 3\n"
        ),
    );
    assert_eq!(counts(&run), (2, 1, 1));
    assert_eq!(bad(&run), ["Fail a long name that goes on at x.cpp:5"]);
    assert_eq!((run.ended, run.counted), (true, Some(4)));
}

#[test]
fn a_test_host_of_dotnet_that_crashed_is_told() {
    let run = read(
        "trx",
        "<TestRun><Results><UnitTestResult testName=\"A.B.C\" outcome=\"Failed\" duration=\"00:00:01.5\" resultType=\"DataDrivenTest\"><InnerResults>\
         <UnitTestResult testName=\"A.B.C (1)\" outcome=\"Passed\"/><UnitTestResult testName=\"A.B.C (2)\" outcome=\"Failed\"/></InnerResults></UnitTestResult></Results>\
         <ResultSummary outcome=\"Failed\"><Counters total=\"3\"/><RunInfos><RunInfo outcome=\"Error\"><Text>Test host process crashed : Stack overflow.</Text></RunInfo></RunInfos></ResultSummary></TestRun>",
    );
    assert_eq!(counts(&run), (1, 1, 0));
    assert_eq!(run.problems[0].message, "Test host process crashed : Stack overflow.");
    assert!(run.ended);
}

#[test]
fn nextest_runs_several_binaries_at_once() {
    let suite = |event: &str, binary: &str| {
        format!(
            r#"{{"type":"suite","event":"{event}","test_count":1,"nextest":{{"crate":"{binary}","test_binary":"{binary}"}}}}"#
        )
    };
    let test = |event: &str, binary: &str| {
        format!(r#"{{"type":"test","event":"{event}","name":"{binary}::{binary}$it"}}"#)
    };
    let lines = [
        suite("started", "a"),
        test("started", "a"),
        suite("started", "b"),
        test("started", "b"),
        test("ok", "a"),
        suite("ok", "a"),
        test("ok", "b"),
        suite("ok", "b"),
    ];
    let run = read("nextest-json", &lines.join("\n"));
    assert_eq!((counts(&run), run.ended), ((2, 0, 0), true));
}

#[test]
fn googletest_may_tell_no_times() {
    let run = read(
        "gtest",
        "[==========] Running 2 tests from 1 test suite.\n[ RUN      ] S.Ok\n[       OK ] S.Ok\n[ RUN      ] I/P.V/1\n\
         g.cpp:5: Failure\nx\n[  FAILED  ] I/P.V/1, where GetParam() = 2\n[==========] 2 tests from 1 test suite ran.\n\
         [  PASSED  ] 1 test.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] I/P.V/1, where GetParam() = 2\n",
    );
    assert_eq!((counts(&run), run.summary.crashed), ((1, 1, 0), 0));
    assert_eq!(bad(&run), ["Fail I/P.V/1 at g.cpp:5"]);
}

#[test]
fn prove_may_only_count() {
    let run = read(
        "prove",
        "All tests successful.\nFiles=1, Tests=2,  0 wallclock secs ( 0.00 usr )\nResult: PASS\n",
    );
    assert_eq!((counts(&run), run.counted, run.ended), ((2, 0, 0), Some(2), true));
}
