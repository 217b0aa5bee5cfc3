//! Real runs of real runners: small projects in which one test passes, one fails, one is skipped, and one misbehaves when
//! it is told to. Each runs where its runner is installed, in the sandbox; what is left out is said aloud.
//!
//! Runners come from the `PATH` and from `$REHEARSAL_TEST_TOOLS`, which `./test` fills: `node_modules` and `venv`.

#![expect(clippy::unwrap_used, reason = "a broken set-up should stop the test")]

mod project;

use std::time::Duration;

use project::{Live, Misbehaviour};
use rehearsal_testing::{Framework, Pattern, TestCase, TestReport, TestStatus, Verdict};
use rstest::rstest;

/// What is known of a runner's project.
struct Known {
    framework: Framework,
    directory: &'static str,
    program: &'static str,
    /// The test that fails, with its place.
    fails: (&'static str, Option<(&'static str, u32)>),
    misbehaves: &'static str,
    /// A pattern for the test that passes.
    passes: &'static str,
    /// What a test that kills its process comes to.
    crash: &'static [Verdict],
    /// Whether it is named then, and the results before it are known.
    crash_tells: bool,
    /// Whether the runner says which test is running.
    names_running: bool,
}

const fn known(framework: Framework, directory: &'static str, program: &'static str) -> Known {
    Known {
        framework,
        directory,
        program,
        fails: ("", None),
        misbehaves: "",
        passes: "passes",
        crash: &[Verdict::Crashed],
        crash_tells: true,
        names_running: true,
    }
}

fn go() -> Known {
    Known {
        fails: ("TestFails", Some(("cart_test.go", 13))),
        misbehaves: "TestMisbehaves",
        passes: "TestPass*",
        ..known(Framework::Go, "go", "go")
    }
}

fn jest() -> Known {
    Known {
        fails: ("cart fails", Some(("test/cart.test.js", 4))),
        misbehaves: "cart misbehaves",
        ..known(Framework::Jest, "jest", "jest")
    }
}

fn vitest() -> Known {
    Known {
        fails: ("cart fails", Some(("test/cart.test.js", 6))),
        misbehaves: "cart misbehaves",
        // Its main process hears of tests in batches: a worker that dies has told nothing since the last one.
        crash: &[Verdict::Crashed, Verdict::CollectFailed, Verdict::Failed],
        crash_tells: false,
        ..known(Framework::Vitest, "vitest", "vitest")
    }
}

fn mocha() -> Known {
    Known {
        fails: ("cart fails", Some(("test/cart.js", 6))),
        misbehaves: "cart misbehaves",
        crash: &[Verdict::Failed],
        names_running: false,
        ..known(Framework::Mocha, "mocha", "mocha")
    }
}

fn node_test() -> Known {
    Known {
        fails: ("fails", Some(("test/cart.js", 6))),
        misbehaves: "misbehaves",
        crash_tells: false,
        names_running: false,
        ..known(Framework::NodeTest, "node-test", "node")
    }
}

fn pytest() -> Known {
    Known {
        fails: ("tests/test_cart.py::test_fails", Some(("tests/test_cart.py", 13))),
        misbehaves: "tests/test_cart.py::test_misbehaves",
        ..known(Framework::Pytest, "pytest", "pytest")
    }
}

fn unittest() -> Known {
    Known {
        fails: ("tests.test_cart.TestCart.test_b_fails", Some(("tests/test_cart.py", 12))),
        misbehaves: "tests.test_cart.TestCart.test_d_misbehaves",
        ..known(Framework::Unittest, "unittest", "python3")
    }
}

fn cargo() -> Known {
    Known {
        fails: ("tests::fails", Some(("src/lib.rs", 8))),
        misbehaves: "tests::misbehaves",
        crash_tells: false,
        names_running: false,
        ..known(Framework::CargoTest, "cargo", "cargo")
    }
}

