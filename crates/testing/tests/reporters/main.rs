//! Our reporters in real runners, put in as a run does it: nothing is installed in the project.
//!
//! `./test` installs the runners and names their directory in `REHEARSAL_TEST_TOOLS` (`venv/bin/python`,
//! `node_modules/.bin/jest`, and older ones in `old/`); a runner that is not there is left out, and said so.
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]
#![expect(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod runner;

use rehearsal_testing::{Framework, TestReport, TestStatus};
use rstest::rstest;
use runner::{Run, Runner};

/// The names of tests that ended like this.
fn names(report: &TestReport, status: TestStatus) -> Vec<&str> {
    let of_status = report.tests.iter().filter(|test| test.status == status);
    of_status.map(|test| test.name.as_str()).collect()
}

fn place<'a>(report: &'a TestReport, name: &str) -> (Option<&'a str>, Option<u32>) {
    let test = report.tests.iter().find(|test| test.name == name).unwrap();
    (test.file.as_deref(), test.line)
}

fn problems(report: &TestReport) -> Vec<(&str, Option<u32>)> {
    let all = report.suite_errors.iter().chain(&report.run_errors);
    all.map(|problem| (problem.name.as_str(), problem.line)).collect()
}

#[rstest]
#[case::alone(&[])]
#[case::with_workers(&["-n", "2"])]
fn pytest_tells_every_end(#[case] more: &[&str]) {
    let Some(pytest) = Runner::pytest() else { return };
    let report =
        pytest.run(&Run { args: &[&["--continue-on-collection-errors"], more].concat(), ..Run::default() });
    let summary = &report.summary;
    assert_eq!(
        (summary.total, summary.passed, summary.failed, summary.skipped, summary.xfailed),
        (12, 2, 6, 3, 1)
    );
    assert_eq!(place(&report, "tests/test_shop.py::test_fails"), (Some("tests/test_shop.py"), Some(20)));
    assert_eq!(
        place(&report, "tests/test_shop.py::test_setup_error"),
        (Some("tests/test_shop.py"), Some(10))
    );
    let failed = report.tests.iter().find(|test| test.name.ends_with("::test_fails")).unwrap();
    assert_eq!(failed.output, "printed before it failed\n");
    assert_eq!(problems(&report), [("tests/test_broken.py", Some(1))]);
}

#[test]
fn pytest_names_the_test_that_kills_its_process() {
    let Some(pytest) = Runner::pytest() else { return };
    let run = Run { env: &[("CRASH", "1")], args: &["tests/test_shop.py"], ..Run::default() };
    assert_eq!(names(&pytest.run(&run), TestStatus::Crash), ["tests/test_shop.py::test_crashes"]);
    let with_workers = Run { args: &["tests/test_shop.py", "-n", "2"], ..run };
    assert_eq!(names(&pytest.run(&with_workers), TestStatus::Crash), ["tests/test_shop.py::test_crashes"]);
}

#[rstest]
#[case::current("")]
#[case::old("old")]
fn jest_tells_every_end(#[case] version: &str) {
    let Some(jest) = Runner::node("jest", Framework::Jest, version) else { return };
    let report = jest.run(&Run { args: &["--ci", "--no-watchman"], ..Run::default() });
    let summary = &report.summary;
    assert_eq!((summary.total, summary.passed, summary.failed, summary.skipped), (7, 2, 3, 2), "{report:#?}");
    assert_eq!(place(&report, "cart fails"), (Some("test/cart.test.js"), Some(6)));
    assert_eq!(place(&report, "cart throws in source"), (Some("cart.js"), Some(2)));
    assert_eq!(place(&report, "db reads"), (Some("test/cart.test.js"), Some(18)));
    assert_eq!(problems(&report), [("test/broken.test.js", Some(1))]);
}

#[test]
fn jest_names_the_test_that_kills_its_process() {
    let Some(jest) = Runner::node("jest", Framework::Jest, "") else { return };
    let report =
        jest.run(&Run { env: &[("CRASH", "1")], args: &["--ci", "-i", "--no-watchman"], ..Run::default() });
    assert_eq!(names(&report, TestStatus::Crash), ["crashes"]);
}

