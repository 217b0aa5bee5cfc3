//! Answers event by event.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::answer::{Answer, UsageWire, beginning, finish_word, read_finish};
use super::block::{block_json, part_of};
use crate::chat::{ChatResponse, Delta, Json, Part, Text, Thinking, ToolCall, Usage};
use crate::sse::{Encoder, Event};
use crate::wire::content::{Raw, object_of, pieces, some};
use crate::wire::{WireError, malformed};

/// All kinds of events in one: which fields are there depends on `kind`.
#[derive(Serialize, Deserialize, Default)]
struct EventWire<'a> {
    #[serde(rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    message: Option<Answer<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    content_block: Option<Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<DeltaWire<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageWire>,
    #[serde(skip_serializing)]
    error: Option<Told>,
}

#[derive(Serialize, Deserialize, Default)]
struct DeltaWire<'a> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_json: Option<Cow<'a, str>>,
    #[serde(skip_serializing)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct MessageDelta<'a> {
    r#type: &'static str,
    delta: Ending<'a>,
    usage: UsageWire,
}

#[derive(Serialize)]
struct Ending<'a> {
    stop_reason: Cow<'a, str>,
    stop_sequence: Option<&'a str>,
}

#[derive(Deserialize)]
struct Told {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

#[derive(Debug, Default)]
pub(in crate::wire) struct Reader {
    usage: Usage,
    finish: Option<crate::chat::FinishReason>,
}

impl Reader {
    pub(in crate::wire) fn push(
        &mut self,
        event: &Event,
        each: &mut dyn FnMut(Delta),
    ) -> Result<(), WireError> {
        let wire: EventWire<'_> = serde_json::from_str(&event.data).map_err(malformed)?;
        let index = wire.index.unwrap_or_default();
        match &*wire.kind {
            "message_start" => {
                if let Some(message) = wire.message {
                    self.usage = message.usage.over(self.usage);
                    let (id, model) = (message.id.into_owned(), message.model.into_owned());
                    each(Delta::Started { id, model });
                }
            }
            "content_block_start" => {
                if let Some(block) = wire.content_block {
                    each(Delta::PartStarted { index, part: part_of(&block).map_err(malformed)? });
                }
            }
            "content_block_delta" => wire.delta.into_iter().for_each(|delta| delta.tell(index, each)),
            "message_delta" => {
                self.usage = wire.usage.unwrap_or_default().over(self.usage);
                let reason = wire.delta.and_then(|delta| delta.stop_reason);
                self.finish = reason.map(|reason| read_finish(&reason)).or(self.finish.take());
            }
            "message_stop" => {
                each(Delta::Usage(self.usage));
                each(Delta::Finished(self.finish.take().unwrap_or(crate::chat::FinishReason::Stop)));
            }
            "error" => {
                let told = wire.error.unwrap_or(Told { kind: String::new(), message: event.data.clone() });
                return Err(WireError::BrokenOff { kind: told.kind, message: told.message });
            }
            _ => {}
        }
        Ok(())
    }
}

impl DeltaWire<'_> {
    fn tell(self, index: usize, each: &mut dyn FnMut(Delta)) {
        if let Some(text) = self.text.or(self.thinking).or(self.partial_json) {
            each(Delta::More { index, text: text.into_owned() });
        }
        if let Some(signature) = self.signature {
            each(Delta::Signature { index, text: signature.into_owned() });
        }
    }
}

pub(in crate::wire) fn write(response: &ChatResponse, piece: usize) -> Encoder {
    let mut events = Encoder::default();
    let mut message = beginning(response);
    message.usage.output_tokens = Some(1);
    events.named("message_start", &EventWire { message: Some(message), ..EventWire::kind("message_start") });
    for (index, part) in response.parts.iter().enumerate() {
        write_part(&mut events, index, part, piece);
    }
    let ending = Ending { stop_reason: finish_word(&response.finish), stop_sequence: None };
    let usage = UsageWire::of(response.usage);
    events.named("message_delta", &MessageDelta { r#type: "message_delta", delta: ending, usage });
    events.named("message_stop", &EventWire::kind("message_stop"));
    events
}

impl EventWire<'static> {
    fn kind(kind: &'static str) -> Self {
        Self { kind: kind.into(), ..Self::default() }
    }
}

fn write_part(events: &mut Encoder, index: usize, part: &Part, piece: usize) {
    let start = |events: &mut Encoder, block: Json| {
        let event = EventWire {
            index: Some(index),
            content_block: Some(block.into()),
            ..EventWire::kind("content_block_start")
        };
        events.named("content_block_start", &event);
    };
    let more = |events: &mut Encoder, kind: &'static str, fill: DeltaWire<'_>| {
        let delta = Some(DeltaWire { kind: Some(kind.into()), ..fill });
        let event = EventWire { index: Some(index), delta, ..EventWire::default() };
        events.named("content_block_delta", &EventWire { kind: "content_block_delta".into(), ..event });
    };
    start(events, empty_block(part));
    match part {
        Part::Text(Text { text, .. }) => {
            for text in pieces(text, piece) {
                more(events, "text_delta", DeltaWire { text: some(text), ..DeltaWire::default() });
            }
        }
        Part::Thinking(Thinking { text, signature, redacted: false, .. }) => {
            for text in pieces(text, piece) {
                more(events, "thinking_delta", DeltaWire { thinking: some(text), ..DeltaWire::default() });
            }
            let signature = some(signature.as_deref().unwrap_or_default());
            more(events, "signature_delta", DeltaWire { signature, ..DeltaWire::default() });
        }
        Part::ToolCall(call) => {
            let input = object_of(&call.arguments);
            for text in pieces(input.as_str(), piece) {
                let partial_json = some(text);
                more(events, "input_json_delta", DeltaWire { partial_json, ..DeltaWire::default() });
            }
        }
        Part::Thinking(_) | Part::Media(_) | Part::ToolResult(_) | Part::Opaque(_) => {}
    }
    let event = EventWire { index: Some(index), ..EventWire::kind("content_block_stop") };
    events.named("content_block_stop", &event);
}

/// The block as it begins: what follows in pieces is empty.
fn empty_block(part: &Part) -> Json {
    let empty = match part {
        Part::Text(_) => Part::text(""),
        Part::Thinking(thinking) if !thinking.redacted => Part::Thinking(Thinking::default()),
        Part::ToolCall(call) => {
            let arguments = crate::chat::Arguments::Json(Json::empty_object());
            Part::ToolCall(ToolCall { arguments, ..call.clone() })
        }
        other => other.clone(),
    };
    block_json(&empty)
}