fn nextest() -> Known {
    Known {
        fails: ("tests::fails", Some(("src/lib.rs", 8))),
        misbehaves: "tests::misbehaves",
        crash: &[Verdict::Failed],
        ..known(Framework::Nextest, "cargo", "cargo-nextest")
    }
}

fn rspec() -> Known {
    Known {
        fails: ("cart fails", Some(("spec/cart_spec.rb", 6))),
        misbehaves: "cart misbehaves",
        ..known(Framework::Rspec, "rspec", "rspec")
    }
}

fn phpunit() -> Known {
    Known {
        fails: ("CartTest::testFails", Some(("tests/CartTest.php", 14))),
        misbehaves: "CartTest::testMisbehaves",
        passes: "testPasses",
        ..known(Framework::Phpunit, "phpunit", "phpunit")
    }
}

fn maven() -> Known {
    Known {
        fails: ("shop.CartTest.fails", Some(("src/test/java/shop/CartTest.java", 16))),
        misbehaves: "shop.TroubleTest.misbehaves",
        // A class is told when it is over.
        names_running: false,
        ..known(Framework::Maven, "maven", "mvn")
    }
}

fn bats() -> Known {
    Known {
        fails: ("fails", Some(("test/cart.bats", 6))),
        misbehaves: "misbehaves",
        crash: &[Verdict::Failed],
        names_running: false,
        ..known(Framework::Bats, "bats", "bats")
    }
}

fn ctest() -> Known {
    Known {
        fails: ("fails", None),
        misbehaves: "misbehaves",
        crash: &[Verdict::Failed],
        ..known(Framework::Ctest, "ctest", "ctest")
    }
}

fn prove() -> Known {
    Known {
        fails: ("fails", Some(("t/cart.t", 7))),
        misbehaves: "misbehaves",
        crash: &[Verdict::CollectFailed],
        names_running: false,
        ..known(Framework::Tap, "prove", "prove")
    }
}

#[rstest]
#[case::go(go())]
#[case::jest(jest())]
#[case::vitest(vitest())]
#[case::mocha(mocha())]
#[case::node_test(node_test())]
#[case::pytest(pytest())]
#[case::unittest(unittest())]
#[case::cargo(cargo())]
#[case::nextest(nextest())]
#[case::rspec(rspec())]
#[case::phpunit(phpunit())]
#[case::maven(maven())]
#[case::bats(bats())]
#[case::ctest(ctest())]
#[case::prove(prove())]
fn a_calm_run_has_each_test_with_its_result(#[case] known: Known) {
    let Some(live) = Live::new(known.directory, known.framework, known.program) else { return };
    let report = live.run(Misbehaviour::None, Duration::from_secs(120));
    let told = project::told(&report);
    assert_eq!(report.verdict, Verdict::Failed, "{told}");
    let counts = (report.summary.total, report.summary.passed, report.summary.failed, report.summary.skipped);
    assert_eq!(counts, (4, 2, 1, 1), "{told}");
    let failed = report.tests.iter().find(|test| test.status == TestStatus::Fail).unwrap();
    assert_eq!(failed.name, known.fails.0, "{told}");
    if let Some((file, line)) = known.fails.1 {
        assert_eq!((failed.file.as_deref(), failed.line), (Some(file), Some(line)), "{told}");
    }
    assert!(report.framework == known.framework && report.sandbox.is_some(), "{told}");
}

