//! Answers, in one piece and piece by piece: a stream is a sequence of answers. Errors.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Content;
use super::part::{Names, PartWire, read_part, write_part};
use crate::chat::{ChatResponse, Delta, FinishReason, Json, Part, Text, Thinking, Usage};
use crate::sse::{Encoder, Event};
use crate::wire::content::{from_bytes, pieces, some, to_bytes, to_raw, without_end};
use crate::wire::{WireError, malformed};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    #[serde(default)]
    candidates: Vec<Candidate<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<UsageWire>,
    #[serde(default)]
    model_version: Cow<'a, str>,
    #[serde(default)]
    response_id: Cow<'a, str>,
    /// A question that is not answered at all has no candidates.
    #[serde(skip_serializing)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(skip_serializing)]
    error: Option<Told>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default = "nothing")]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    index: u32,
}

fn nothing<'a>() -> Content<'a> {
    Content { role: None, parts: Vec::new() }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
struct UsageWire {
    #[serde(default)]
    prompt_token_count: u64,
    #[serde(default)]
    candidates_token_count: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    thoughts_token_count: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    cached_content_token_count: u64,
    #[serde(default)]
    total_token_count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
}

impl UsageWire {
    fn of(usage: Usage) -> Self {
        let prompt = usage.input + usage.cache_read + usage.cache_write;
        Self {
            prompt_token_count: prompt,
            candidates_token_count: usage.output.saturating_sub(usage.thinking),
            thoughts_token_count: usage.thinking,
            cached_content_token_count: usage.cache_read,
            total_token_count: prompt + usage.output,
        }
    }

    fn read(&self) -> Usage {
        Usage {
            input: self.prompt_token_count.saturating_sub(self.cached_content_token_count),
            output: self.candidates_token_count.saturating_add(self.thoughts_token_count),
            cache_read: self.cached_content_token_count,
            cache_write: 0,
            thinking: self.thoughts_token_count,
        }
    }
}

pub(in crate::wire) fn read_response(body: &[u8]) -> Result<ChatResponse, serde_json::Error> {
    let wire: Answer<'_> = from_bytes(body)?;
    let (mut parts, mut reason) =
        (Vec::new(), wire.prompt_feedback.and_then(|feedback| feedback.block_reason));
    if let Some(candidate) = wire.candidates.into_iter().next() {
        let mut names = Names::default();
        parts.extend(candidate.content.parts.into_iter().map(|part| read_part(part, &mut names)));
        reason = candidate.finish_reason.or(reason);
    }
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let finish = read_finish(&reason.ok_or_else(without_end)?, calls);
    Ok(ChatResponse {
        id: wire.response_id.into_owned(),
        model: wire.model_version.into_owned(),
        parts,
        finish,
        usage: wire.usage_metadata.map(|usage| usage.read()).unwrap_or_default(),
    })
}

/// The vendor stops for calls as for the end.
fn read_finish(reason: &str, calls: bool) -> FinishReason {
    match reason {
        "STOP" if calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY" | "PROHIBITED_CONTENT" | "BLOCKLIST" => FinishReason::Refused,
        other => FinishReason::Other(other.to_owned()),
    }
}

fn finish_word(finish: &FinishReason) -> Cow<'_, str> {
    match finish {
        FinishReason::Stop | FinishReason::StopText | FinishReason::ToolCalls => "STOP".into(),
        FinishReason::Length => "MAX_TOKENS".into(),
        FinishReason::Refused => "SAFETY".into(),
        FinishReason::Other(other) => Cow::Borrowed(other),
    }
}

/// What the model says; blocks of other vendors it does not.
fn said(response: &ChatResponse) -> impl Iterator<Item = &Part> {
    response.parts.iter().filter(|part| !matches!(part, Part::Opaque(_) | Part::ToolResult(_)))
}

fn answer<'a>(response: &'a ChatResponse, parts: Vec<PartWire<'a>>, is_last: bool) -> Answer<'a> {
    let content = Content { role: some("model"), parts };
    let finish_reason = is_last.then(|| finish_word(&response.finish));
    Answer {
        candidates: vec![Candidate { content, finish_reason, index: 0 }],
        usage_metadata: is_last.then(|| UsageWire::of(response.usage)),
        model_version: Cow::Borrowed(&response.model),
        response_id: Cow::Borrowed(&response.id),
        prompt_feedback: None,
        error: None,
    }
}

