//! Which normalisers an agent needs: those without which two runs of the same work do not ask the same.

use std::collections::BTreeMap;

use super::difference::{Difference, differences};
use super::exchange::Asked;
use super::key::{Key, Keys};
use super::lane::LaneName;
use super::normalise::{Normaliser, PatternError, Place, Rule};
use super::scan::Secrets;

/// The requests of one run, and where it took place.
#[derive(Debug)]
pub struct Heard<'a> {
    /// In the order in which they came.
    pub requests: Vec<Asked<'a>>,
    /// The directories of the run.
    pub place: Place,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The rules that are needed.
    pub needed: Vec<Rule>,
    /// What differs in spite of all rules.
    pub unexplained: Vec<Difference>,
    /// How many requests the two runs made.
    pub requests: (usize, usize),
}

/// Compares two runs of the same work, by these rules.
pub fn propose(rules: &[Rule], first: &Heard<'_>, second: &Heard<'_>) -> Result<Proposal, PatternError> {
    let mut needed = rules.to_vec();
    let mut unexplained = unlike(&needed, first, second)?;
    if unexplained.is_empty() {
        // Each rule is tried without: what is still the same does not need it.
        for rule in rules {
            let without: Vec<Rule> = needed.iter().copied().filter(|kept| kept != rule).collect();
            if unlike(&without, first, second)?.is_empty() {
                needed = without;
            }
        }
    }
    if unexplained.is_empty() && first.requests.len() != second.requests.len() {
        let count = |heard: &Heard<'_>| Some(format!("{} requests", heard.requests.len()));
        unexplained.push(Difference {
            place: "the run".to_owned(),
            expected: count(first),
            got: count(second),
        });
    }
    Ok(Proposal { needed, unexplained, requests: (first.requests.len(), second.requests.len()) })
}

fn unlike(rules: &[Rule], first: &Heard<'_>, second: &Heard<'_>) -> Result<Vec<Difference>, PatternError> {
    let (old, new) = (keys(rules, first)?, keys(rules, second)?);
    let mut found = Vec::new();
    for (lane, old) in &old {
        let new = new.get(lane).map(Vec::as_slice).unwrap_or_default();
        for (old, new) in old.iter().zip(new).filter(|(old, new)| !old.equals(new)) {
            found.extend(differences(old, new));
        }
    }
    Ok(found)
}

fn keys(rules: &[Rule], heard: &Heard<'_>) -> Result<BTreeMap<LaneName, Vec<Key>>, PatternError> {
    let mut keys = Keys::new(Normaliser::new(rules, &heard.place, &Secrets::default())?);
    let mut lanes: BTreeMap<LaneName, Vec<Key>> = BTreeMap::new();
    for asked in &heard.requests {
        let (lane, key) = keys.key(asked);
        lanes.entry(lane).or_default().push(key);
    }
    Ok(lanes)
}
