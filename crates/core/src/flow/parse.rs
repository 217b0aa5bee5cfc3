//! From YAML to a checked [`Flow`].

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use indexmap::IndexMap;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};

use super::check::{Names, check};
use super::step::{STEPS, StepFile, Unreadable};
use super::{Edge, EdgeName, Edges, End, Flow, Limit, State, Step};
use crate::config::HumanDuration;
use crate::source::nearest;
use crate::yaml::{self, Entries, Spanned};
use crate::{AgentName, FlowName, Place, SourceError, StateName};

/// A flow file as people write it. Used through [`parse`]; public for its JSON Schema.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FlowFile {
    /// The flow's name.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    name: Spanned<String>,
    /// The state in which tasks begin.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    start: Spanned<String>,
    /// The states, by name.
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, StateFile>"))]
    states: Entries<String, Spanned<StateFile>>,
}

/// A state: one of `agent`, `wait` and `end`, or `steps` alone.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct StateFile {
    /// The agent that works in it.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    #[serde(default)]
    agent: Option<Spanned<String>>,
    /// What the engine does after the agent.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Step>>"))]
    #[serde(default)]
    steps: Vec<Spanned<StepFile>>,
    /// Where each outcome leads.
    #[cfg_attr(feature = "schema", schemars(with = "Option<std::collections::BTreeMap<String, EdgeFile>>"))]
    #[serde(default)]
    on: Entries<String, Spanned<EdgeFile>>,
    /// Where every outcome that has no edge of its own leads.
    #[cfg_attr(feature = "schema", schemars(with = "Option<EdgeFile>"))]
    #[serde(default)]
    otherwise: Option<Spanned<EdgeFile>>,
    /// What it waits for.
    #[serde(default)]
    wait: Option<WaitFile>,
    /// With `wait: time`: for how long.
    #[serde(default)]
    r#for: Option<HumanDuration>,
    /// How it ends.
    #[serde(default)]
    end: Option<EndFile>,
    /// How many tasks may be in it before no more work is begun that would go there.
    #[serde(default)]
    room: Option<NonZeroU32>,
}

/// What a state can wait for.
#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum WaitFile {
    /// A person.
    Human,
    /// So long as `for` says.
    Time,
    /// The forge's checks of what was pushed.
    Ci,
}

#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum EndFile {
    Success,
    Failure,
}

