//! What to look at, with the facts that say why. A suggestion without a fact is not given.

use super::FailureContext;
use super::facts;
use super::failing::{Failing, Source};
use super::pattern::FailurePattern;
use super::tree::{is_test_file, subject_of};
use crate::Relation;
use crate::is_foreign;

/// What to look at for one failure, if there is a fact to tell.
pub(super) fn fact(failing: &Failing<'_>, context: &FailureContext<'_>) -> Option<String> {
    let message = failing.message;
    if let Some(damage) = damaged_toolchain(failing) {
        return Some(damage);
    }
    match failing.pattern {
        FailurePattern::Assertion => assertion(failing, context),
        FailurePattern::Snapshot => {
            Some(format!("{}: update the snapshot if the new text is right", at(failing, "it differs")?))
        }
        FailurePattern::Nil => nil(failing, context),
        FailurePattern::Index => {
            let used = match facts::index_and_length(message) {
                Some((index, length)) => format!("index {index} is used on length {length}"),
                None => failing.headline().to_owned(),
            };
            quoting(failing, &used, context)
        }
        FailurePattern::Import => Some(import(failing)),
        FailurePattern::Timeout => timeout(failing),
        // What the sandbox denied is told once, for all tests together.
        _ if failing.denied.is_some() => None,
        FailurePattern::ConnectionRefused
        | FailurePattern::AddressInUse
        | FailurePattern::MissingProgram
        | FailurePattern::Network
        | FailurePattern::DiskFull => environment(failing),
        FailurePattern::Setup | FailurePattern::Teardown => set_up(failing),
        FailurePattern::Compile | FailurePattern::Config | FailurePattern::Dependency => {
            at(failing, failing.headline())
        }
        FailurePattern::Crash
        | FailurePattern::StackOverflow
        | FailurePattern::Deadlock
        | FailurePattern::Race
        | FailurePattern::Panic
        | FailurePattern::Key
        | FailurePattern::Undefined
        | FailurePattern::Type
        | FailurePattern::Arithmetic
        | FailurePattern::MissingFile
        | FailurePattern::Error => quoting(failing, failing.headline(), context),
        FailurePattern::UnexpectedPass => at(failing, "it is declared to fail, and does not"),
        FailurePattern::ReadOnly
        | FailurePattern::Permission
        | FailurePattern::OutOfMemory
        | FailurePattern::TooManyFiles
        | FailurePattern::ProcessLimit
        | FailurePattern::Exit => None,
    }
}

/// `file:line in function: what`.
fn at(failing: &Failing<'_>, what: &str) -> Option<String> {
    let place = place(failing)?;
    let what = what.trim_end_matches('.');
    Some(match failing.function().filter(|_| !place_is_test(failing)) {
        Some(function) => format!("{place} in `{function}`: {what}"),
        None => format!("{place}: {what}"),
    })
}

/// The function of a test says no more than its name, which everybody is told.
fn place_is_test(failing: &Failing<'_>) -> bool {
    failing.place.as_ref().is_some_and(|(file, _)| is_test_file(file))
}

pub(super) fn place(failing: &Failing<'_>) -> Option<String> {
    let (file, line) = failing.place.as_ref()?;
    Some(if *line > 0 { format!("{file}:{line}") } else { file.clone() })
}

/// The same with the line of source that it happened in.
fn quoting(failing: &Failing<'_>, what: &str, context: &FailureContext<'_>) -> Option<String> {
    let text = at(failing, what)?;
    let source = failing.place.as_ref().and_then(|(file, line)| context.source_line(file, *line));
    Some(match source {
        Some(source) => format!("{text} (`{source}`)"),
        None => text,
    })
}

fn assertion(failing: &Failing<'_>, context: &FailureContext<'_>) -> Option<String> {
    let place = place(failing)?;
    if let Some(text) = evaluated(failing, &place) {
        return Some(text);
    }
    let Some((expected, actual)) = failing.expected_and_actual() else {
        return quoting(failing, failing.headline(), context);
    };
    if let Some((expected, actual)) = facts::first_difference(expected, actual) {
        return Some(format!("{place}: the first line that differs is `{actual}`, expected `{expected}`"));
    }
    let (expected, actual) = (facts::value(expected), facts::value(actual));
    let source = failing.place.as_ref().and_then(|(file, line)| context.source_line(file, *line));
    Some(match source {
        Some(source) => format!("`{source}` in {place}: got {actual}, expected {expected}"),
        None => format!("{place}: got {actual}, expected {expected}"),
    })
}

/// The expression that had the wrong value, where pytest explains it.
fn evaluated(failing: &Failing<'_>, place: &str) -> Option<String> {
    let (value, expression) = facts::where_expression(failing.message)?;
    let told = failing.expected_and_actual();
    let (expected, actual) = told.or_else(|| facts::compared(failing.headline()))?;
    let (expected, actual) = (facts::value(expected), facts::value(actual));
    let (was, wanted) = if value == actual { (actual, expected) } else { (expected, actual) };
    (value == was).then(|| format!("`{expression}` in {place} was {was}, expected {wanted}"))
}

