//! `cargo test` and cargo-nextest.

mod target;

use super::{CoverageFile, CoverageFormat, Pattern, PlannedFile, Planner, RunPlan};
use crate::Framework;

pub(super) fn cargo_test(planner: &Planner<'_>) -> RunPlan {
    let mut plan = cargo(planner);
    let covered = planner.wish.coverage && with_coverage(planner, &mut plan, &[]);
    if !covered {
        plan.arg("test");
    }
    // cargo prints which binary it runs on one stream, and the binary its results on the other.
    plan.merge_stderr = true;
    plan.arg("--no-fail-fast");
    plan.args(packages(&planner.selection().reached_packages()));
    plan.args(planner.own_args());
    plan.arg("--");
    select_in_libtest(planner, &mut plan);
    plan
}

/// Tests by nextest, and documentation's tests by cargo, which alone can run them.
pub(super) fn nextest(planner: &Planner<'_>) -> Vec<RunPlan> {
    let mut plan = cargo(planner);
    if planner.find("cargo-nextest").is_none() {
        plan.missing = Some("`cargo-nextest` is not installed".to_owned());
    }
    let covered = planner.wish.coverage && with_coverage(planner, &mut plan, &["nextest"]);
    if !covered {
        plan.args(["nextest", "run"]);
    }
    plan.args(packages(&nextest_packages(planner)));
    plan.args(["--no-fail-fast", "--message-format", "libtest-json-plus"]);
    plan.set("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
    let (config, junit) = (planner.scratch("nextest.toml"), planner.scratch("nextest.xml"));
    plan.args(["--tool-config-file".to_owned(), format!("rehearsal:{config}")]);
    let content = format!("[profile.default.junit]\npath = {:?}\n", junit.as_str());
    plan.files.push(PlannedFile { path: config, content });
    plan.reads(junit);
    if let Some(count) = planner.wish.parallel {
        plan.arg(format!("--test-threads={count}"));
    }
    plan.args(planner.own_args());
    if let Some(filter) = nextest_filter(planner, &mut plan) {
        plan.args(["-E".to_owned(), filter]);
    }
    let selection = planner.selection();
    if !selection.reached.is_empty() || !selection.tests.is_empty() {
        // A package that is reached may have no tests, and one that failed before may be gone.
        plan.arg("--no-tests=pass");
    }
    let mut plans = vec![plan];
    let with_documentation = selection.tests.is_empty() || !selection.reached.is_empty();
    if planner.targets().iter().any(|target| target == "doc") && with_documentation {
        plans.push(doctests(planner));
    }
    plans
}

fn doctests(planner: &Planner<'_>) -> RunPlan {
    let mut plan = cargo(planner);
    plan.framework = Framework::CargoTest;
    plan.may_be_empty = true;
    plan.merge_stderr = true;
    plan.args(["test", "--doc", "--no-fail-fast"]);
    plan.args(packages(&nextest_packages(planner)));
    plan.arg("--");
    plan.note("nextest runs no tests of documentation: cargo does");
    if planner.selection().reached.is_empty() {
        select_in_libtest(planner, &mut plan);
    }
    plan
}

/// Which packages: those that are named, else all.
fn packages(named: &[&str]) -> Vec<String> {
    if named.is_empty() {
        return vec!["--workspace".to_owned()];
    }
    named.iter().flat_map(|name| ["--package".to_owned(), (*name).to_owned()]).collect()
}

/// The packages that a change reaches, and those of the tests that are wanted beside them.
fn nextest_packages<'a>(planner: &'a Planner<'_>) -> Vec<&'a str> {
    let selection = planner.selection();
    let mut packages = selection.reached_packages();
    if !packages.is_empty() {
        packages.extend(selection.tests.iter().map(|test| package_of(&test.package)));
        packages.sort_unstable();
        packages.dedup();
    }
    packages
}

/// nextest calls a binary `package` or `package::binary`.
fn package_of(binary: &str) -> &str {
    binary.split_once("::").map_or(binary, |(package, _)| package)
}

pub(crate) fn cargo(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("cargo"), "cargo");
    plan.set("CARGO_TERM_COLOR", "never");
    plan.set("CARGO_NET_OFFLINE", "true");
    target::keep_apart(planner, &mut plan);
    plan
}

