//! `CTest`.

use super::select::any_of;
use super::{CommandLine, Planner, RunPlan};

pub(super) fn ctest(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("ctest"), "ctest");
    let build = match planner.targets().first() {
        Some(directory) => planner.root.join(directory),
        None => planner.scratch("build"),
    };
    let cmake = planner.find("cmake").map_or_else(|| "cmake".to_owned(), camino::Utf8PathBuf::into_string);
    let jobs = planner.wish.parallel.unwrap_or(2).to_string();
    if planner.targets().is_empty() {
        let configure = ["-S", planner.root.as_str(), "-B", build.as_str(), "-DCMAKE_BUILD_TYPE=Debug"];
        plan.prepare.push(CommandLine::new(cmake.clone(), configure));
        plan.note("there is no build directory: it is built in a temporary one");
    }
    // Sources may have changed since it was built.
    plan.prepare.push(CommandLine::new(cmake, ["--build", build.as_str(), "--parallel", &jobs]));
    let report = planner.scratch("ctest.xml");
    plan.args(["--test-dir", build.as_str(), "--output-on-failure", "--output-junit", report.as_str()]);
    plan.reads(report);
    if let Some(count) = planner.wish.parallel {
        plan.args(["--parallel".to_owned(), count.to_string()]);
    }
    let selection = planner.selection();
    let exact = any_of(selection.tests.iter().map(|test| super::select::escaped(&test.name)));
    let names = any_of(selection.patterns.iter().map(super::Pattern::regex));
    if let Some(regex) = exact.map(|names| format!("^({names})$")).or(names) {
        plan.args(["--tests-regex", &regex]);
    }
    if let Some(regex) = any_of(selection.exclude.iter().map(super::Pattern::regex)) {
        plan.args(["--exclude-regex", &regex]);
    }
    planner.no_coverage(&mut plan, "CTest");
    plan
}
