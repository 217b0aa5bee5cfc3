//! What some samples cannot tell, since the format that was recorded does not have it.

/// A sample, the beginning of a mismatch, and why it cannot be otherwise.
const LACKING: &[(&str, &str, &str)] = &[
    ("ava/fail_tap", "`adds up` is at", "AVA's TAP gives only the frame inside AVA"),
    ("ava/fail_tap", "`no assertions` is at", "AVA's TAP gives only the frame inside AVA"),
    ("pytest/fail_tap", "passed is 8, not 7", "pytest-tap calls a test good whose clean-up failed"),
    ("pytest/fail_tap", "failed is 9, not 10", "pytest-tap calls a test good whose clean-up failed"),
    (
        "pytest/fail_tap",
        "`tests/test_cart.py::test_sum` does not say",
        "pytest-tap breaks pytest's explanations",
    ),
    (
        "pytest/fail_tap",
        "`tests/test_cart.py::test_helper` does not say",
        "pytest-tap breaks pytest's explanations",
    ),
    ("tap/prove_summary", "passed is 5, not 4", "without -v a TODO that fails is called okay"),
    ("tap/prove_summary", "skipped is 3, not 4", "without -v a TODO that fails is called okay"),
    ("tap/prove_summary", "`math` is not told", "without -v names stand only on standard error"),
    ("tap/prove_summary", "`deep` is not told", "without -v names stand only on standard error"),
    ("tap/prove_summary", "`sub ünï` is not told", "without -v names stand only on standard error"),
    ("tap/prove_summary", "`regex` is not told", "without -v names stand only on standard error"),
    ("vitest/fail_tap", "cart flaky is not told", "Vitest's TAP has only the last attempt"),
    ("vitest/fail_tap", "`cart unicode 日本語 ✓` does not say", "Vitest's TAP words it otherwise"),
    ("vitest/fail_tap", "suite error", "Vitest's TAP says that the group failed, and not why"),
    ("vitest/fail_tap_flat", "cart flaky is not told", "Vitest's TAP has only the last attempt"),
    ("vitest/fail_tap_flat", "`cart unicode 日本語 ✓` does not say", "Vitest's TAP words it otherwise"),
    ("vitest/fail_tap_flat", "suite error", "flat, it has no groups"),
];

/// The mismatches that are not explained by what the format lacks.
pub(crate) fn left(sample: &str, mismatches: Vec<String>) -> Vec<String> {
    let lacks = |mismatch: &String| {
        LACKING.iter().any(|(id, what, why)| *id == sample && mismatch.starts_with(what) && !why.is_empty())
    };
    mismatches.into_iter().filter(|mismatch| !lacks(mismatch)).collect()
}

#[test]
fn every_excuse_is_needed() {
    let samples = crate::truth::samples();
    for (id, what, _) in LACKING {
        let sample = samples.iter().find(|sample| sample.id == *id).unwrap();
        let files = sample.paths();
        let mut mismatches = sample.mismatches(&crate::report_of(sample, &files), true);
        for file in &files {
            mismatches
                .extend(sample.mismatches(&crate::report_of(sample, std::slice::from_ref(file)), false));
        }
        assert!(mismatches.iter().any(|mismatch| mismatch.starts_with(what)), "{id}: {what}");
    }
}
