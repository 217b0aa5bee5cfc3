//! `go test -json`.

use super::select::{any_of, escaped, glob_body};
use super::{CoverageFile, CoverageFormat, FirstSignal, Pattern, Planner, RunPlan};
use crate::Selector;

pub(super) fn plan(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("go"), "go");
    plan.first_signal = FirstSignal::Quit;
    plan.writable.extend(planner.machine.cache("GOCACHE", ".cache/go-build"));
    plan.args(["test", "-json"]);
    let selection = planner.selection();
    if let Some(regex) = wanted_names(planner) {
        plan.args(["-run", &regex]);
    }
    let (_, unwanted) = selection.unwanted(&planner.root);
    if let Some(regex) = any_of(unwanted.iter().map(|pattern| levels(pattern))) {
        plan.args(["-skip", &regex]);
    }
    if let Some(count) = planner.wish.parallel {
        plan.args([format!("-parallel={count}"), format!("-p={count}")]);
    }
    if planner.wish.coverage {
        let profile = planner.scratch("cover.out");
        plan.arg(format!("-coverprofile={profile}"));
        plan.coverage = Some(CoverageFile::new(profile, CoverageFormat::GoProfile));
    }
    let packages = packages(planner, &mut plan);
    plan.args(packages);
    plan
}

/// A test of an earlier run is run with all its subtests: its regular expression is for the part before the slash.
fn wanted_names(planner: &Planner<'_>) -> Option<String> {
    let selection = planner.selection();
    let mut tops: Vec<&str> =
        selection.tests.iter().map(|test| test.name.split('/').next().unwrap_or_default()).collect();
    tops.sort_unstable();
    tops.dedup();
    let exact = any_of(tops.iter().map(|name| escaped(name))).map(|names| format!("^({names})$"));
    let (_, wanted) = selection.wanted(&planner.root);
    exact.or_else(|| any_of(wanted.iter().map(|pattern| levels(pattern))))
}

/// Go splits the expression at slashes and matches each level of subtests on its own.
fn levels(pattern: &Pattern) -> String {
    if !pattern.has_wildcard() {
        return escaped(pattern.text());
    }
    let levels: Vec<_> = pattern.text().split('/').map(|level| format!("^{}$", glob_body(level))).collect();
    levels.join("/")
}

fn packages(planner: &Planner<'_>, plan: &mut RunPlan) -> Vec<String> {
    let of_tests = planner.selection().test_files();
    if !of_tests.is_empty() {
        return of_tests;
    }
    let reached = planner.selection().reached.iter().filter_map(|selector| match selector {
        Selector::Directory(directory) if directory == "." => Some(".".to_owned()),
        Selector::Directory(directory) => Some(format!("./{directory}")),
        _ => None,
    });
    let reached: Vec<String> = reached.collect();
    if !reached.is_empty() {
        return reached;
    }
    let (files, _) = planner.selection().wanted(&planner.root);
    let mut packages = Vec::new();
    for file in files {
        let path = file.text().trim_start_matches("./");
        if path.ends_with(".go") {
            plan.note(format!(
                "go selects packages, not files: all tests of the package of `{path}` are run"
            ));
        }
        let directory =
            if path.ends_with(".go") { path.rsplit_once('/').map_or(".", |(it, _)| it) } else { path };
        let package = if directory == "." { ".".to_owned() } else { format!("./{directory}") };
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    match (packages.is_empty(), planner.targets()) {
        (false, _) => packages,
        (true, []) => vec!["./...".to_owned()],
        (true, targets) => targets.to_vec(),
    }
}