fn nil(failing: &Failing<'_>, context: &FailureContext<'_>) -> Option<String> {
    let what = match facts::read_of_nothing(failing.message) {
        Some(name) => format!("`{name}` is used of a value that is not there"),
        None => failing.headline().to_owned(),
    };
    quoting(failing, &what, context)
}

fn import(failing: &Failing<'_>) -> String {
    let Some(module) = facts::module(failing.message) else {
        return at(failing, failing.headline()).unwrap_or_else(|| failing.headline().to_owned());
    };
    let what = if module.starts_with('.') || module.starts_with('/') {
        format!("`{module}` is imported and does not exist there")
    } else {
        format!("`{module}` is imported and cannot be found: install it, or correct its name")
    };
    at(failing, &what).unwrap_or(what)
}

fn timeout(failing: &Failing<'_>) -> Option<String> {
    match facts::time_limit(failing.message) {
        Some(limit) => at(failing, &format!("it did not end within {limit}, and was here")),
        None => at(failing, failing.headline()),
    }
}

fn set_up(failing: &Failing<'_>) -> Option<String> {
    if let Some(name) = facts::quoted_after(failing.message, "fixture") {
        return Some(match place(failing) {
            Some(place) => format!("{place}: there is no fixture `{name}`"),
            None => format!("there is no fixture `{name}`"),
        });
    }
    match environment(failing) {
        Some(cause) => at(failing, &cause),
        None => at(failing, failing.headline()),
    }
}

/// What is wrong with the machine rather than with the project.
pub(super) fn environment(failing: &Failing<'_>) -> Option<String> {
    if let Some(damage) = damaged_toolchain(failing) {
        return Some(damage);
    }
    let said = super::pattern::said(failing.message)?;
    match said.pattern {
        FailurePattern::MissingProgram => Some(match facts::program(failing.message) {
            Some(program) => format!("`{program}` is not installed, or not in PATH"),
            None => format!("a program is missing: {}", said.line),
        }),
        FailurePattern::ConnectionRefused => Some(match facts::address(said.line) {
            Some(address) => {
                format!("nothing listens at {address}: the service that the tests need is not running")
            }
            None => "a service that the tests need is not running: the connection was refused".to_owned(),
        }),
        FailurePattern::AddressInUse => Some(match facts::address(said.line) {
            Some(address) => format!("something else listens at {address} already"),
            None => "an address is in use already".to_owned(),
        }),
        FailurePattern::DiskFull => Some("the disk is full".to_owned()),
        FailurePattern::Network => Some(format!("another machine could not be reached: {}", said.line)),
        _ => None,
    }
}

/// Errors inside of the language's own sources: Go then says of its own packages that they are not there.
fn damaged_toolchain(failing: &Failing<'_>) -> Option<String> {
    let Source::Problem(problem) = failing.source else { return None };
    let not_in_std =
        problem.message.contains("is not in std") || problem.message.contains("is not in GOROOT");
    let own_package = facts::module(&problem.message).is_some_and(|package| {
        package.starts_with("internal/") || package.starts_with("runtime/") || package == "runtime"
    });
    let in_toolchain =
        problem.file.as_deref().is_some_and(|file| is_foreign(file) || file.contains("/go/src/"));
    (not_in_std && (own_package || in_toolchain))
        .then(|| format!("the Go installation is damaged, not the project: {}", failing.headline()))
}

/// How a failure goes together with what changed.
pub(super) fn change(failing: &Failing<'_>, context: &FailureContext<'_>) -> Option<String> {
    let changes = context.changes?;
    let nearest = failing
        .frames
        .iter()
        .filter_map(|frame| changes.place(&frame.file, Some(frame.line)))
        .min_by_key(|place| (place.relation, is_test_file(&place.file)));
    if let Some(place) = nearest.as_ref().filter(|place| place.relation == Relation::InChangedLine) {
        let here = failing
            .place
            .as_ref()
            .is_some_and(|(file, line)| *file == place.file && Some(*line) == place.line);
        let line = place.line.unwrap_or_default();
        let words = &place.words;
        return Some(if here {
            format!("the line {words}")
        } else {
            format!("{}:{line} on the way {words}", place.file)
        });
    }
    let source = nearest.filter(|place| !is_test_file(&place.file)).map(|place| place.file);
    let file = source.or_else(|| namesake(failing, context))?;
    let lines = changes.lines(&file);
    let at = if lines.is_empty() { String::new() } else { format!(":{lines}") };
    Some(format!("{file}{at} {}", changes.when(&file, None)))
}

/// The changed file that the test is named after.
fn namesake(failing: &Failing<'_>, context: &FailureContext<'_>) -> Option<String> {
    let (file, _) = failing.place.as_ref().filter(|(file, _)| is_test_file(file))?;
    let subject = subject_of(file);
    let mut same =
        context.changes?.files().filter(|changed| !is_test_file(changed) && subject_of(changed) == subject);
    same.next().map(str::to_owned)
}
