//! Answers chunk by chunk.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::answer::{CREATED, UsageWire, finish_word, read_finish};
use super::message::{CallWire, CustomCall, FunctionCall, write_call};
use crate::chat::{Arguments, ChatResponse, Delta, Part, Text, Thinking};
use crate::sse::{Encoder, Event};
use crate::wire::content::{list_or_null, pieces, some};
use crate::wire::{WireError, malformed};

const DONE: &str = "[DONE]";

#[derive(Serialize, Deserialize)]
struct Chunk<'a> {
    #[serde(default)]
    id: Cow<'a, str>,
    #[serde(default)]
    object: Cow<'a, str>,
    #[serde(default)]
    created: u64,
    #[serde(default)]
    model: Cow<'a, str>,
    #[serde(default, deserialize_with = "list_or_null")]
    choices: Vec<Choice<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<UsageWire>,
    #[serde(skip_serializing)]
    error: Option<Told>,
}

#[derive(Serialize, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u32,
    #[serde(default)]
    delta: DeltaWire<'a>,
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize, Default)]
struct DeltaWire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "list_or_null", skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallWire<'a>>,
}

#[derive(Deserialize)]
struct Told {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    message: String,
}

/// Chunks name calls by a number of their own, and texts not at all.
#[derive(Debug, Default)]
pub(in crate::wire) struct Reader {
    begun: bool,
    parts: usize,
    text: Option<usize>,
    thinking: Option<usize>,
    /// Our index for each of the vendor's.
    calls: Vec<(usize, usize)>,
}

impl Reader {
    pub(in crate::wire) fn push(
        &mut self,
        event: &Event,
        each: &mut dyn FnMut(Delta),
    ) -> Result<(), WireError> {
        if event.data.trim() == DONE {
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(&event.data).map_err(malformed)?;
        if let Some(told) = chunk.error {
            let kind = told.kind.unwrap_or_default();
            return Err(WireError::BrokenOff { kind, message: told.message });
        }
        if !self.begun {
            self.begun = true;
            each(Delta::Started { id: chunk.id.into_owned(), model: chunk.model.into_owned() });
        }
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.take(choice.delta, each);
            if let Some(reason) = choice.finish_reason {
                each(Delta::Finished(read_finish(&reason)));
            }
        }
        if let Some(usage) = chunk.usage {
            each(Delta::Usage(usage.read()));
        }
        Ok(())
    }

    fn take(&mut self, delta: DeltaWire<'_>, each: &mut dyn FnMut(Delta)) {
        if let Some(text) = delta.reasoning_content.filter(|text| !text.is_empty()) {
            let index = *self
                .thinking
                .get_or_insert_with(|| begin(&mut self.parts, Part::Thinking(Thinking::default()), each));
            each(Delta::More { index, text: text.into_owned() });
        }
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            let index = *self.text.get_or_insert_with(|| begin(&mut self.parts, Part::text(""), each));
            each(Delta::More { index, text: text.into_owned() });
        }
        for call in delta.tool_calls {
            self.take_call(call, each);
        }
    }

    fn take_call(&mut self, call: CallWire<'_>, each: &mut dyn FnMut(Delta)) {
        let number = call.index.unwrap_or_default();
        let known = self.calls.iter().find(|(known, _)| *known == number).map(|(_, index)| *index);
        let text = match (&call.function, &call.custom) {
            (Some(function), _) => function.arguments.clone().into_owned(),
            (None, Some(custom)) => custom.input.clone().into_owned(),
            (None, None) => String::new(),
        };
        let is_free = call.function.is_none() && call.custom.is_some();
        let index = known.unwrap_or_else(|| {
            let mut begun = call.read();
            begun.arguments =
                if is_free { Arguments::Text(String::new()) } else { Arguments::read(String::new()) };
            let index = begin(&mut self.parts, Part::ToolCall(begun), each);
            self.calls.push((number, index));
            index
        });
        if !text.is_empty() {
            each(Delta::More { index, text });
        }
    }
}

fn begin(parts: &mut usize, part: Part, each: &mut dyn FnMut(Delta)) -> usize {
    let index = *parts;
    *parts += 1;
    each(Delta::PartStarted { index, part });
    index
}

pub(in crate::wire) fn write(response: &ChatResponse, piece: usize) -> Encoder {
    let mut events = Encoder::default();
    let chunk = |choices, usage| Chunk {
        id: Cow::Borrowed(&response.id),
        object: "chat.completion.chunk".into(),
        created: CREATED,
        model: Cow::Borrowed(&response.model),
        choices,
        usage,
        error: None,
    };
    let mut tell = |delta, finish_reason| {
        events.plain(&chunk(vec![Choice { index: 0, delta, finish_reason }], None));
    };
    tell(DeltaWire { role: some("assistant"), content: some(""), ..DeltaWire::default() }, None);
    let mut calls = 0;
    for part in &response.parts {
        match part {
            Part::Text(Text { text, .. }) => {
                for text in pieces(text, piece) {
                    tell(DeltaWire { content: some(text), ..DeltaWire::default() }, None);
                }
            }
            Part::Thinking(thinking) => {
                for text in pieces(&thinking.text, piece) {
                    tell(DeltaWire { reasoning_content: some(text), ..DeltaWire::default() }, None);
                }
            }
            Part::ToolCall(call) => {
                let mut begun = write_call(call);
                begun.index = Some(calls);
                if let Some(function) = &mut begun.function {
                    function.arguments = Cow::Borrowed("");
                }
                if let Some(custom) = &mut begun.custom {
                    custom.input = Cow::Borrowed("");
                }
                tell(DeltaWire { tool_calls: vec![begun], ..DeltaWire::default() }, None);
                for text in pieces(call.arguments.as_str(), piece) {
                    let more = more_of(&call.arguments, calls, text);
                    tell(DeltaWire { tool_calls: vec![more], ..DeltaWire::default() }, None);
                }
                calls += 1;
            }
            Part::Media(_) | Part::ToolResult(_) | Part::Opaque(_) => {}
        }
    }
    tell(DeltaWire::default(), Some(finish_word(&response.finish)));
    events.plain(&chunk(Vec::new(), Some(UsageWire::of(response.usage))));
    events.text(DONE);
    events
}

fn more_of<'a>(arguments: &Arguments, index: usize, text: &'a str) -> CallWire<'a> {
    let text = Cow::Borrowed(text);
    let (function, custom) = match arguments {
        Arguments::Json(_) => (Some(FunctionCall { name: None, arguments: text }), None),
        Arguments::Text(_) => (None, Some(CustomCall { name: None, input: text })),
    };
    CallWire { index: Some(index), function, custom, ..CallWire::default() }
}
