//! In which order a plan can be done.

use std::collections::BTreeMap;

use super::PlannedTask;

/// How many tasks have to be done before each, one after the other; or a circle, told from a task to itself.
pub(super) fn depths(tasks: &[PlannedTask]) -> Result<Vec<usize>, Vec<String>> {
    let places: BTreeMap<&str, usize> =
        tasks.iter().enumerate().map(|(at, task)| (task.id.as_str(), at)).collect();
    let waits_for = |at: usize| tasks[at].depends_on.iter().filter_map(|on| places.get(on.as_str()).copied());
    let mut depths: Vec<Option<usize>> = vec![None; tasks.len()];
    // Each round settles those that wait only for settled ones; there are no more rounds than tasks.
    for round in 0..=tasks.len() {
        let settled = depths.clone();
        for (at, depth) in depths.iter_mut().enumerate() {
            if depth.is_none() && waits_for(at).all(|on| settled[on].is_some()) {
                *depth = Some(round);
            }
        }
    }
    if let Some(stuck) = depths.iter().position(Option::is_none) {
        let next = |at: usize| waits_for(at).find(|on| depths[*on].is_none());
        return Err(circle(stuck, next).into_iter().map(|at| tasks[at].id.clone()).collect());
    }
    Ok(depths.into_iter().flatten().collect())
}

/// Whoever is stuck waits for someone who is stuck: following them leads around.
fn circle(from: usize, next: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let mut way = vec![from];
    while let Some(on) = way.last().and_then(|last| next(*last)) {
        if let Some(begin) = way.iter().position(|seen| *seen == on) {
            let mut circle = way.split_off(begin);
            circle.push(on);
            return circle;
        }
        way.push(on);
    }
    way
}