/// An edge: a state's name, or `{ to, at_most, then }`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
enum EdgeFile {
    /// The state it leads to.
    Plain(String),
    /// The same with a limit.
    Limited(LimitedEdge),
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct LimitedEdge {
    /// The state it leads to.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    to: Spanned<String>,
    /// How often it may be taken.
    #[serde(default)]
    at_most: Option<u32>,
    /// The state it leads to after that.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    #[serde(default)]
    then: Option<Spanned<String>>,
}

/// Reads and checks a flow.
pub fn parse(text: &str) -> Result<Flow, SourceError> {
    if says_nothing(text) {
        return Err(SourceError::at(None, "there is no flow in this file").hint(
            "a flow has `name`, `start` and `states`: `rehearsal flow graph pull-request` draws one, \
             `rehearsal schema flow` has all it can say",
        ));
    }
    let file: FlowFile = yaml::from_str(text)?;
    let mut names = Names::default();
    let mut states = IndexMap::new();
    let mut rooms = BTreeMap::new();
    for (key, state) in file.states.0 {
        let name = state_name(&key)?;
        names.states.insert(name.clone(), key.place);
        rooms.extend(state.value.room.map(|room| (name.clone(), room.get())));
        let state = read_state(&name, state, &mut names)?;
        states.insert(name, state);
    }
    let start = known_state(&file.start, &states)?;
    for (written, place) in &names.mentioned {
        if !states.contains_key(written) {
            return Err(unknown_state(written.as_str(), *place, &states));
        }
    }
    let flow = Flow {
        name: FlowName::new(file.name.value.clone())
            .map_err(|error| SourceError::at(file.name.place, error.to_string()))?,
        version: version_of(text),
        source: text.to_owned(),
        start,
        states,
        rooms,
        agents: std::mem::take(&mut names.agents),
    };
    check(&flow, &names)?;
    Ok(flow)
}

/// A file that somebody made and has not written yet.
fn says_nothing(text: &str) -> bool {
    let is_blank = |line: &str| line.is_empty() || line.starts_with('#') || line == "---";
    text.lines().all(|line| is_blank(line.trim()))
}

/// Twelve hexadecimal digits are plenty to tell the versions of one flow apart.
fn version_of(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn state_name(written: &Spanned<String>) -> Result<StateName, SourceError> {
    StateName::new(written.value.clone()).map_err(|error| SourceError::at(written.place, error.to_string()))
}

fn known_state(
    written: &Spanned<String>,
    states: &IndexMap<StateName, State>,
) -> Result<StateName, SourceError> {
    let name = state_name(written)?;
    if states.contains_key(&name) {
        return Ok(name);
    }
    Err(unknown_state(&written.value, written.place, states))
}

fn unknown_state(written: &str, place: Option<Place>, states: &IndexMap<StateName, State>) -> SourceError {
    let error = SourceError::at(place, format!("unknown state `{written}`"));
    match nearest(written, states.keys().map(StateName::as_str)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => {
            let known: Vec<_> = states.keys().map(StateName::as_str).collect();
            error.hint(format!("known states: {}", known.join(", ")))
        }
    }
}

fn read_state(name: &StateName, state: Spanned<StateFile>, names: &mut Names) -> Result<State, SourceError> {
    let place = state.place;
    let file = state.value;
    if file.r#for.is_some() && !matches!(file.wait, Some(WaitFile::Time)) {
        return Err(SourceError::at(
            place,
            format!("state `{name}` has `for`, which only `wait: time` takes"),
        ));
    }
    let agent_place = file.agent.as_ref().map(|agent| agent.place);
    match (file.agent, file.wait, file.end) {
        (Some(agent), None, None) => {
            let on = read_edges(file.on, file.otherwise, names)?;
            let agent_name = AgentName::new(agent.value.clone())
                .map_err(|error| SourceError::at(agent_place.flatten(), error.to_string()))?;
            names.agents.push((agent_name.clone(), agent_place.flatten()));
            Ok(State::Work { agent: Some(agent_name), steps: read_steps(&file.steps)?, on })
        }
        (None, None, None) if !file.steps.is_empty() => {
            let on = read_edges(file.on, file.otherwise, names)?;
            Ok(State::Work { agent: None, steps: read_steps(&file.steps)?, on })
        }
        (None, Some(wait), None) => {
            let on = read_edges(file.on, file.otherwise, names)?;
            let steps = match (wait, file.r#for) {
                (WaitFile::Human, _) => return Ok(State::Wait { on }),
                (WaitFile::Ci, _) => vec![Step::CheckCi],
                (WaitFile::Time, Some(time)) => vec![Step::Pause(time)],
                (WaitFile::Time, None) => {
                    return Err(SourceError::at(place, format!("state `{name}` waits for no time"))
                        .hint("say for how long: `wait: time` with `for: 2h`"));
                }
            };
            Ok(State::Work { agent: None, steps, on })
        }
        (None, None, Some(end)) => Ok(State::End(match end {
            EndFile::Success => End::Success,
            EndFile::Failure => End::Failure,
        })),
        _ => Err(SourceError::at(
            place,
            format!("state `{name}` must have exactly one of `agent`, `wait` and `end`, or only `steps`"),
        )
        .hint("a state works (an agent, then steps), waits (human, time, ci), or ends (success, failure)")),
    }
}

fn read_steps(steps: &[Spanned<StepFile>]) -> Result<Vec<Step>, SourceError> {
    steps.iter().map(read_step).collect()
}

fn read_step(step: &Spanned<StepFile>) -> Result<Step, SourceError> {
    let place = step.place;
    let StepFile { name, text } = &step.value;
    let Some(spec) = STEPS.iter().find(|spec| spec.name == name) else {
        return Err(unknown(name, "step", place, Step::names()));
    };
    spec.read(text.as_deref()).map_err(|error| match error {
        Unreadable::Missing(what) => SourceError::at(place, format!("step `{name}` needs {what}"))
            .hint(format!("write `- {name}: TEXT`, or `{{ {name}: TEXT }}` in a list in brackets")),
        Unreadable::TakesNone => SourceError::at(place, format!("step `{name}` takes no text")),
        Unreadable::Parameter(problem) => SourceError::at(place, problem),
    })
}

fn read_edges(
    on: Entries<String, Spanned<EdgeFile>>,
    otherwise: Option<Spanned<EdgeFile>>,
    names: &mut Names,
) -> Result<Edges, SourceError> {
    let mut named = IndexMap::new();
    for (key, edge) in on.0 {
        if key.value == "otherwise" {
            return Err(SourceError::at(key.place, "`otherwise` is no outcome")
                .hint("it stands beside `on:`, not under it: `otherwise: STATE`"));
        }
        let name = EdgeName::all().find(|known| known.as_str() == key.value).ok_or_else(|| {
            unknown(&key.value, "outcome", key.place, EdgeName::all().map(EdgeName::as_str))
        })?;
        named.insert(name, read_edge(edge, names)?);
    }
    let otherwise = otherwise.map(|edge| read_edge(edge, names)).transpose()?;
    Ok(Edges { named, otherwise })
}

fn read_edge(edge: Spanned<EdgeFile>, names: &mut Names) -> Result<Edge, SourceError> {
    let place = edge.place;
    match edge.value {
        EdgeFile::Plain(to) => {
            let to = StateName::new(to).map_err(|error| SourceError::at(place, error.to_string()))?;
            names.mentioned.push((to.clone(), place));
            Ok(Edge { to, limit: None })
        }
        EdgeFile::Limited(LimitedEdge { to, at_most, then }) => {
            let target = names.mention(&to)?;
            let limit = match (at_most, then) {
                (Some(at_most), Some(then)) => Some(Limit { at_most, then: names.mention(&then)? }),
                (None, None) => None,
                (Some(_), None) => {
                    return Err(SourceError::at(place, "`at_most` needs a `then`")
                        .hint("say which state follows when the edge was taken that often: `then: failed`"));
                }
                (None, Some(_)) => return Err(SourceError::at(place, "`then` needs an `at_most`")),
            };
            Ok(Edge { to: target, limit })
        }
    }
}

impl Names {
    fn mention(&mut self, written: &Spanned<String>) -> Result<StateName, SourceError> {
        let name = state_name(written)?;
        self.mentioned.push((name.clone(), written.place));
        Ok(name)
    }
}

fn unknown<'a>(
    written: &str,
    what: &str,
    place: Option<Place>,
    known: impl Iterator<Item = &'a str> + Clone,
) -> SourceError {
    let error = SourceError::at(place, format!("unknown {what} `{written}`"));
    match nearest(written, known.clone()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("known {what}s: {}", known.collect::<Vec<_>>().join(", "))),
    }
}

impl<'de> Deserialize<'de> for EdgeFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EdgeVisitor;
        impl<'de> Visitor<'de> for EdgeVisitor {
            type Value = EdgeFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a state's name, or `{ to: STATE, at_most: N, then: STATE }`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<EdgeFile, E> {
                Ok(EdgeFile::Plain(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<EdgeFile, A::Error> {
                LimitedEdge::deserialize(de::value::MapAccessDeserializer::new(map)).map(EdgeFile::Limited)
            }
        }
        deserializer.deserialize_any(EdgeVisitor)
    }
}
