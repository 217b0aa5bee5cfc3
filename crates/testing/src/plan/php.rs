//! `PHPUnit`.

use super::select::any_of;
use super::{Planner, RunPlan};

pub(super) fn phpunit(planner: &Planner<'_>) -> RunPlan {
    let own = planner.candidate.invocation.command.first().map(|program| format!("./{program}"));
    let local = own.or_else(|| Some("./vendor/bin/phpunit".to_owned())).and_then(|path| planner.find(&path));
    let mut plan = planner.start(local.or_else(|| planner.find("phpunit")), "phpunit");
    let (events, report) = (planner.scratch("events.teamcity"), planner.scratch("junit.xml"));
    plan.args(["--log-teamcity", events.as_str(), "--log-junit", report.as_str()]);
    plan.events = Some(events);
    plan.reads(report);
    let selection = planner.selection();
    let exact = any_of(selection.tests.iter().map(|test| super::select::escaped(&test.name)));
    let names = exact.map(|names| format!("({names})$")).or_else(|| selection.names_regex(&planner.root));
    if let Some(regex) = names {
        plan.arg(format!("--filter={regex}"));
    }
    if !selection.exclude.is_empty() {
        plan.note("PHPUnit leaves out by group, not by name: the excluded tests are run too");
    }
    if planner.wish.coverage {
        plan.note("no coverage: PHPUnit needs an extension of PHP for it");
    }
    let (files, _) = selection.wanted(&planner.root);
    if files.is_empty() {
        plan.args(planner.targets().iter().cloned());
    }
    plan.args(files.iter().map(|file| file.text()));
    plan
}