#[rstest]
#[case::go(go())]
#[case::jest(jest())]
#[case::vitest(vitest())]
#[case::mocha(mocha())]
#[case::node_test(node_test())]
#[case::pytest(pytest())]
#[case::unittest(unittest())]
#[case::cargo(cargo())]
#[case::nextest(nextest())]
#[case::rspec(rspec())]
#[case::phpunit(phpunit())]
#[case::maven(maven())]
#[case::bats(bats())]
#[case::ctest(ctest())]
#[case::prove(prove())]
fn a_test_that_kills_its_process_is_never_green_and_leaves_the_others(#[case] known: Known) {
    let Some(live) = Live::new(known.directory, known.framework, known.program) else { return };
    let report = live.run(Misbehaviour::Crash, Duration::from_secs(120));
    let told = project::told(&report);
    assert!(known.crash.contains(&report.verdict), "{told}");
    let culprit = report.tests.iter().find(|test| test.name == known.misbehaves);
    if known.names_running && known.crash_tells {
        assert!(culprit.is_some_and(|test| test.status.is_failure()), "{told}");
    }
    assert!(!known.crash_tells || report.tests.iter().any(|test| test.status == TestStatus::Pass), "{told}");
}

#[rstest]
#[case::go(go())]
#[case::jest(jest())]
#[case::vitest(vitest())]
#[case::mocha(mocha())]
#[case::node_test(node_test())]
#[case::pytest(pytest())]
#[case::unittest(unittest())]
#[case::cargo(cargo())]
#[case::nextest(nextest())]
#[case::rspec(rspec())]
#[case::phpunit(phpunit())]
#[case::maven(maven())]
#[case::bats(bats())]
#[case::ctest(ctest())]
#[case::prove(prove())]
fn a_test_that_hangs_ends_with_the_time_limit_and_leaves_the_others(#[case] known: Known) {
    let Some(live) = Live::new(known.directory, known.framework, known.program) else { return };
    let hangs = |test: &TestCase| test.name == known.misbehaves && test.status == TestStatus::Timeout;
    let has_come = |report: &TestReport| {
        let named = !known.names_running || report.tests.iter().any(hangs);
        named && report.tests.iter().any(|test| test.status == TestStatus::Pass)
    };
    let report = live.run_until_it_hangs(has_come);
    let told = project::told(&report);
    assert_eq!(report.verdict, Verdict::TimedOut, "{told}");
    assert!(has_come(&report), "{told}");
    assert!(report.tests.iter().all(|test| test.name != known.misbehaves || hangs(test)), "{told}");
}

#[rstest]
#[case::go(go())]
#[case::jest(jest())]
#[case::vitest(vitest())]
#[case::mocha(mocha())]
#[case::node_test(node_test())]
#[case::pytest(pytest())]
#[case::unittest(unittest())]
#[case::cargo(cargo())]
#[case::nextest(nextest())]
#[case::rspec(rspec())]
#[case::phpunit(phpunit())]
#[case::bats(bats())]
#[case::ctest(ctest())]
fn only_what_fits_a_pattern_is_run(#[case] known: Known) {
    let Some(live) = Live::new(known.directory, known.framework, known.program) else { return };
    let pattern = Pattern(known.passes.to_owned());
    let report = live.run_with(|request| request.patterns.push(pattern));
    let told = project::told(&report);
    assert_eq!(report.verdict, Verdict::Passed, "{told}");
    assert_eq!((report.summary.passed, report.summary.failed), (1, 0), "{told}");
}

#[rstest]
#[case::go(go())]
#[case::jest(jest())]
#[case::vitest(vitest())]
#[case::mocha(mocha())]
#[case::node_test(node_test())]
#[case::pytest(pytest())]
#[case::unittest(unittest())]
#[case::cargo(cargo())]
#[case::nextest(nextest())]
#[case::rspec(rspec())]
#[case::phpunit(phpunit())]
#[case::bats(bats())]
#[case::ctest(ctest())]
fn what_failed_is_run_again_by_its_name(#[case] known: Known) {
    let Some(live) = Live::new(known.directory, known.framework, known.program) else { return };
    let report = live.run_with(|request| request.retries = 1);
    let told = project::told(&report);
    let failed = report.tests.iter().find(|test| test.status == TestStatus::Fail).unwrap();
    assert_eq!((failed.name.as_str(), failed.attempts), (known.fails.0, Some(2)), "{told}");
}
