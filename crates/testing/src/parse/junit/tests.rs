use crate::parse::tests::{bad, counts, read};

fn named(document: &str) -> Vec<String> {
    read("junit", document).tests.into_iter().map(|test| test.name).collect()
}

#[test]
fn a_name_is_what_its_runner_calls_it() {
    for (document, name) in [
        (
            "<testsuites><testsuite name='x'><testcase classname='a.XTest' name='adds()'/></testsuite></testsuites>",
            "a.XTest.adds",
        ),
        (
            "<testsuite name='pytest'><testcase classname='tests.sub.test_x.TestA.TestB' name='test_y[a.b-c::d]'/></testsuite>",
            "tests/sub/test_x.py::TestA::TestB::test_y[a.b-c::d]",
        ),
        (
            "<testsuites><testsuite name='mine' errors='0' failures='0' skipped='0' tests='1' time='0' timestamp='x' hostname='h'><testcase classname='checks' name='test_y'/></testsuite></testsuites>",
            "checks.py::test_y",
        ),
        (
            "<testsuites name='jest tests'><testsuite name='x'><testcase classname='cart' name='adds'/></testsuite></testsuites>",
            "cart adds",
        ),
        (
            "<testsuites name='vitest tests'><testsuite name='x'><testcase classname='a.test.ts' name='a &gt; b'/></testsuite></testsuites>",
            "a b",
        ),
        (
            "<testsuites><testsuite name='a &amp;quot;b&amp;quot;'><testcase classname='test' name='c'/></testsuite></testsuites>",
            "a \"b\" > c",
        ),
        (
            "<testsuites name='bun test'><testsuite name='f.ts'><testsuite name='a'><testsuite name='b'><testcase name='c' classname='a &gt; b'/></testsuite></testsuite></testsuite></testsuites>",
            "a b c",
        ),
        (
            "<testsuites name='Mocha Tests'><testsuite name='x'><testcase name='a b' classname='b'/></testsuite></testsuites>",
            "a b",
        ),
        (
            "<testsuites><testsuite name='cargo test #0'><testcase name='b' classname='tests::a'/></testsuite></testsuites>",
            "tests::a::b",
        ),
        (
            "<testsuites><testsuite name='test' package='test'><testcase name='b' classname='crate'/></testsuite></testsuites>",
            "b",
        ),
        (
            "<testsuites><testsuite name='ex/pkg'><properties><property name='go.version' value='1'/></properties><testcase name='TestA/b' classname='pkg'/></testsuite></testsuites>",
            "TestA/b",
        ),
        (
            "<testsuites id='' name=''><testsuite name='x'><testcase name='a › b' classname='e2e/a.spec.ts'/></testsuite></testsuites>",
            "a › b",
        ),
        (
            "<testsuites><testsuite name='Shop.Tests.dll'><testcase name='Adds(v: 1)' classname='Shop.CartTests'/></testsuite></testsuites>",
            "Shop.CartTests.Adds(v: 1)",
        ),
    ] {
        assert_eq!(named(document), [name], "{document}");
    }
}

#[test]
fn reports_of_several_runners_in_one_file_keep_their_names() {
    let names = named(
        "<testsuites><testsuite name='pytest'><testcase classname='test_x' name='test_y'/></testsuite>\
         <testsuite name='a.XTest'><testcase classname='a.XTest' name='adds'/></testsuite></testsuites>",
    );
    assert_eq!(names, ["test_x.py::test_y", "a.XTest.adds"]);
}

#[test]
fn a_file_that_was_cut_keeps_its_finished_tests_and_has_no_end() {
    let run = read(
        "junit",
        "<testsuites><testsuite name='x' tests='3'><testcase name='a'/><testcase name='b'><failure>no</failure></testcase><testcase name='c'><fail",
    );
    assert_eq!(counts(&run), (1, 1, 0));
    assert!(!run.ended);
}

#[test]
fn an_entity_bomb_is_not_expanded_and_never_green() {
    let run = read(
        "junit",
        "<!DOCTYPE x [<!ENTITY a 'aa'><!ENTITY b '&a;&a;'>]><testsuite name='x'><testcase name='&b;'/></testsuite>",
    );
    assert_eq!(run.tests[0].name, "&b;");
    assert_eq!(run.complaints, ["the report declares entities, which are not expanded"]);
}

#[test]
fn what_a_test_prints_is_no_element() {
    let run = read(
        "junit",
        "<testsuite name='x'><testcase name='a'><system-out><![CDATA[</system-out></testcase><testcase name='fake'/>]]></system-out></testcase></testsuite>",
    );
    assert_eq!(run.summary.total, 1);
    assert!(run.ended);
}

#[test]
fn a_retried_test_is_flaky_if_it_passed_and_failed_if_it_did_not() {
    let run = read(
        "junit",
        "<testsuites name='nextest-run'><testsuite name='shop'><testcase name='a' classname='shop'><flakyFailure message='first'><stackTrace>panicked at src/lib.rs:3:4</stackTrace><system-out>x</system-out></flakyFailure></testcase>\
         <testcase name='b' classname='shop'><failure message='last' type='test failure'>panicked at src/lib.rs:9:1</failure><rerunFailure message='earlier'/></testcase></testsuite></testsuites>",
    );
    assert_eq!(bad(&run), ["Flaky a at src/lib.rs:3", "Fail b at src/lib.rs:9"]);
    assert_eq!((run.tests[0].attempts, run.tests[1].attempts, run.summary.total), (Some(2), Some(2), 2));
}

#[test]
fn a_test_of_pytest_that_fails_twice_is_one_test() {
    let run = read(
        "junit",
        "<testsuite name='pytest'><testcase classname='t' name='a'><failure message='call'/></testcase><testcase classname='t' name='a'><error message='failed on teardown with &quot;x&quot;'/></testcase><testcase classname='t' name='b'/></testsuite>",
    );
    assert_eq!(counts(&run), (1, 1, 0));
}

#[test]
fn tests_with_the_same_name_are_as_many_as_there_are() {
    let run = read(
        "junit",
        "<testsuites name='jest tests'><testsuite name='x'><testcase classname='a' name='a'/><testcase classname='a' name='a'><failure>no</failure></testcase></testsuite></testsuites>",
    );
    assert_eq!(counts(&run), (1, 1, 0));
}

#[test]
fn a_suite_that_counts_failures_but_names_none_is_doubtful() {
    let run = read(
        "junit",
        "<testsuites><testsuite name='x' tests='1' failures='1'><testcase name='a'/></testsuite></testsuites>",
    );
    assert_eq!(run.complaints, ["suite `x` counts failures but names none"]);
}

#[test]
fn what_fails_outside_of_tests_is_a_problem_and_no_test() {
    for document in [
        "<testsuite name='a.XTest'><testcase name='' classname='a.XTest'><error message='db'/></testcase></testsuite>",
        "<testsuite name='a.XTest'><testcase name='initializationError' classname='a.XTest'><failure message='db'/></testcase></testsuite>",
        "<testsuite name='a.XTest'><error message='db'/></testsuite>",
    ] {
        let run = read("junit", document);
        assert_eq!((run.summary.total, run.problems.len()), (0, 1), "{document}");
        assert_eq!((&*run.problems[0].name, &*run.problems[0].message), ("a.XTest", "db"));
    }
}

#[test]
fn suites_without_end_take_no_memory() {
    let run = read("junit", &"<testsuite name='x'>".repeat(100_000));
    assert!(!run.ended);
}
