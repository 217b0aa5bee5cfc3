//! Jest, Vitest, Mocha, node:test, AVA, bun and deno.

mod modules;

use super::{CoverageFile, CoverageFormat, Planner, RunPlan};
use modules::expanded;
pub(crate) use modules::{linked, program, version};

pub(super) fn jest(planner: &Planner<'_>) -> RunPlan {
    let mut plan = start(planner, "jest");
    plan.args(planner.own_args());
    plan.args(["--ci", "--no-watchman"]);
    plan.inject(planner, version(planner, "jest").as_deref());
    let report = planner.scratch("jest.json");
    plan.args(["--json".to_owned(), format!("--outputFile={report}")]);
    plan.reads(report);
    if let Some(count) = planner.wish.parallel {
        plan.arg(format!("--maxWorkers={count}"));
    }
    if planner.wish.coverage {
        let directory = planner.scratch("coverage");
        plan.args(["--coverage", "--coverageReporters=json-summary"]);
        plan.arg(format!("--coverageDirectory={directory}"));
        plan.coverage = Some(summary_in(&directory));
    }
    names(planner, &mut plan, "--testNamePattern");
    let (unwanted, _) = planner.selection().unwanted(&planner.root);
    for file in unwanted {
        plan.arg(format!("--testPathIgnorePatterns={}", super::select::escaped(file.text())));
    }
    let reached = planner.selection().reached_files(&planner.root);
    if !reached.is_empty() {
        plan.args(["--passWithNoTests", "--findRelatedTests"]);
        plan.args(reached);
    }
    files(planner, &mut plan);
    plan
}

pub(super) fn vitest(planner: &Planner<'_>) -> RunPlan {
    let mut plan = start(planner, "vitest");
    let reached = planner.selection().reached_files(&planner.root);
    if reached.is_empty() {
        plan.arg("run");
    } else {
        plan.args(["related", "--run", "--passWithNoTests"]);
    }
    plan.args(planner.own_args());
    plan.inject(planner, version(planner, "vitest").as_deref());
    let report = planner.scratch("vitest.json");
    plan.args(["--reporter=json".to_owned(), format!("--outputFile.json={report}")]);
    plan.reads(report);
    if let Some(count) = planner.wish.parallel {
        plan.arg(format!("--maxWorkers={count}"));
    }
    if planner.wish.coverage {
        let provider = ["@vitest/coverage-v8", "@vitest/coverage-istanbul"];
        if provider.iter().any(|name| version(planner, name).is_some()) {
            let directory = planner.scratch("coverage");
            plan.args(["--coverage.enabled", "--coverage.reporter=json-summary"]);
            plan.arg(format!("--coverage.reportsDirectory={directory}"));
            plan.coverage = Some(summary_in(&directory));
        } else {
            plan.note(
                "no coverage: neither `@vitest/coverage-v8` nor `@vitest/coverage-istanbul` is installed",
            );
        }
    }
    names(planner, &mut plan, "--testNamePattern");
    let (unwanted, _) = planner.selection().unwanted(&planner.root);
    for file in unwanted {
        plan.arg(format!("--exclude={}", file.text()));
    }
    plan.args(reached);
    files(planner, &mut plan);
    plan
}

pub(super) fn mocha(planner: &Planner<'_>) -> RunPlan {
    let mocha = program(planner, "mocha");
    let wrapper =
        ["c8", "nyc"].into_iter().find_map(|name| program(planner, name).filter(|_| planner.wish.coverage));
    let mut plan = match (&mocha, wrapper) {
        (Some(mocha), Some(wrapper)) => {
            let directory = planner.scratch("coverage");
            let mut plan = planner.start(Some(wrapper), "c8");
            let (option, reporter) = ("--report-dir", "--reporter=json-summary");
            plan.args([reporter.to_owned(), format!("{option}={directory}"), mocha.to_string()]);
            plan.coverage = Some(summary_in(&directory));
            plan
        }
        _ => start(planner, "mocha"),
    };
    if planner.wish.coverage && plan.coverage.is_none() {
        plan.note("no coverage: neither `c8` nor `nyc` is installed in the project");
    }
    plan.args(["--reporter", "json-stream"]);
    if let Some(count) = planner.wish.parallel.filter(|count| *count > 1) {
        plan.args(["--parallel".to_owned(), "--jobs".to_owned(), count.to_string()]);
    }
    names(planner, &mut plan, "--grep");
    let (unwanted, _) = planner.selection().unwanted(&planner.root);
    for file in unwanted {
        plan.arg(format!("--ignore={}", file.text()));
    }
    let (wanted, _) = planner.selection().wanted(&planner.root);
    // Files that are named come instead of those that the project's own script names.
    let is_spec = |arg: &String| !arg.starts_with('-') && arg.contains(['/', '*', '.']);
    let replaced = !wanted.is_empty();
    let mut after_option = false;
    for arg in planner.own_args() {
        let is_value = std::mem::replace(&mut after_option, arg.starts_with('-') && !arg.contains('='));
        if is_value || !replaced || !is_spec(&arg) {
            plan.arg(arg);
        }
    }
    plan.args(wanted.iter().map(|file| file.text()));
    plan
}

