//! How one recording differs from another.

use std::collections::BTreeSet;

use serde::Serialize;

use super::difference::{Difference, differences};
use super::lane::LaneName;
use super::read::{Cassette, Entry};
use super::response::{Body, Response};

/// A difference between two cassettes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CassetteChange {
    /// The lane.
    pub lane: String,
    /// Which request of the lane, counted from 1.
    pub position: usize,
    /// What happened to it.
    pub change: ChangeKind,
    /// Where the requests differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

/// What happened to an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Only the second has it.
    Added,
    /// Only the first has it.
    Removed,
    /// Another request.
    Request,
    /// Another answer to the same request.
    Response,
    /// Both are others.
    Both,
}

/// What differs, lane by lane. Timing is not compared.
pub fn compare(first: &Cassette, second: &Cassette) -> Vec<CassetteChange> {
    let lanes: BTreeSet<LaneName> =
        first.entries.iter().chain(&second.entries).map(|entry| entry.lane).collect();
    let mut changes = Vec::new();
    for lane in lanes {
        let of = |cassette: &'_ Cassette| -> Vec<Entry> {
            cassette.entries.iter().filter(|entry| entry.lane == lane).cloned().collect()
        };
        let (old, new) = (of(first), of(second));
        for index in 0..old.len().max(new.len()) {
            let change = changed(old.get(index), new.get(index));
            if let Some((change, differences)) = change {
                changes.push(CassetteChange {
                    lane: lane.to_string(),
                    position: index + 1,
                    change,
                    differences,
                });
            }
        }
    }
    changes
}

fn changed(old: Option<&Entry>, new: Option<&Entry>) -> Option<(ChangeKind, Vec<Difference>)> {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (None, _) => return Some((ChangeKind::Added, Vec::new())),
        (_, None) => return Some((ChangeKind::Removed, Vec::new())),
    };
    let kind = match (old.key.equals(&new.key), same_answer(&old.response, &new.response)) {
        (true, true) => return None,
        (true, false) => ChangeKind::Response,
        (false, true) => ChangeKind::Request,
        (false, false) => ChangeKind::Both,
    };
    Some((kind, differences(&old.key, &new.key)))
}

fn same_answer(old: &Response, new: &Response) -> bool {
    let texts = |response: &Response| -> String {
        match &response.body {
            Body::Whole(text) => text.clone(),
            Body::Frames(frames) => frames.iter().map(|frame| frame.text.as_str()).collect(),
        }
    };
    old.status == new.status
        && old.ended == new.ended
        && old.headers == new.headers
        && texts(old) == texts(new)
}