#[rstest]
#[case::current("")]
#[case::old("old")]
fn vitest_tells_every_end(#[case] version: &str) {
    let Some(vitest) = Runner::node("vitest", Framework::Vitest, version) else { return };
    let old = [("OLD", version)];
    let env = if version.is_empty() { &[][..] } else { &old };
    let report = vitest.run(&Run { env, args: &["run"], ..Run::default() });
    let summary = &report.summary;
    let counts = (summary.total, summary.passed, summary.failed, summary.skipped, summary.flaky);
    assert_eq!(counts, (8, 3, 2, 3, 1), "{report:#?}");
    assert_eq!(place(&report, "cart fails"), (Some("test/cart.test.js"), Some(7)));
    assert_eq!(place(&report, "cart throws in source"), (Some("cart.js"), Some(2)));
    let mut problems = problems(&report);
    problems.sort_unstable();
    assert_eq!(problems.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["db", "test/broken.test.js"]);
}

#[test]
fn vitest_tells_what_nobody_handled() {
    let Some(vitest) = Runner::node("vitest", Framework::Vitest, "") else { return };
    let report = vitest.run(&Run { env: &[("REJECT", "1")], args: &["run"], ..Run::default() });
    assert_eq!(report.run_errors[0].message, "nobody cares");
}

#[test]
fn rspec_tells_every_end() {
    let Some(rspec) = Runner::rspec() else { return };
    let report = rspec.run(&Run { args: &["spec/cart_spec.rb"], ..Run::default() });
    let summary = &report.summary;
    assert_eq!(
        (summary.total, summary.passed, summary.failed, summary.skipped, summary.xfailed),
        (8, 2, 4, 1, 1)
    );
    assert_eq!(place(&report, "cart fails"), (Some("spec/cart_spec.rb"), Some(7)));
    assert_eq!(place(&report, "cart throws in a helper"), (Some("spec/cart_spec.rb"), Some(2)));
    let broken = rspec.run(&Run { args: &["spec/broken_spec.rb"], ..Run::default() });
    assert_eq!(problems(&broken), [("spec/broken_spec.rb", Some(1))]);
    let crashed = rspec.run(&Run { env: &[("CRASH", "1")], args: &["spec/cart_spec.rb"], ..Run::default() });
    assert_eq!(names(&crashed, TestStatus::Crash), ["cart crashes"]);
}

#[rstest]
#[case::pytest(Runner::pytest(), &["tests/test_shop.py"], "tests/test_shop.py::test_hangs")]
#[case::jest(Runner::node("jest", Framework::Jest, ""), &["--ci", "-i", "--no-watchman"], "hangs")]
#[case::vitest(Runner::node("vitest", Framework::Vitest, ""), &["run"], "hangs")]
#[case::vitest_old(Runner::node("vitest", Framework::Vitest, "old"), &["run"], "hangs")]
#[case::rspec(Runner::rspec(), &["spec/cart_spec.rb"], "cart hangs")]
fn the_test_that_hangs_is_named_and_what_ended_before_is_kept(
    #[case] runner: Option<Runner>,
    #[case] args: &[&str],
    #[case] hanging: &str,
) {
    let Some(runner) = runner else { return };
    let old = if runner.is_old() { ("OLD", "1") } else { ("NEW", "1") };
    let report = runner.run(&Run { env: &[("HANG", "1"), old], args, kill_when_starts: Some(hanging) });
    let mut cut_short = names(&report, TestStatus::Timeout);
    // Vitest runs it beside, and may be ended before it is over.
    cut_short.retain(|name| *name != "ends meanwhile");
    assert_eq!(cut_short, [hanging]);
    assert!(report.summary.passed >= 2 && report.summary.failed >= 2, "{:?}", report.summary);
}

#[test]
fn a_reporter_that_cannot_write_changes_nothing() {
    let Some(pytest) = Runner::pytest() else { return };
    let env = [("REHEARSAL_EVENTS", "/nowhere/at/all")];
    let (exit, printed) = pytest.output(&Run { env: &env, args: &["tests/test_shop.py"], ..Run::default() });
    assert_eq!(exit, Some(1));
    assert!(printed.contains("4 failed, 3 passed, 3 skipped, 1 xfailed, 2 errors"), "{printed}");
}