pub(super) fn node_test(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("node"), "node");
    let events = planner.scratch("events.tap");
    plan.args([
        "--test",
        "--test-reporter=spec",
        "--test-reporter-destination=stdout",
        "--test-reporter=tap",
    ]);
    plan.arg(format!("--test-reporter-destination={events}"));
    plan.events = Some(events);
    if let Some(count) = planner.wish.parallel {
        plan.arg(format!("--test-concurrency={count}"));
    }
    if planner.wish.coverage {
        let lcov = planner.scratch("lcov.info");
        plan.args(["--experimental-test-coverage", "--test-reporter=lcov"]);
        plan.arg(format!("--test-reporter-destination={lcov}"));
        plan.coverage = Some(CoverageFile::new(lcov, CoverageFormat::Lcov));
    }
    let (wanted, _) = planner.selection().wanted(&planner.root);
    names(planner, &mut plan, "--test-name-pattern");
    let own = planner.own_args().filter(|arg| wanted.is_empty() || arg.starts_with('-'));
    plan.args(own.flat_map(|arg| expanded(&planner.root, arg)).collect::<Vec<_>>());
    plan.args(wanted.iter().map(|file| file.text()));
    plan
}

pub(super) fn ava(planner: &Planner<'_>) -> RunPlan {
    let mut plan = start(planner, "ava");
    plan.args(planner.own_args());
    plan.arg("--tap");
    if let Some(count) = planner.wish.parallel {
        plan.arg(format!("--concurrency={count}"));
    }
    let (wanted_files, wanted) = planner.selection().wanted(&planner.root);
    for pattern in wanted {
        let glob =
            if pattern.has_wildcard() { pattern.text().to_owned() } else { format!("*{}*", pattern.text()) };
        plan.arg(format!("--match={glob}"));
    }
    for pattern in planner.selection().unwanted(&planner.root).1 {
        plan.arg(format!("--match=!*{}*", pattern.text().trim_matches('*')));
    }
    planner.no_coverage(&mut plan, "ava");
    plan.args(wanted_files.iter().map(|file| file.text()));
    plan
}

pub(super) fn bun(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("bun"), "bun");
    plan.arg("test");
    plan.args(planner.own_args());
    let report = planner.scratch("junit.xml");
    plan.args(["--reporter=junit".to_owned(), format!("--reporter-outfile={report}")]);
    plan.reads(report);
    if planner.wish.coverage {
        let directory = planner.scratch("coverage");
        plan.args(["--coverage".to_owned(), "--coverage-reporter=lcov".to_owned()]);
        plan.arg(format!("--coverage-dir={directory}"));
        plan.coverage = Some(CoverageFile::new(directory.join("lcov.info"), CoverageFormat::Lcov));
    }
    names(planner, &mut plan, "--test-name-pattern");
    files(planner, &mut plan);
    plan
}

pub(super) fn deno(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("deno"), "deno");
    plan.arg("test");
    plan.args(planner.own_args());
    let report = planner.scratch("junit.xml");
    plan.args(["--allow-all".to_owned(), format!("--junit-path={report}")]);
    plan.reads(report);
    plan.writable.extend(planner.machine.cache("DENO_DIR", ".cache/deno"));
    plan.set("NO_COLOR", "1");
    if planner.wish.parallel.is_some_and(|count| count > 1) {
        plan.arg("--parallel");
    }
    if let Some(regex) = planner.selection().names_regex_with_lookahead(&planner.root) {
        plan.arg(format!("--filter=/{}/", regex.replace('/', "\\/")));
    }
    planner.no_coverage(&mut plan, "deno");
    files(planner, &mut plan);
    plan
}

/// A runner that is a module.
fn start(planner: &Planner<'_>, name: &str) -> RunPlan {
    let mut plan = planner.start(program(planner, name), name);
    plan.readable = linked(planner);
    plan
}

/// Names that are wanted and not wanted, in one option.
fn names(planner: &Planner<'_>, plan: &mut RunPlan, option: &str) {
    if let Some(regex) = planner.selection().names_regex_with_lookahead(&planner.root) {
        plan.arg(format!("{option}={regex}"));
    }
}

/// Files that are wanted; those of single tests if only these are.
fn files(planner: &Planner<'_>, plan: &mut RunPlan) {
    let (wanted, _) = planner.selection().wanted(&planner.root);
    let of_tests = planner.selection().test_files();
    plan.args(of_tests.into_iter().filter(|file| planner.root.join(file).is_file()));
    plan.args(wanted.iter().map(|file| file.text()));
}

fn summary_in(directory: &camino::Utf8Path) -> CoverageFile {
    CoverageFile::new(directory.join("coverage-summary.json"), CoverageFormat::JsonSummary)
}
