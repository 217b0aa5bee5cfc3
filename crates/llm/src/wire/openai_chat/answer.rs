//! Answers in one piece, and errors.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::message::{MessageWire, read_parts, write_message};
use crate::chat::{ChatResponse, FinishReason, Json, Role, Usage};
use crate::wire::content::{from_bytes, to_bytes, to_raw, without_end};

/// Answers carry the second in which they were made. Ours do not change from run to run.
pub(in crate::wire) const CREATED: u64 = 1_700_000_000;

#[derive(Serialize, Deserialize)]
struct Answer<'a> {
    #[serde(default)]
    id: Cow<'a, str>,
    #[serde(default)]
    object: Cow<'a, str>,
    #[serde(default)]
    created: u64,
    #[serde(default)]
    model: Cow<'a, str>,
    #[serde(default, borrow)]
    choices: Vec<Choice<'a>>,
    #[serde(default)]
    usage: Option<UsageWire>,
}

#[derive(Serialize, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u32,
    #[serde(default, borrow)]
    message: MessageWire<'a>,
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize, Default, Clone, Copy)]
pub(super) struct UsageWire {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    total_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Serialize, Deserialize, Default, Clone, Copy)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Serialize, Deserialize, Default, Clone, Copy)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl UsageWire {
    pub(super) fn of(usage: Usage) -> Self {
        let prompt = usage.input + usage.cache_read + usage.cache_write;
        Self {
            prompt_tokens: prompt,
            completion_tokens: usage.output,
            total_tokens: prompt + usage.output,
            prompt_tokens_details: Some(PromptDetails { cached_tokens: Some(usage.cache_read) }),
            completion_tokens_details: Some(CompletionDetails { reasoning_tokens: Some(usage.thinking) }),
        }
    }

    pub(super) fn read(self) -> Usage {
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0);
        let thought = self.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        Usage {
            input: self.prompt_tokens.saturating_sub(cached),
            output: self.completion_tokens,
            cache_read: cached,
            cache_write: 0,
            thinking: thought.unwrap_or(0),
        }
    }
}

pub(in crate::wire) fn read_response(body: &[u8]) -> Result<ChatResponse, serde_json::Error> {
    let wire: Answer<'_> = from_bytes(body)?;
    let choice = wire.choices.into_iter().next().ok_or_else(without_end)?;
    let finish = choice.finish_reason.as_deref().map(read_finish).ok_or_else(without_end)?;
    Ok(ChatResponse {
        id: wire.id.into_owned(),
        model: wire.model.into_owned(),
        parts: read_parts(choice.message)?,
        finish,
        usage: wire.usage.map(UsageWire::read).unwrap_or_default(),
    })
}

pub(in crate::wire) fn write_response(response: &ChatResponse) -> Vec<u8> {
    let message = write_message(Role::Assistant, &response.parts);
    let finish_reason = Some(finish_word(&response.finish));
    to_bytes(&Answer {
        id: Cow::Borrowed(&response.id),
        object: "chat.completion".into(),
        created: CREATED,
        model: Cow::Borrowed(&response.model),
        choices: vec![Choice { index: 0, message, finish_reason }],
        usage: Some(UsageWire::of(response.usage)),
    })
}

pub(super) fn read_finish(reason: &str) -> FinishReason {
    match reason {
        "stop" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::Refused,
        other => FinishReason::Other(other.to_owned()),
    }
}

pub(super) fn finish_word(finish: &FinishReason) -> Cow<'_, str> {
    match finish {
        FinishReason::Stop | FinishReason::StopText => "stop".into(),
        FinishReason::ToolCalls => "tool_calls".into(),
        FinishReason::Length => "length".into(),
        FinishReason::Refused => "content_filter".into(),
        FinishReason::Other(other) => Cow::Borrowed(other),
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: Told<'a>,
}

#[derive(Serialize)]
struct Told<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: Option<&'static str>,
}

pub(in crate::wire) fn error(status: u16, message: &str) -> Json {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500..=599 => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    to_raw(&ErrorBody { error: Told { message, r#type: kind, param: None, code } }).into()
}
