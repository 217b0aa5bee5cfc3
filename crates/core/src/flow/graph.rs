//! A flow as a picture.

use std::fmt::Write;

use super::{End, Flow, State};

/// The flow as a Mermaid state diagram.
pub fn mermaid(flow: &Flow) -> String {
    let mut text = String::from("stateDiagram-v2\n");
    let mut line = |indented: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    {indented}");
    };
    line(format!("[*] --> {}", id(flow.start.as_str())));
    for (name, state) in &flow.states {
        let this = id(name.as_str());
        match state {
            State::Work { agent, steps, on } => {
                let steps: String = steps.iter().map(|step| format!(" → {}", step.name())).collect();
                let agent = agent.as_ref().map_or("no agent", |agent| agent.as_str());
                line(format!("{this} : {name} ({agent}{steps})"));
                edges(&this, on, &mut line);
            }
            State::Wait { on } => {
                line(format!("{this} : {name} (waits for human)"));
                edges(&this, on, &mut line);
            }
            State::End(End::Success | End::Failure | End::Cancelled) => {
                line(format!("{this} --> [*]"));
            }
        }
    }
    text
}

fn edges(from: &str, on: &super::Edges, line: &mut impl FnMut(String)) {
    for (name, edge) in on.iter() {
        let name = name.map_or("otherwise", super::EdgeName::as_str);
        match &edge.limit {
            None => line(format!("{from} --> {} : {name}", id(edge.to.as_str()))),
            Some(limit) => {
                line(format!("{from} --> {} : {name}, at most {}", id(edge.to.as_str()), limit.at_most));
                line(format!("{from} --> {} : {name}, after that", id(limit.then.as_str())));
            }
        }
    }
}

/// Mermaid takes only letters, digits and underscores as ids, and some words are its own.
fn id(name: &str) -> String {
    format!("s_{}", name.replace(['-', '.'], "_"))
}
