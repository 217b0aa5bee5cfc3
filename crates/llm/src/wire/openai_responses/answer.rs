//! Answers in one piece.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::item::{Item, item_of, parse};
use crate::chat::{ChatResponse, FinishReason, Json, Part, Usage};
use crate::wire::content::{from_bytes, to_bytes, to_raw, without_end};
use crate::wire::openai_chat::answer::CREATED;

#[derive(Serialize, Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(default)]
    pub(super) id: Cow<'a, str>,
    #[serde(default)]
    object: Cow<'a, str>,
    #[serde(default)]
    created_at: u64,
    #[serde(default)]
    pub(super) status: Cow<'a, str>,
    #[serde(default)]
    pub(super) model: Cow<'a, str>,
    #[serde(default)]
    pub(super) output: Vec<Json>,
    #[serde(default)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(default)]
    pub(super) error: Option<Told>,
    #[serde(default)]
    usage: Option<UsageWire>,
}

#[derive(Serialize, Deserialize)]
struct Incomplete<'a> {
    reason: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    #[serde(default)]
    pub(super) code: Option<String>,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Serialize, Deserialize, Default)]
struct UsageWire {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
    #[serde(default)]
    total_tokens: u64,
}

#[derive(Serialize, Deserialize, Default)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: u64,
}

#[derive(Serialize, Deserialize, Default)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: u64,
}

pub(in crate::wire) fn read_response(body: &[u8]) -> Result<ChatResponse, serde_json::Error> {
    let wire: Answer<'_> = from_bytes(body)?;
    if !matches!(&*wire.status, "completed" | "incomplete") {
        return Err(without_end());
    }
    let (finish, usage) = (wire.finish(), wire.usage());
    let mut parts = Vec::new();
    for item in wire.output {
        parts.extend(parse(item)?.parts);
    }
    Ok(ChatResponse { id: wire.id.into_owned(), model: wire.model.into_owned(), parts, finish, usage })
}

impl Answer<'_> {
    /// The vendor says whether it is complete, and not why it stopped.
    pub(super) fn finish(&self) -> FinishReason {
        let incomplete = self.incomplete_details.as_ref().map(|details| &*details.reason);
        match incomplete {
            Some("max_output_tokens") => FinishReason::Length,
            Some("content_filter") => FinishReason::Refused,
            Some(other) => FinishReason::Other(other.to_owned()),
            None if self.output.iter().any(is_call) => FinishReason::ToolCalls,
            None => FinishReason::Stop,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        let Some(usage) = &self.usage else { return Usage::default() };
        let cached = usage.input_tokens_details.as_ref().map_or(0, |details| details.cached_tokens);
        let thought = usage.output_tokens_details.as_ref().map_or(0, |details| details.reasoning_tokens);
        Usage {
            input: usage.input_tokens.saturating_sub(cached),
            output: usage.output_tokens,
            cache_read: cached,
            cache_write: 0,
            thinking: thought,
        }
    }
}

fn is_call(item: &Json) -> bool {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow, default)]
        kind: Cow<'a, str>,
    }
    item.read::<Kind<'_>>().is_ok_and(|item| item.kind == "function_call" || item.kind == "custom_tool_call")
}

pub(in crate::wire) fn write_response(response: &ChatResponse) -> Vec<u8> {
    to_bytes(&whole(response))
}

pub(super) fn whole(response: &ChatResponse) -> Answer<'_> {
    let reason = match &response.finish {
        FinishReason::Length => Some("max_output_tokens".into()),
        FinishReason::Refused => Some("content_filter".into()),
        FinishReason::Other(other) => Some(Cow::Borrowed(other.as_str())),
        FinishReason::Stop | FinishReason::StopText | FinishReason::ToolCalls => None,
    };
    let prompt = response.usage.input + response.usage.cache_read + response.usage.cache_write;
    Answer {
        status: if reason.is_some() { "incomplete".into() } else { "completed".into() },
        output: items(response).map(|(item, _)| item.json()).collect(),
        incomplete_details: reason.map(|reason| Incomplete { reason }),
        usage: Some(UsageWire {
            input_tokens: prompt,
            input_tokens_details: Some(InputDetails { cached_tokens: response.usage.cache_read }),
            output_tokens: response.usage.output,
            output_tokens_details: Some(OutputDetails { reasoning_tokens: response.usage.thinking }),
            total_tokens: prompt + response.usage.output,
        }),
        ..beginning(response)
    }
}

/// An answer of which nothing was said yet.
pub(super) fn beginning(response: &ChatResponse) -> Answer<'_> {
    Answer {
        id: Cow::Borrowed(&response.id),
        object: "response".into(),
        created_at: CREATED,
        status: "in_progress".into(),
        model: Cow::Borrowed(&response.model),
        output: Vec::new(),
        incomplete_details: None,
        error: None,
        usage: None,
    }
}

/// An item as it is written.
pub(super) enum Said<'a> {
    Item(Box<Item<'a>>),
    /// Of a kind that we do not know, as it came.
    Opaque(&'a Json),
}

impl Said<'_> {
    pub(super) fn json(&self) -> Json {
        match self {
            Self::Item(item) => to_raw(item).into(),
            Self::Opaque(json) => (*json).clone(),
        }
    }
}

/// The items, each with the part that it is made of. Items have ids of their own; these follow from the answer's.
pub(super) fn items(response: &ChatResponse) -> impl Iterator<Item = (Said<'_>, &Part)> {
    let stem = response.id.split_once('_').map_or(response.id.as_str(), |(_, stem)| stem);
    response.parts.iter().enumerate().filter_map(move |(number, part)| {
        let prefix = match part {
            Part::Thinking(_) => "rs",
            Part::ToolCall(_) => "fc",
            Part::Text(_) => "msg",
            Part::Opaque(json) => return Some((Said::Opaque(json), part)),
            Part::Media(_) | Part::ToolResult(_) => return None,
        };
        let mut item = item_of(part);
        item.status = Some("completed".into());
        item.id = item.id.or_else(|| Some(Cow::Owned(format!("{prefix}_{stem}_{number}"))));
        Some((Said::Item(Box::new(item)), part))
    })
}
