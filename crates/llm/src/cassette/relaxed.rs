//! What may differ between a request and its recording: nothing, or a ladder of more and more.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::Piece;
use super::key::{CONVERSATIONS, Key};

/// How a player compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matching {
    /// The whole normalised request must match, and all must be played.
    #[default]
    Strict,
    /// Up to this rung, from the lowest on. Each use is reported.
    Relaxed(Rung),
}

/// How much may differ. Each rung allows what those before it allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Headers.
    Headers,
    /// Fields such as the model and the limits.
    Settings,
    /// The definitions of tools.
    Tools,
    /// The system's and the developer's instructions.
    Instructions,
    /// Texts: the same roles and the same tools called, in the same order.
    Texts,
    /// Everything: the next answer of the lane, whatever was asked.
    Everything,
}

/// The ladder, from below.
pub const LADDER: &[Rung] =
    &[Rung::Headers, Rung::Settings, Rung::Tools, Rung::Instructions, Rung::Texts, Rung::Everything];

impl Rung {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Settings => "settings",
            Self::Tools => "tools",
            Self::Instructions => "instructions",
            Self::Texts => "texts",
            Self::Everything => "everything",
        }
    }

    /// Whether a request matches its recording, if this much may differ.
    pub(crate) fn allows(self, recorded: &Key, asked: &Key) -> bool {
        let path = |key: &Key| key.target.split('?').next().map(str::to_owned);
        if recorded.method != asked.method || path(recorded) != path(asked) {
            return false;
        }
        if self == Self::Everything {
            return true;
        }
        let same_list = |name: &str, keep: &dyn Fn(&Piece) -> bool| {
            let of = |key: &Key| {
                key.lists.get(name).map(|list| {
                    list.iter().filter(|piece| keep(piece)).map(|piece| piece.digest).collect::<Vec<_>>()
                })
            };
            of(recorded) == of(asked)
        };
        let all = |_: &Piece| true;
        let settings =
            self >= Self::Settings || (same_fields(recorded, asked) && recorded.target == asked.target);
        let tools = self >= Self::Tools || same_list("tools", &all);
        let instructions =
            self >= Self::Instructions || (same_list("system", &all) && same_instructions(recorded, asked));
        let conversation = recorded.text == asked.text
            && CONVERSATIONS.iter().all(|name| match self {
                Self::Texts => outlines(recorded, name) == outlines(asked, name),
                Self::Instructions => same_list(name, &|piece| !is_instruction(piece)),
                _ => same_list(name, &all),
            });
        settings && tools && instructions && conversation
    }
}

/// Long fields that instruct.
const INSTRUCTIONS: &[&str] = &["system", "instructions", "systemInstruction", "system_instruction"];

fn same_fields(recorded: &Key, asked: &Key) -> bool {
    let of = |key: &Key| -> Vec<(String, String)> {
        let short = key.fields.iter().map(|(name, json)| (name.clone(), json.to_string()));
        let long = key.blobs.iter().map(|(name, piece)| (name.clone(), piece.json.to_string()));
        let mut all: Vec<_> =
            short.chain(long).filter(|(name, _)| !INSTRUCTIONS.contains(&name.as_str())).collect();
        all.sort();
        all
    };
    of(recorded) == of(asked)
}

fn same_instructions(recorded: &Key, asked: &Key) -> bool {
    INSTRUCTIONS.iter().all(|name| {
        recorded.fields.get(*name) == asked.fields.get(*name)
            && recorded.blobs.get(*name).map(|piece| piece.digest)
                == asked.blobs.get(*name).map(|piece| piece.digest)
    })
}

fn is_instruction(piece: &Piece) -> bool {
    let value: Value = serde_json::from_str(&piece.json).unwrap_or_default();
    matches!(value.get("role").and_then(Value::as_str), Some("system" | "developer"))
}

/// Who speaks, and which tools are called: the elements of a conversation without their texts.
fn outlines(key: &Key, list: &str) -> Option<Vec<String>> {
    let outline = |piece: &Piece| -> Option<String> {
        let value: Value = serde_json::from_str(&piece.json).ok()?;
        let mut out = String::new();
        outline_of(&value, &mut out);
        Some(out)
    };
    Some(
        key.lists
            .get(list)?
            .iter()
            .filter(|piece| !is_instruction(piece))
            .map(|piece| outline(piece).unwrap_or_default())
            .collect(),
    )
}

fn outline_of(value: &Value, out: &mut String) {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let call = value.get("function").or_else(|| value.get("functionCall"));
    for word in
        [text("role"), text("type").filter(|kind| *kind != "text"), text("name")].into_iter().flatten()
    {
        out.push_str(word);
        out.push(' ');
    }
    if let Some(call) = call {
        outline_of(call, out);
    }
    for list in ["content", "parts", "tool_calls"] {
        let items = value.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for item in items {
            outline_of(item, out);
        }
    }
}
