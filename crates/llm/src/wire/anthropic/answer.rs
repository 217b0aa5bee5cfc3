//! Answers in one piece, and errors.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::block::{blocks_of, part_of};
use crate::chat::{ChatResponse, FinishReason, Json, Usage};
use crate::wire::content::{Raw, TextOr, from_bytes, to_bytes, to_raw, without_end};

#[derive(Serialize, Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(default)]
    pub(super) id: Cow<'a, str>,
    #[serde(rename = "type", default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    pub(super) role: Cow<'a, str>,
    #[serde(default)]
    pub(super) model: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) content: TextOr<Raw<'a>>,
    pub(super) stop_reason: Option<Cow<'a, str>>,
    pub(super) stop_sequence: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) usage: UsageWire,
}

/// All of them may be missing in what a stream sends later.
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
#[derive(Serialize, Deserialize, Default, Clone, Copy)]
pub(super) struct UsageWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_creation_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_tokens: Option<u64>,
}

impl UsageWire {
    pub(super) fn of(usage: Usage) -> Self {
        Self {
            input_tokens: Some(usage.input),
            cache_creation_input_tokens: Some(usage.cache_write),
            cache_read_input_tokens: Some(usage.cache_read),
            output_tokens: Some(usage.output),
        }
    }

    /// What is known now, on top of what was known before.
    pub(super) fn over(self, before: Usage) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(before.input),
            output: self.output_tokens.unwrap_or(before.output),
            cache_read: self.cache_read_input_tokens.unwrap_or(before.cache_read),
            cache_write: self.cache_creation_input_tokens.unwrap_or(before.cache_write),
            thinking: before.thinking,
        }
    }
}

pub(in crate::wire) fn read_response(body: &[u8]) -> Result<ChatResponse, serde_json::Error> {
    let wire: Answer<'_> = from_bytes(body)?;
    let reason = wire.stop_reason.ok_or_else(without_end)?;
    Ok(ChatResponse {
        id: wire.id.into_owned(),
        model: wire.model.into_owned(),
        parts: wire.content.into_parts(part_of)?,
        finish: read_finish(&reason),
        usage: wire.usage.over(Usage::default()),
    })
}

pub(in crate::wire) fn write_response(response: &ChatResponse) -> Vec<u8> {
    to_bytes(&Answer {
        content: TextOr::Many(blocks_of(&response.parts)),
        stop_reason: Some(finish_word(&response.finish)),
        ..beginning(response)
    })
}

/// An answer of which nothing was said yet.
pub(super) fn beginning(response: &ChatResponse) -> Answer<'_> {
    Answer {
        id: Cow::Borrowed(&response.id),
        kind: "message".into(),
        role: "assistant".into(),
        model: Cow::Borrowed(&response.model),
        content: TextOr::default(),
        stop_reason: None,
        stop_sequence: None,
        usage: UsageWire::of(response.usage),
    }
}

pub(super) fn read_finish(reason: &str) -> FinishReason {
    match reason {
        "end_turn" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" => FinishReason::Length,
        "stop_sequence" => FinishReason::StopText,
        "refusal" => FinishReason::Refused,
        other => FinishReason::Other(other.to_owned()),
    }
}

pub(super) fn finish_word(finish: &FinishReason) -> Cow<'_, str> {
    match finish {
        FinishReason::Stop => "end_turn".into(),
        FinishReason::ToolCalls => "tool_use".into(),
        FinishReason::Length => "max_tokens".into(),
        FinishReason::StopText => "stop_sequence".into(),
        FinishReason::Refused => "refusal".into(),
        FinishReason::Other(other) => Cow::Borrowed(other),
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    r#type: &'static str,
    error: Told<'a>,
}

#[derive(Serialize)]
struct Told<'a> {
    r#type: &'static str,
    message: &'a str,
}

pub(in crate::wire) fn error(status: u16, message: &str) -> Json {
    let kind = match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    };
    to_raw(&ErrorBody { r#type: "error", error: Told { r#type: kind, message } }).into()
}
