//! Runners that speak TAP (Bats, `prove`, busted), and `mix test`.

use super::{Planner, RunPlan};

pub(super) fn bats(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("bats"), "bats");
    plan.args(["--formatter", "tap", "--timing"]);
    let selection = planner.selection();
    let exact = super::select::any_of(selection.tests.iter().map(|test| super::select::escaped(&test.name)));
    let names = exact.map(|names| format!("^({names})$")).or_else(|| selection.names_regex(&planner.root));
    if let Some(regex) = names {
        plan.args(["--filter", &regex]);
    }
    if let Some(count) = planner.wish.parallel.filter(|count| *count > 1) {
        if planner.machine.has("parallel") || planner.machine.has("rush") {
            plan.args(["--jobs".to_owned(), count.to_string()]);
        } else {
            plan.note("one test at a time: Bats needs GNU parallel for more");
        }
    }
    planner.cannot_leave_out(&mut plan, "Bats");
    planner.no_coverage(&mut plan, "Bats");
    let (files, _) = selection.wanted(&planner.root);
    if files.is_empty() {
        plan.args(planner.targets().iter().cloned());
    }
    plan.args(files.iter().map(|file| file.text()));
    plan
}

pub(super) fn prove(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("prove"), "prove");
    plan.args(["--verbose", "--nocolor", "--recurse", "--lib"]);
    // Into a pipe, prove would hold each file's results back until the file has ended.
    plan.args(["--formatter", "TAP::Formatter::Console"]);
    // The lines of a test and prove's words on it make sense only in their order.
    plan.merge_stderr = true;
    if let Some(count) = planner.wish.parallel {
        plan.args(["--jobs".to_owned(), count.to_string()]);
    }
    let (files, names) = planner.selection().wanted(&planner.root);
    if !names.is_empty() {
        plan.note("prove selects files, not tests: all tests are run");
    }
    planner.cannot_leave_out(&mut plan, "prove");
    planner.no_coverage(&mut plan, "prove");
    let of_tests = planner.selection().test_files();
    if files.is_empty() && of_tests.is_empty() {
        plan.arg("t");
    }
    plan.args(of_tests.into_iter().filter(|file| planner.root.join(file).is_file()));
    plan.args(files.iter().map(|file| file.text()));
    plan
}

pub(super) fn busted(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("busted"), "busted");
    plan.args(["--output", "TAP"]);
    let (files, names) = planner.selection().wanted(&planner.root);
    for name in names {
        plan.arg(format!("--filter={}", name.literals().first().copied().unwrap_or_default()));
    }
    for name in planner.selection().unwanted(&planner.root).1 {
        plan.arg(format!("--filter-out={}", name.literals().first().copied().unwrap_or_default()));
    }
    planner.no_coverage(&mut plan, "busted");
    plan.args(files.iter().map(|file| file.text()));
    plan
}

pub(super) fn mix(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("mix"), "mix");
    plan.args(["test", "--no-color", "--trace"]);
    plan.set("MIX_ENV", "test");
    let (files, names) = planner.selection().wanted(&planner.root);
    if !names.is_empty() {
        plan.note("mix selects files and tags, not names: all tests are run");
    }
    planner.cannot_leave_out(&mut plan, "mix");
    planner.no_coverage(&mut plan, "mix");
    plan.args(files.iter().map(|file| file.text()));
    plan
}