pub(in crate::wire) fn write_response(response: &ChatResponse) -> Vec<u8> {
    to_bytes(&answer(response, said(response).map(write_part).collect(), true))
}

pub(in crate::wire) fn write_stream(response: &ChatResponse, piece: usize) -> Encoder {
    let mut events = Encoder::default();
    let mut tell = |part| events.plain(&answer(response, vec![part], false));
    for part in said(response) {
        let (text, signature) = match part {
            Part::Text(Text { text, signature }) | Part::Thinking(Thinking { text, signature, .. }) => {
                (text, signature)
            }
            other => {
                tell(write_part(other));
                continue;
            }
        };
        let thought = matches!(part, Part::Thinking(_));
        for text in pieces(text, piece) {
            tell(PartWire::words(text, thought));
        }
        if let Some(signature) = signature {
            tell(PartWire { thought_signature: some(signature), ..PartWire::words("", thought) });
        }
    }
    events.plain(&answer(response, vec![PartWire::words("", false)], true));
    events
}

/// Texts of one kind that follow each other are one part.
#[derive(Debug, Default)]
pub(in crate::wire) struct Reader {
    begun: bool,
    parts: usize,
    /// The text that goes on: whether it is thought.
    open: Option<bool>,
    calls: bool,
    names: Names,
}

impl Reader {
    pub(in crate::wire) fn push(
        &mut self,
        event: &Event,
        each: &mut dyn FnMut(Delta),
    ) -> Result<(), WireError> {
        let wire: Answer<'_> = serde_json::from_str(&event.data).map_err(malformed)?;
        if let Some(told) = wire.error {
            return Err(WireError::BrokenOff { kind: told.status, message: told.message });
        }
        if !self.begun {
            self.begun = true;
            let (id, model) = (wire.response_id.into_owned(), wire.model_version.into_owned());
            each(Delta::Started { id, model });
        }
        let blocked = wire.prompt_feedback.and_then(|feedback| feedback.block_reason);
        let mut finish = blocked.map(Cow::into_owned);
        for candidate in wire.candidates.into_iter().filter(|candidate| candidate.index == 0) {
            for part in candidate.content.parts {
                let part = read_part(part, &mut self.names);
                self.take(part, each);
            }
            finish = candidate.finish_reason.map(Cow::into_owned).or(finish);
        }
        if let Some(usage) = wire.usage_metadata {
            each(Delta::Usage(usage.read()));
        }
        if let Some(reason) = finish {
            each(Delta::Finished(read_finish(&reason, self.calls)));
        }
        Ok(())
    }

    fn take(&mut self, part: Part, each: &mut dyn FnMut(Delta)) {
        let (text, signature, empty) = match part {
            Part::Text(Text { text, signature }) => (text, signature, Part::text("")),
            Part::Thinking(Thinking { text, signature, .. }) => {
                (text, signature, Part::Thinking(Thinking::default()))
            }
            other => {
                self.calls |= matches!(other, Part::ToolCall(_));
                self.open = None;
                each(Delta::PartStarted { index: self.parts, part: other });
                self.parts += 1;
                return;
            }
        };
        if text.is_empty() && signature.is_none() {
            return;
        }
        let thought = matches!(empty, Part::Thinking(_));
        if self.open != Some(thought) {
            self.open = Some(thought);
            each(Delta::PartStarted { index: self.parts, part: empty });
            self.parts += 1;
        }
        let index = self.parts - 1;
        if !text.is_empty() {
            each(Delta::More { index, text });
        }
        if let Some(text) = signature {
            each(Delta::Signature { index, text });
        }
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorWire<'a>,
}

#[derive(Serialize)]
struct ErrorWire<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
}

pub(in crate::wire) fn error(status: u16, message: &str) -> Json {
    let word = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500..=599 => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    to_raw(&ErrorBody { error: ErrorWire { code: status, message, status: word } }).into()
}
