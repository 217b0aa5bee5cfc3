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
