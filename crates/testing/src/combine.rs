//! One run, told several times: by a stream of events, a report, and what was printed.
//!
//! The most trusted telling counts the tests. The others fill in what it lacks, and tell of problems that it does
//! not know; they never add or remove a test.

use std::collections::HashMap;

use crate::collect::Collected;
use crate::{Problem, TestCase, TestStatus, Trust};

#[derive(Debug)]
pub(crate) struct Telling {
    /// Its format's name: tellings in the same format are parts of one (a report a class).
    pub format: &'static str,
    pub trust: Trust,
    pub run: Collected,
}

pub(crate) fn combine(tellings: Vec<Telling>) -> Collected {
    let mut parts: Vec<Telling> = Vec::new();
    for telling in tellings {
        match parts.iter_mut().find(|part| part.format == telling.format) {
            Some(part) => absorb(&mut part.run, telling.run),
            None => parts.push(telling),
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse((part.run.seen() > 0, part.trust)));
    let mut parts = parts.into_iter();
    let Some(mut best) = parts.next() else { return Collected::default() };
    for other in parts {
        complete(&mut best, other);
    }
    best.run.exit_decides = best.trust == Trust::ExitStatus;
    best.run
}

/// Another part of the same report.
fn absorb(whole: &mut Collected, part: Collected) {
    whole.ended &= part.ended;
    whole.summary.merge(&part.summary);
    whole.tests.extend(part.tests);
    whole.problems.extend(part.problems);
    whole.complaints.extend(part.complaints);
    whole.declared = sum(whole.declared, part.declared);
    whole.counted = sum(whole.counted, part.counted);
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    if a.is_none() && b.is_none() { None } else { Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))) }
}

/// What another telling knows better.
fn complete(best: &mut Telling, other: Telling) {
    let run = &mut best.run;
    // A report for each class is whole though the run was killed: what was printed knows.
    let knows_the_end = other.trust >= Trust::Text && other.run.seen() > 0;
    if best.trust < Trust::Stream && knows_the_end {
        run.ended &= other.run.ended;
    }
    if run.seen() == 0 {
        run.ended |= other.run.ended;
    }
    run.version = run.version.take().or(other.run.version);
    if other.trust > Trust::ExitStatus {
        for problem in other.run.problems {
            match run.problems.iter_mut().find(|known| same(known, &problem)) {
                Some(known) if known.line.is_none() && problem.line.is_some() => *known = problem,
                Some(_) => {}
                None => run.problems.push(problem),
            }
        }
    }
    fill_in(run, &other.run.tests);
}

/// Whether two tellings mean the same problem.
fn same(known: &Problem, other: &Problem) -> bool {
    if known.scope != other.scope {
        return false;
    }
    let same_place = known.file.is_some() && known.file == other.file && known.line == other.line;
    let same_name =
        !known.name.is_empty() && known.name == other.name && (known.line.is_none() || other.line.is_none());
    same_place || same_name || known.message == other.message
}

fn fill_in(run: &mut Collected, others: &[TestCase]) {
    let by_name: HashMap<&str, &TestCase> = others.iter().map(|case| (case.name.as_str(), case)).collect();
    for case in &mut run.tests {
        let Some(other) = by_name.get(case.name.as_str()) else { continue };
        if case.status == TestStatus::Pass && other.status == TestStatus::Flaky {
            run.summary.remove(case.status);
            run.summary.add(other.status);
            case.status = other.status;
            case.attempts = case.attempts.or(other.attempts);
        }
        if case.status.is_failure() && other.status.is_failure() {
            lend(case, other);
        }
    }
}

fn lend(case: &mut TestCase, other: &TestCase) {
    // That a test never ended says nothing of how it died; a stack that was printed does.
    let only_missing = case.status == TestStatus::Crash && case.kind.is_none();
    if only_missing && other.kind.is_some() {
        case.error.clone_from(&other.error);
        case.file = other.file.clone().or(case.file.take());
        case.line = other.line.or(case.line);
    }
    if case.file.is_none() || (case.line.is_none() && case.file == other.file) {
        case.file.clone_from(&other.file);
        case.line = other.line;
    }
    for (mine, theirs) in [
        (&mut case.error, &other.error),
        (&mut case.stack_trace, &other.stack_trace),
        (&mut case.output, &other.output),
    ] {
        // What says the same and more says it better: `timed out`, and after how long.
        if theirs.len() > mine.len() && theirs.contains(mine.as_str()) {
            mine.clone_from(theirs);
        }
    }
    case.kind = case.kind.or(other.kind);
    case.expected = case.expected.take().or_else(|| other.expected.clone());
    case.actual = case.actual.take().or_else(|| other.actual.clone());
}
