use super::*;
use crate::parse::Parser;
use crate::parse::by_line::ByLine;
use crate::{Collected, Collector, Ending, Limits};

fn read(text: &str) -> Collected {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = ByLine::<VitestText>::default();
    parser.feed(Stream::Out, text.as_bytes(), &mut collector);
    parser.finish(&mut collector);
    collector.finish(&Ending::of_status(1))
}

const END: &str = "   Start at  19:44:30\n   Duration  593ms (tests 139ms)\n";

#[test]
fn trees_of_all_versions_name_their_tests() {
    for tree in [
        " ✓ test/a.test.ts > cart > passes 1ms\n",
        " ❯ test/a.test.ts (2 tests | 1 failed) 12ms\n   ✓ cart > passes 1ms\n",
    ] {
        let run = read(&format!(
            " RUN  v3.2.7 /p\n\n{tree}\n Test Files  1 passed (1)\n      Tests  1 passed (1)\n{END}"
        ));
        assert_eq!(
            (run.tests[0].name.as_str(), run.tests[0].package.as_str()),
            ("cart passes", "test/a.test.ts"),
            "{tree}"
        );
        assert_eq!((run.summary.total, run.counted, run.ended), (1, Some(1), true));
    }
}

#[test]
fn tests_that_fail_with_the_same_error_share_its_block() {
    let run = read(&format!(
        "\n⎯⎯⎯⎯ Failed Tests 2 ⎯⎯⎯⎯\n\n FAIL  |unit| test/a.test.ts > a\n FAIL  |unit| test/a.test.ts > b\nAssertionError: expected 2 to be 3\n\n- Expected\n+ Received\n\n- 3\n+ 2\n\n ❯ test/a.test.ts:7:19\n\n⎯⎯⎯⎯[1/2]⎯\n\n Test Files  1 failed (1)\n      Tests  2 failed (2)\n{END}"
    ));
    let told: Vec<_> =
        run.tests.iter().map(|test| (test.name.as_str(), test.line, test.expected.as_deref())).collect();
    assert_eq!(told, [("a", Some(7), Some("3")), ("b", Some(7), Some("3"))]);
    assert_eq!(run.tests[0].package, "test/a.test.ts");
}

#[test]
fn what_a_test_prints_is_no_test() {
    let run = read(&format!(
        " RUN  v3.0.0 /p\n\nstdout | test/a.test.ts > a\n ✓ fake > x 1ms\n\n ✓ test/a.test.ts (1 test) 2ms\n\n Test Files  1 passed (1)\n      Tests  1 passed (1)\n{END}"
    ));
    assert_eq!((run.summary.total, run.tests.len()), (1, 0));
}

#[test]
fn a_run_that_was_cut_tells_the_failures_of_its_tree() {
    let run = read(" RUN  v3.0.0 /p\n\n × test/a.test.ts > a 1ms\n ✓ test/a.test.ts > b 1ms\n");
    assert_eq!((run.summary.failed, run.summary.passed, run.ended), (1, 1, false));
}
