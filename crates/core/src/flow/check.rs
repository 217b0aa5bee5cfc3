//! What must hold for a flow beyond its grammar.

use std::collections::{BTreeSet, HashMap};

use super::{EdgeName, Edges, End, Flow, State};
use crate::{AgentName, OutcomeName, Place, SourceError, StateName};

/// Where the names of a flow stood in its file.
#[derive(Default)]
pub(super) struct Names {
    pub(super) states: HashMap<StateName, Option<Place>>,
    pub(super) mentioned: Vec<(StateName, Option<Place>)>,
    pub(super) agents: Vec<(AgentName, Option<Place>)>,
}

/// The edges that a state with a working agent cannot do without.
const WORKING: [OutcomeName; 4] =
    [OutcomeName::Done, OutcomeName::Failed, OutcomeName::Blocked, OutcomeName::Crashed];
/// The same for a state without an agent.
const STEPPING: [OutcomeName; 1] = [OutcomeName::Done];
/// The same for a state whose agent decides.
const DECIDING: [OutcomeName; 3] = [OutcomeName::Approved, OutcomeName::Rejected, OutcomeName::Crashed];

pub(super) fn check(flow: &Flow, names: &Names) -> Result<(), SourceError> {
    let at = |state: &StateName| names.states.get(state).copied().flatten();
    for (name, state) in &flow.states {
        let missing = missing_edge(state);
        if let Some(edge) = missing {
            return Err(SourceError::at(
                at(name),
                format!("flow `{}` has no edge for outcome `{edge}` in state `{name}`", flow.name),
            )
            .hint(format!("add `{edge}: STATE` under `on:`, or an `otherwise:`")));
        }
    }
    let reachable = reachable(flow);
    if let Some(lost) = flow.states.keys().find(|name| !reachable.contains(name)) {
        return Err(SourceError::at(at(lost), format!("no task can reach state `{lost}`"))
            .hint(format!("lead an edge to it, or remove it; tasks begin in `{}`", flow.start)));
    }
    if let Some(stuck) = flow.states.keys().find(|name| !leads_on(flow, name)) {
        return Err(SourceError::at(at(stuck), format!("no way leads from state `{stuck}` to an end"))
            .hint("add an edge to a state with `end: success` or `end: failure`"));
    }
    if flow.success_state().is_none() {
        return Err(SourceError::at(None, format!("flow `{}` has no state with `end: success`", flow.name)));
    }
    Ok(())
}

fn missing_edge(state: &State) -> Option<EdgeName> {
    let State::Work { agent, steps, on } = state else {
        return None;
    };
    let of_agent: &[OutcomeName] = match agent {
        None => &STEPPING,
        Some(_) if on.decides() => &DECIDING,
        Some(_) => &WORKING,
    };
    let needed = of_agent.iter().copied().map(EdgeName::Outcome);
    let works = agent.is_some() && !on.decides();
    let continuation = works.then_some(EdgeName::Outcome(OutcomeName::NeedsContinuation));
    needed
        .chain(continuation)
        .chain(steps.iter().filter_map(|step| step.spec().edge))
        .find(|name| !has_edge(on, *name))
}

fn has_edge(on: &Edges, name: EdgeName) -> bool {
    on.named.contains_key(&name) || on.otherwise.is_some()
}

fn reachable(flow: &Flow) -> BTreeSet<&StateName> {
    let mut seen = BTreeSet::from([&flow.start]);
    let mut open = vec![&flow.start];
    while let Some(state) = open.pop() {
        for next in targets(&flow.states[state]) {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen
}

/// Whether a task in this state can come to an end. Who waits for a human can: a human may do anything.
fn leads_on(flow: &Flow, from: &StateName) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        match &flow.states[name] {
            State::End(End::Success | End::Failure | End::Cancelled) | State::Wait { .. } => return true,
            state => open.extend(targets(state).filter(|next| seen.insert(next))),
        }
    }
    false
}

fn targets(state: &State) -> impl Iterator<Item = &StateName> {
    let edges = match state {
        State::Work { on, .. } | State::Wait { on, .. } => Some(on),
        State::End(_) => None,
    };
    edges.into_iter().flat_map(|edges| {
        edges.iter().flat_map(|(_, edge)| {
            std::iter::once(&edge.to).chain(edge.limit.as_ref().map(|limit| &limit.then))
        })
    })
}
