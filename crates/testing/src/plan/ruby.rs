//! `RSpec` and minitest.

use super::{Planner, RunPlan};
use crate::detect::file::read_inside;

pub(super) fn rspec(planner: &Planner<'_>) -> RunPlan {
    let mut plan = bundled(planner, "rspec");
    plan.inject(planner, None);
    let selection = planner.selection();
    let (files, names) = selection.wanted(&planner.root);
    for name in names {
        if name.has_wildcard() {
            plan.args(["--example-matches".to_owned(), name.regex()]);
        } else {
            plan.args(["--example", name.text()]);
        }
    }
    for test in &selection.tests {
        plan.args(["--example", &test.name]);
    }
    let (unwanted_files, unwanted) = selection.unwanted(&planner.root);
    for file in unwanted_files {
        plan.args(["--exclude-pattern", file.text()]);
    }
    if !unwanted.is_empty() {
        plan.note("RSpec cannot leave out examples by name: the excluded ones are run too");
    }
    planner.no_coverage(&mut plan, "RSpec");
    plan.args(files.iter().map(|file| file.text()));
    plan
}

pub(super) fn minitest(planner: &Planner<'_>) -> RunPlan {
    const ALL: &str =
        "Dir.glob('test/**/{*_test,test_*}.rb').sort.each { |file| require File.expand_path(file) }";
    const NAMED: &str = "ARGV.shift.split(':').each { |file| require File.expand_path(file) }";
    let selection = planner.selection();
    let (files, _) = selection.wanted(&planner.root);
    let mut options = vec!["--verbose".to_owned()];
    let exact = super::select::any_of(selection.tests.iter().map(|test| super::select::escaped(&test.name)));
    let names = exact.map(|names| format!("^({names})$")).or_else(|| selection.names_regex(&planner.root));
    if let Some(regex) = names {
        options.extend(["--name".to_owned(), format!("/{}/", regex.replace('/', "\\/"))]);
    }
    let unwanted = selection.unwanted(&planner.root).1;
    if let Some(regex) = super::select::any_of(unwanted.iter().map(|pattern| pattern.regex())) {
        options.extend(["--exclude".to_owned(), format!("/{}/", regex.replace('/', "\\/"))]);
    }
    let own = &planner.candidate.invocation.command;
    let mut plan = if own.first().is_some_and(|program| program == "bin/rails") {
        let mut plan = planner.start(planner.find("./bin/rails"), "bin/rails");
        plan.arg("test");
        plan.args(options);
        plan.args(files.iter().map(|file| file.text()));
        plan
    } else {
        let mut plan = bundled(planner, "ruby");
        plan.args(["-Ilib", "-Itest", "-e", if files.is_empty() { ALL } else { NAMED }, "--"]);
        if !files.is_empty() {
            plan.arg(files.iter().map(|file| file.text()).collect::<Vec<_>>().join(":"));
        }
        plan.args(options);
        plan
    };
    planner.no_coverage(&mut plan, "minitest");
    plan
}

/// Through bundler only where the lock file has the runner: elsewhere bundler would refuse to start it.
pub(crate) fn bundled(planner: &Planner<'_>, program: &str) -> RunPlan {
    let lock = read_inside(&planner.root, &planner.root.join("Gemfile.lock")).unwrap_or_default();
    let gem = if program == "ruby" { "minitest" } else { program };
    let locked = lock.lines().any(|line| line.trim().split([' ', '-']).next() == Some(gem));
    if locked && planner.machine.has("bundle") {
        let mut plan = planner.start(planner.find("bundle"), "bundle");
        plan.args(["exec", program]);
        return plan;
    }
    planner.start(planner.find(program), program)
}
