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
        "all files",
        "skipped is 3, not 4",
        "without -v a TODO that fails is called okay",
    ),
    gap(
        "tap/prove_summary",
        "all files",
        "`math` is not told",
        "without -v names stand only on standard error",
    ),
    gap(
        "tap/prove_summary",
        "all files",
        "`deep` is not told",
        "without -v names stand only on standard error",
    ),
    gap(
        "tap/prove_summary",
        "all files",
        "`sub ünï` is not told",
        "without -v names stand only on standard error",
    ),
    gap(
        "tap/prove_summary",
        "all files",
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
