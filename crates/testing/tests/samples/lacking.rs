//! What some files cannot tell, since it does not stand in them.

/// One such gap.
struct Gap {
    sample: &'static str,
    /// The file that is read alone, or `all files`.
    file: &'static str,
    /// How the mismatch begins.
    mismatch: &'static str,
    why: &'static str,
}

const fn gap(sample: &'static str, file: &'static str, mismatch: &'static str, why: &'static str) -> Gap {
    Gap { sample, file, mismatch, why }
}

/// Every row must be needed: a gap that closed is taken out.
const GAPS: &[Gap] = &[
    gap("jest/fail_junit", "all files", "passed is 4, not 3", "jest-junit writes a todo like a good test"),
    gap("jest/fail_junit", "all files", "skipped is 1, not 2", "jest-junit writes a todo like a good test"),
    gap(
        "junit/maven_fail",
        "all files",
        "`shop.CartTest.npe` is at",
        "Surefire trims the trace to the test's class",
    ),
    gap(
        "junit/maven_fail_ignore",
        "all files",
        "`shop.CartTest.npe` is at",
        "Surefire trims the trace as well here",
    ),
    gap("nextest/pass", "pass.junit.xml", "total is 2, not 3", "nextest leaves out what is skipped"),
    gap("nextest/pass", "pass.junit.xml", "skipped is 0, not 1", "nextest leaves out what is skipped"),
    gap("node-test/fail_junit", "all files", "`times out` is at (None", "a timeout has no frames"),
    gap("phpunit/exit0", "exit0.junit.xml", "", "the file is empty"),
    gap("phpunit/exit0", "exit0.txt", "", "the text ends after one dot"),
    gap(
        "rspec/fail_junit",
        "all files",
        "`Cart multi` does not say",
        "the formatter drops the text of aggregates",
    ),
    gap(
        "vitest/fail_junit",
        "all files",
        "cart flaky is not told",
        "Vitest does not write that it tried again",
    ),
    gap("vitest/fail_junit", "all files", "`cart unicode", "the message has other words in this version"),
    gap("ava/fail_tap", "all files", "`adds up` is at", "AVA's TAP gives only the frame inside AVA"),
    gap("ava/fail_tap", "all files", "`no assertions` is at", "AVA's TAP gives only the frame inside AVA"),
    gap(
        "pytest/fail_tap",
        "all files",
        "passed is 8, not 7",
        "pytest-tap calls a test good whose clean-up failed",
    ),
    gap(
        "pytest/fail_tap",
        "all files",
        "failed is 9, not 10",
        "pytest-tap calls a test good whose clean-up failed",
    ),
    gap(
        "pytest/fail_tap",
        "all files",
        "`tests/test_cart.py::test_sum` does not say",
        "pytest-tap breaks pytest's explanations",
    ),
    gap(
        "pytest/fail_tap",
        "all files",
        "`tests/test_cart.py::test_helper` does not say",
        "pytest-tap breaks pytest's explanations",
    ),
    gap(
        "tap/prove_summary",
        "all files",
        "passed is 5, not 4",
        "without -v a TODO that fails is called okay",
    ),
    gap(
        "tap/prove_summary",
        "prove_summary.txt",
        "passed is 5, not 4",
        "without -v a TODO that fails is called okay",
    ),
    gap(
        "tap/prove_summary",
        "all files",
        "skipped is 3, not 4",
        "without -v a TODO that fails is called okay",
    ),
    gap(
        "tap/prove_summary",
        "prove_summary.txt",
        "skipped is 3, not 4",
        "without -v a TODO that fails is called okay",
    ),
    gap(
        "tap/prove_summary",
        "prove_summary.txt",
        "`math` is not told",
        "without -v names stand only on standard error",
    ),
    gap(
        "tap/prove_summary",
        "prove_summary.txt",
        "`deep` is not told",
        "without -v names stand only on standard error",
    ),
    gap(
        "tap/prove_summary",
        "prove_summary.txt",
        "`sub ünï` is not told",
        "without -v names stand only on standard error",
    ),
    gap(
        "tap/prove_summary",
        "prove_summary.txt",
        "`regex` is not told",
        "without -v names stand only on standard error",
    ),
    gap("vitest/fail_tap", "all files", "cart flaky is not told", "Vitest's TAP has only the last attempt"),
    gap(
        "vitest/fail_tap",
        "all files",
        "`cart unicode 日本語 ✓` does not say",
        "Vitest's TAP words it otherwise",
    ),
    gap(
        "vitest/fail_tap",
        "all files",
        "suite error",
        "Vitest's TAP says that the group failed, and not why",
    ),
    gap(
        "vitest/fail_tap_flat",
        "all files",
        "cart flaky is not told",
        "Vitest's TAP has only the last attempt",
    ),
    gap(
        "vitest/fail_tap_flat",
        "all files",
        "`cart unicode 日本語 ✓` does not say",
        "Vitest's TAP words it otherwise",
    ),
    gap("vitest/fail_tap_flat", "all files", "suite error", "flat, it has no groups"),
    gap(
        "jest/esm_unsupported",
        "all files",
        "suite error",
        "Jest says it in other words here, and names no line",
    ),
    gap(
        "pytest/timeout_plugin_thread",
        "timeout_plugin_thread.txt",
        "`tests/test_slow.py::test_quick_fail`",
        "a character of the progress has no name",
    ),
    gap(
        "pytest/rerun_flaky",
        "rerun_flaky.txt",
        "tests/test_flaky.py::test_flaky is not told",
        "it is only counted",
    ),
    gap(
        "pytest/usage_error",
        "all files",
        "problems that are none",
        "the truth leaves out what pytest complains of",
    ),
    gap(
        "vitest/fail",
        "all files",
        "`cart never resolves`",
        "the report leaves out the message of a timeout",
    ),
    gap("vitest/fail", "all files", "`cart unicode", "the message has other words in this version"),
    gap("vitest/fail", "all files", "suite error", "the report leaves out what fails in a hook"),
    gap("vitest/fail_default", "all files", "`cart unicode", "the message has other words in this version"),
    gap(
        "vitest/fail_default",
        "all files",
        "cart flaky is not told",
        "the tree leaves out the names of groups",
    ),
    gap("vitest/fail_default", "fail_default.txt", "cart flaky", "the tree leaves out the names of groups"),
    gap("vitest/fail_default", "fail_default.txt", "`cart ", "the names of groups stand in the other stream"),
    gap(
        "vitest/fail_vitest034",
        "all files",
        "`cart throws in source` is at",
        "the report names a line of no file",
    ),
    gap("vitest/fail_vitest034", "all files", "`cart never resolves` is at", "the report names no line"),
    gap("vitest/fail_vitest034", "all files", "`cart unicode", "the message has other words in this version"),
    gap("vitest/fail_vitest034", "all files", "suite error", "the report leaves out what fails in a hook"),
    gap(
        "vitest/suite_error",
        "all files",
        "suite error",
        "the report does not say where a module was imported",
    ),
    gap("vitest/suite_error_text", "all files", "problems that are none", "the truth leaves them out"),
    gap("vitest/unhandled", "all files", "run error", "the report leaves out what nobody handled"),
    gap("vitest/unhandled_text", "all files", "problems that are none", "the truth leaves it out"),
    gap("bun/fail_text", "fail_text.txt", "", "Bun tells results on standard error"),
    gap("node-test/fail_dot", "all files", "passed is 5, not 4", "a skipped test is a dot too"),
    gap("node-test/fail_dot", "all files", "skipped is 1, not 2", "a skipped test is a dot too"),
    gap("node-test/fail_dot", "all files", "`suite ünï", "the list of failures has no groups"),
    gap(
        "node-test/fail_dot",
        "all files",
        "`parent with subtests > sub 2`",
        "the list of failures has no groups",
    ),
    gap("node-test/fail_dot", "all files", "`times out` is at (None", "a timeout has no frames"),
    gap("rspec/fail_failures", "all files", "", "it lists places and descriptions, and has no counts"),
];

/// Takes out the mismatches that are known gaps, and adds those gaps of the runner that did not show.
pub(crate) fn unexplained(runner: &str, mismatches: &[(String, String, String)]) -> Vec<String> {
    let fits = |gap: &Gap, (id, file, mismatch): &(String, String, String)| {
        gap.sample == id && gap.file == file && mismatch.starts_with(gap.mismatch)
    };
    let of_runner = GAPS.iter().filter(|gap| gap.sample.split('/').next() == Some(runner));
    let closed = of_runner
        .filter(|gap| !mismatches.iter().any(|mismatch| fits(gap, mismatch)))
        .map(|gap| format!("{} ({}): no gap any more: {}", gap.sample, gap.file, gap.why));
    let wrong = mismatches.iter().filter(|mismatch| !GAPS.iter().any(|gap| fits(gap, mismatch)));
    wrong.map(|(id, file, mismatch)| format!("{id} ({file}): {mismatch}")).chain(closed).collect()
}