/// Through cargo-llvm-cov, where it is installed.
fn with_coverage(planner: &Planner<'_>, plan: &mut RunPlan, command: &[&str]) -> bool {
    if planner.find("cargo-llvm-cov").is_none() {
        plan.note("no coverage: cargo-llvm-cov is not installed");
        return false;
    }
    let path = planner.scratch("llvm-cov.json");
    plan.arg("llvm-cov");
    plan.args(command.iter().copied());
    plan.args(["--json".to_owned(), "--summary-only".to_owned(), format!("--output-path={path}")]);
    plan.coverage = Some(CoverageFile::new(path, CoverageFormat::LlvmCov));
    true
}

/// The harness takes parts of names; of a pattern with wildcards the longest part.
fn select_in_libtest(planner: &Planner<'_>, plan: &mut RunPlan) {
    let selection = planner.selection();
    if !selection.tests.is_empty() {
        plan.arg("--exact");
        plan.args(selection.tests.iter().map(|test| test.name.clone()));
    }
    let (files, wanted) = selection.wanted(&planner.root);
    let (unwanted_files, unwanted) = selection.unwanted(&planner.root);
    if !files.is_empty() || !unwanted_files.is_empty() {
        plan.note("cargo selects by names, not by files: all files are run");
    }
    let longest = |pattern: &Pattern| {
        pattern.literals().into_iter().max_by_key(|part| part.len()).unwrap_or_default().to_owned()
    };
    if wanted.iter().chain(&unwanted).any(|pattern| pattern.has_wildcard()) {
        plan.note("cargo's harness knows parts of names and no wildcards: it may select more than was meant");
    }
    plan.args(wanted.iter().map(|pattern| longest(pattern)));
    // A part of a pattern would leave out more than was meant.
    for pattern in unwanted.iter().filter(|pattern| !pattern.has_wildcard() || pattern.literals().len() == 1)
    {
        plan.args(["--skip".to_owned(), longest(pattern)]);
    }
    if let Some(count) = planner.wish.parallel {
        plan.arg(format!("--test-threads={count}"));
    }
}

/// An expression of nextest's filter language.
fn nextest_filter(planner: &Planner<'_>, plan: &mut RunPlan) -> Option<String> {
    let selection = planner.selection();
    let (files, wanted) = selection.wanted(&planner.root);
    if !files.is_empty() {
        plan.note("nextest selects by names, not by files: all files are run");
    }
    let reached = selection.reached_packages();
    let all_of = reached.iter().map(|package| format!("package(={package})"));
    let exact = selection.tests.iter().map(|test| format!("test(={})", quoted(&test.name)));
    let exact: Vec<String> =
        if selection.tests.is_empty() { Vec::new() } else { all_of.chain(exact).collect() };
    let named: Vec<String> = wanted.iter().map(|pattern| matcher(pattern)).collect();
    let unwanted: Vec<_> =
        selection.unwanted(&planner.root).1.iter().map(|pattern| matcher(pattern)).collect();
    let mut terms: Vec<String> = Vec::new();
    for (alternatives, negated) in [(exact, false), (named, false), (unwanted, true)] {
        if !alternatives.is_empty() {
            terms.push(format!("{}({})", if negated { "not " } else { "" }, alternatives.join(" | ")));
        }
    }
    match terms.as_slice() {
        [] => None,
        // Alone it needs no brackets.
        [only] => Some(only.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(only).to_owned()),
        _ => Some(terms.join(" & ")),
    }
}

/// A shape is that of a whole name, or of what follows the module.
fn matcher(pattern: &Pattern) -> String {
    let text = quoted(pattern.text());
    if pattern.has_wildcard() {
        format!("test(#{text}) | test(#*::{text})")
    } else {
        format!("test(~{text})")
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for character in text.chars() {
        if "\\()".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted
}
