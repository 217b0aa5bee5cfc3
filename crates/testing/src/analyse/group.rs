//! Failures that are one: the same kind, the same message but for its values, the same place.

use std::collections::HashMap;

use super::failing::Failing;
use super::pattern::FailurePattern;
use super::{ErrorPattern, FailureContext, FailureGroup, suggest};
use crate::Relation;

/// Of a group's tests, so many are named; `frequency` counts all.
pub(super) const NAMED: usize = 20;
/// So many groups and patterns are told: a run that fails in more ways has another problem.
const TOLD: usize = 50;

#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// In the order of the report; never empty.
    pub members: Vec<&'a Failing<'a>>,
    pub relation: Option<Relation>,
}

impl<'a> Group<'a> {
    /// The one that stands for all.
    pub(crate) fn first(&self) -> &'a Failing<'a> {
        self.members[0]
    }

    pub(super) fn told(&self, context: &FailureContext<'_>) -> FailureGroup {
        let first = self.first();
        let (file, line) = first.place.clone().map_or((None, None), |(file, line)| (Some(file), Some(line)));
        let values = first.expected_and_actual();
        FailureGroup {
            pattern: first.pattern,
            message: first.headline().to_owned(),
            scope: first.scope(),
            frequency: self.members.len() as u64,
            test_names: names(&self.members),
            file,
            line: line.filter(|line| *line > 0),
            function: first.function().map(str::to_owned),
            expected: values.map(|(expected, _)| expected.to_owned()),
            actual: values.map(|(_, actual)| actual.to_owned()),
            relation: self.relation,
            suggestion: suggest::fact(first, context),
            change: suggest::change(first, context),
        }
    }
}

pub(super) fn names(members: &[&Failing<'_>]) -> Vec<String> {
    members.iter().filter(|it| !it.name.is_empty()).take(NAMED).map(|it| it.name.to_owned()).collect()
}

/// All groups: those in changed lines first, then what stands in the way of tests, then the large ones.
pub(super) fn groups<'a>(all: &'a [Failing<'a>], context: &FailureContext<'_>) -> Vec<Group<'a>> {
    type Key<'k> = (FailurePattern, &'k str, Option<&'k (String, u32)>);
    let mut at: HashMap<Key<'a>, usize> = HashMap::new();
    let mut groups: Vec<Group<'a>> = Vec::new();
    for failing in all {
        let key = (failing.pattern, failing.signature.as_str(), failing.place.as_ref());
        let index = *at.entry(key).or_insert_with(|| {
            groups.push(Group { members: Vec::new(), relation: relation(failing, context) });
            groups.len() - 1
        });
        groups[index].members.push(failing);
    }
    groups.sort_by_key(|group| {
        let changed = group.relation == Some(Relation::InChangedLine);
        std::cmp::Reverse((changed, group.first().scope().is_some(), group.members.len()))
    });
    groups.truncate(TOLD);
    groups
}

/// How near the changes are to any of a failure's frames.
fn relation(failing: &Failing<'_>, context: &FailureContext<'_>) -> Option<Relation> {
    let changes = context.changes?;
    let frames = failing.frames.iter().map(|frame| changes.relation(&frame.file, Some(frame.line)));
    let place = failing.place.iter().map(|(file, line)| changes.relation(file, Some(*line)));
    Some(frames.chain(place).min().unwrap_or(Relation::Unrelated))
}

/// The messages that come again, whatever place they come from.
pub(super) fn patterns(all: &[Failing<'_>]) -> Vec<ErrorPattern> {
    let mut at: HashMap<(FailurePattern, &str), usize> = HashMap::new();
    let mut patterns: Vec<ErrorPattern> = Vec::new();
    for failing in all {
        let index = *at.entry((failing.pattern, failing.signature.as_str())).or_insert_with(|| {
            patterns.push(ErrorPattern {
                pattern: failing.pattern,
                message: failing.headline().to_owned(),
                frequency: 0,
                test_names: Vec::new(),
            });
            patterns.len() - 1
        });
        let pattern = &mut patterns[index];
        pattern.frequency += 1;
        // Of a single failure the values are known, and say more than placeholders.
        if pattern.frequency == 2 {
            pattern.message.clone_from(&failing.signature);
        }
        if pattern.test_names.len() < NAMED && !failing.name.is_empty() {
            pattern.test_names.push(failing.name.to_owned());
        }
    }
    patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.frequency));
    patterns.truncate(TOLD);
    patterns
}
