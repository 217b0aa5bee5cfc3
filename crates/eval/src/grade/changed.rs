//! Assertions on what is another in the repository, and on what came of it.

use regex::Regex;
use rehearsal_core::TestStatus;

use super::Grade;
use super::said::quote;
use crate::assertion::{Pattern, Patterns, Range};
use crate::trial::{ChangeKind, Trial};

pub(super) fn files_modified(trial: &Trial, range: Range) -> Grade {
    let count = trial.changes.len() as u64;
    Grade::of(range.contains(count), format!("{count} files are another, {range} wanted{}", named(trial)))
}

fn named(trial: &Trial) -> String {
    const MOST: usize = 5;
    let names: Vec<&str> = trial.changes.iter().take(MOST).map(|change| change.path.as_str()).collect();
    let more = if trial.changes.len() > MOST { ", …" } else { "" };
    if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) }
}

pub(super) fn files_created(trial: &Trial, patterns: &[Pattern]) -> Grade {
    let created = |pattern: &&Pattern| {
        let mut new = trial.changes.iter().filter(|change| change.kind == ChangeKind::Created);
        !new.any(|change| pattern.glob.is_match(&change.path))
    };
    match patterns.iter().find(created) {
        Some(missing) => Grade::of(false, format!("no new file is `{}`{}", missing.written, named(trial))),
        None => Grade::of(true, format!("{} new files", patterns.len())),
    }
}

pub(super) fn untouched(trial: &Trial, patterns: &Patterns) -> Grade {
    match trial.changes.iter().find(|change| patterns.take(&change.path)) {
        Some(change) => Grade::of(false, format!("`{}` was to stay as it is", change.path)),
        None => Grade::of(true, "all of it is as it was"),
    }
}

pub(super) fn scope(trial: &Trial, patterns: &Patterns) -> Grade {
    match trial.changes.iter().find(|change| !patterns.take(&change.path)) {
        Some(change) => Grade::of(false, format!("`{}` is outside of what was to change", change.path)),
        None => Grade::of(true, format!("all {} changes are within", trial.changes.len())),
    }
}

pub(super) fn diff_matches(trial: &Trial, regex: &Regex) -> Grade {
    match regex.find(&trial.diff) {
        Some(found) => Grade::of(true, format!("the difference has {}", quote(found.as_str()))),
        None => Grade::of(false, format!("`{regex}` is not in the difference{}", named(trial))),
    }
}

pub(super) fn command(trial: &Trial, command: &str, code: i32) -> Grade {
    let Some(end) = trial.commands.get(command) else { return Grade::unknown("the command was not run") };
    let Some(given) = end.code else {
        return Grade::unknown(format!("the command could not be run: {}", quote(&end.output)));
    };
    let output = if given == code { String::new() } else { format!(": {}", quote(&end.output)) };
    Grade::of(given == code, format!("exit status {given}, {code} wanted{output}"))
}

pub(super) fn tests(
    trial: &Trial,
    fail_to_pass: &[String],
    pass_to_pass: &[String],
    keep_all: bool,
) -> Grade {
    let Some(tested) = &trial.tests else { return Grade::unknown("the tests were not run") };
    let passes = |status: Option<&TestStatus>| matches!(status, Some(TestStatus::Pass | TestStatus::Flaky));
    for name in fail_to_pass {
        if passes(tested.before.get(name)) {
            return Grade::unknown(format!(
                "`{name}` passed before: the case does not show what it is to show"
            ));
        }
    }
    let passed_before =
        || tested.before.iter().filter(|(_, status)| passes(Some(status))).map(|(name, _)| name);
    let kept: Vec<&String> = if keep_all { passed_before().collect() } else { pass_to_pass.iter().collect() };
    let bad = fail_to_pass.iter().chain(kept).find(|name| !passes(tested.after.get(*name)));
    match bad {
        Some(name) => Grade::of(false, format!("`{name}` {}", told(tested.after.get(name)))),
        None => Grade::of(
            true,
            format!("{} tests pass", tested.after.values().filter(|one| passes(Some(one))).count()),
        ),
    }
}

fn told(status: Option<&TestStatus>) -> &'static str {
    match status {
        None => "is not there",
        Some(TestStatus::Skip) => "is skipped",
        Some(TestStatus::Timeout | TestStatus::NotRun) => "did not end",
        Some(_) => "fails",
    }
}

pub(super) fn git(trial: &Trial, commits: Option<Range>, clean: bool, subject: Option<&Regex>) -> Grade {
    let count = trial.commits.len() as u64;
    if let Some(range) = commits.filter(|range| !range.contains(count)) {
        return Grade::of(false, format!("{count} commits, {range} wanted"));
    }
    if clean && trial.uncommitted {
        return Grade::of(false, "something is left that is not committed");
    }
    let odd = subject.and_then(|regex| trial.commits.iter().find(|subject| !regex.is_match(subject)));
    match odd {
        Some(subject) => Grade::of(false, format!("the subject {} does not match", quote(subject))),
        None => Grade::of(true, format!("{count} commits")),
    }
}

pub(super) fn pull_request(trial: &Trial, merged: Option<bool>, title: Option<&Regex>) -> Grade {
    let Some(pull_request) = &trial.pull_request else { return Grade::of(false, "there is no pull request") };
    if merged.is_some_and(|merged| merged != pull_request.merged) {
        let word = if pull_request.merged { "is" } else { "is not" };
        return Grade::of(false, format!("the pull request {word} merged"));
    }
    let fits = title.is_none_or(|title| title.is_match(&pull_request.title));
    Grade::of(fits, format!("the pull request is {}", quote(&pull_request.title)))
}

pub(super) fn gh_called(trial: &Trial, regex: &Regex) -> Grade {
    match trial.gh_calls.iter().find(|call| regex.is_match(call)) {
        Some(call) => Grade::of(true, format!("called: {call}")),
        None => Grade::of(false, format!("none of {} calls of gh matches `{regex}`", trial.gh_calls.len())),
    }
}
