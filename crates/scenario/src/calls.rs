//! What each agent does, call by call. Unused and missing calls are problems.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use rehearsal_core::{AgentName, TaskId};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::scenario::{CallScript, RoleFile};

/// A role: its calls, or its calls and the agent CLI it plays.
#[derive(Debug, Clone, Default)]
pub struct RoleScript(pub RoleFile);

impl<'de> Deserialize<'de> for RoleScript {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RoleVisitor;
        impl<'de> Visitor<'de> for RoleVisitor {
            type Value = RoleScript;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of calls, or `{ as: AGENT, calls: […] }`")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RoleScript, A::Error> {
                let calls = Vec::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
                Ok(RoleScript(RoleFile { calls, ..RoleFile::default() }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RoleScript, A::Error> {
                RoleFile::deserialize(de::value::MapAccessDeserializer::new(map)).map(RoleScript)
            }
        }
        deserializer.deserialize_any(RoleVisitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for RoleScript {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RoleScript".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let calls = generator.subschema_for::<Vec<CallScript>>();
        let whole = generator.subschema_for::<RoleFile>();
        schemars::json_schema!({ "anyOf": [calls, whole] })
    }
}

#[derive(Debug)]
pub(crate) struct Calls {
    left: Mutex<BTreeMap<AgentName, Vec<Option<CallScript>>>>,
}

/// A call, and its place in the scenario: `implementer`, call 2.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) number: usize,
    pub(crate) script: CallScript,
}

impl Calls {
    pub(crate) fn of(agents: &BTreeMap<AgentName, RoleScript>) -> Self {
        let left = agents
            .iter()
            .map(|(name, role)| (name.clone(), role.0.calls.iter().cloned().map(Some).collect()));
        Self { left: Mutex::new(left.collect()) }
    }

    /// The next call of an agent for a task; none if its script is exhausted.
    pub(crate) fn next(&self, agent: &AgentName, task: &TaskId) -> Option<Call> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = left.get_mut(agent)?;
        let fits = |call: &Option<CallScript>| {
            call.as_ref().is_some_and(|call| call.task.as_ref().is_none_or(|own| own == task))
        };
        let at = calls.iter().position(fits)?;
        let script = calls[at].take()?;
        Some(Call { number: at + 1, script })
    }

    /// Describes the calls that were never used.
    pub(crate) fn unused(&self) -> Vec<String> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = left.iter().flat_map(|(agent, calls)| {
            let numbers = calls.iter().enumerate().filter(|(_, call)| call.is_some());
            numbers.map(move |(at, _)| format!("call {} of agent `{agent}` was never asked for", at + 1))
        });
        unused.collect()
    }
}
