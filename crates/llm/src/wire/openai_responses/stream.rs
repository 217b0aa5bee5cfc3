//! Answers event by event.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Said, Told, beginning, items, whole};
use super::item::{Item, Piece, parse};
use crate::chat::{Arguments, ChatResponse, Delta, FinishReason, Json, Part};
use crate::sse::{Encoder, Event};
use crate::wire::content::{TextOr, pieces, some, to_raw};
use crate::wire::{WireError, malformed};

/// All kinds of events in one: which fields are there depends on `kind`.
#[derive(Serialize, Deserialize, Default)]
struct EventWire<'a> {
    #[serde(rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    sequence_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Answer<'a>>,
    #[serde(skip_serializing)]
    code: Option<String>,
    #[serde(skip_serializing)]
    message: Option<String>,
}

/// The vendor's index of an item, and what became of it here.
#[derive(Debug)]
struct Open {
    theirs: usize,
    ours: usize,
    signed: bool,
}

#[derive(Debug, Default)]
pub(in crate::wire) struct Reader {
    begun: bool,
    parts: usize,
    open: Vec<Open>,
    calls: bool,
}

impl Reader {
    pub(in crate::wire) fn push(
        &mut self,
        event: &Event,
        each: &mut dyn FnMut(Delta),
    ) -> Result<(), WireError> {
        let wire: EventWire<'_> = serde_json::from_str(&event.data).map_err(malformed)?;
        let theirs = wire.output_index.unwrap_or(self.open.len());
        match &*wire.kind {
            "response.created" | "response.in_progress" => self.begin(wire.response.as_ref(), each),
            "response.output_item.added" => self.add(theirs, wire.item, each)?,
            "response.output_item.done" => self.done(theirs, wire.item, each)?,
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_text.delta"
            | "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta" => {
                if let (Some(index), Some(text)) = (self.ours(theirs), wire.delta) {
                    each(Delta::More { index, text: text.into_owned() });
                }
            }
            "response.completed" | "response.incomplete" => {
                self.begin(wire.response.as_ref(), each);
                self.finish(wire.response, each);
            }
            "response.failed" => return Err(broken_off(wire.response.and_then(|response| response.error))),
            "error" => {
                let told = Told { code: wire.code, message: wire.message.unwrap_or_default() };
                return Err(broken_off(Some(told)));
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, response: Option<&Answer<'_>>, each: &mut dyn FnMut(Delta)) {
        if let (false, Some(response)) = (self.begun, response) {
            self.begun = true;
            let (id, model) = (response.id.clone().into_owned(), response.model.clone().into_owned());
            each(Delta::Started { id, model });
        }
    }

    fn ours(&self, theirs: usize) -> Option<usize> {
        self.open.iter().find(|open| open.theirs == theirs).map(|open| open.ours)
    }

    fn add(
        &mut self,
        theirs: usize,
        item: Option<Json>,
        each: &mut dyn FnMut(Delta),
    ) -> Result<(), WireError> {
        let Some(item) = item else { return Ok(()) };
        let parts = parse(item).map_err(malformed)?.parts;
        // A message that begins has no content yet.
        let part = parts.into_iter().next().unwrap_or_else(|| Part::text(""));
        let signed = matches!(&part, Part::Thinking(thinking) if thinking.signature.is_some());
        self.calls |= matches!(part, Part::ToolCall(_));
        let ours = self.parts;
        self.parts += 1;
        self.open.push(Open { theirs, ours, signed });
        each(Delta::PartStarted { index: ours, part });
        Ok(())
    }

    /// Some servers send nothing but this; the vendor sends it after all pieces.
    fn done(
        &mut self,
        theirs: usize,
        item: Option<Json>,
        each: &mut dyn FnMut(Delta),
    ) -> Result<(), WireError> {
        let Some(open) = self.open.iter_mut().find(|open| open.theirs == theirs) else {
            return self.add(theirs, item, each);
        };
        let Some(item) = item else { return Ok(()) };
        // Encrypted thoughts are only there at the end.
        if let Some(Part::Thinking(thinking)) = parse(item).map_err(malformed)?.parts.into_iter().next()
            && let (false, Some(text)) = (open.signed, thinking.signature)
        {
            open.signed = true;
            each(Delta::Signature { index: open.ours, text });
        }
        Ok(())
    }

    fn finish(&mut self, response: Option<Answer<'_>>, each: &mut dyn FnMut(Delta)) {
        let finish = response.as_ref().map_or(FinishReason::Stop, Answer::finish);
        if let Some(response) = response {
            each(Delta::Usage(response.usage()));
        }
        let finish =
            if finish == FinishReason::Stop && self.calls { FinishReason::ToolCalls } else { finish };
        each(Delta::Finished(finish));
    }
}

fn broken_off(told: Option<Told>) -> WireError {
    let told = told.unwrap_or(Told { code: None, message: "it does not say why".to_owned() });
    WireError::BrokenOff { kind: told.code.unwrap_or_default(), message: told.message }
}

/// Events are numbered.
struct Writer {
    events: Encoder,
    number: u64,
}

impl Writer {
    fn tell(&mut self, kind: &'static str, event: EventWire<'_>) {
        let event = EventWire { kind: kind.into(), sequence_number: self.number, ..event };
        self.number += 1;
        self.events.named(kind, &event);
    }
}

pub(in crate::wire) fn write(response: &ChatResponse, piece: usize) -> Encoder {
    let mut writer = Writer { events: Encoder::default(), number: 0 };
    let answer = |answer| EventWire { response: Some(answer), ..EventWire::default() };
    writer.tell("response.created", answer(beginning(response)));
    writer.tell("response.in_progress", answer(beginning(response)));
    for (index, (said, part)) in items(response).enumerate() {
        write_item(&mut writer, index, said, part, piece);
    }
    let last = whole(response);
    let kind = if last.status == "completed" { "response.completed" } else { "response.incomplete" };
    writer.tell(kind, answer(last));
    writer.events
}

fn write_item(writer: &mut Writer, index: usize, said: Said<'_>, part: &Part, piece: usize) {
    let on = |item: Json| EventWire { output_index: Some(index), item: Some(item), ..EventWire::default() };
    let done = said.json();
    let item = match said {
        Said::Item(item) => *item,
        Said::Opaque(_) => {
            writer.tell("response.output_item.added", on(done.clone()));
            return writer.tell("response.output_item.done", on(done));
        }
    };
    let id: String = item.id.clone().unwrap_or_default().into_owned();
    writer.tell("response.output_item.added", on(to_raw(&emptied(item)).into()));
    let of = || EventWire { output_index: Some(index), item_id: some(&id), ..EventWire::default() };
    match part {
        Part::Text(text) => {
            let of = || EventWire { content_index: Some(0), ..of() };
            let part = |text| output_text(text);
            writer.tell("response.content_part.added", EventWire { part: Some(part("")), ..of() });
            for delta in pieces(&text.text, piece) {
                writer.tell("response.output_text.delta", EventWire { delta: some(delta), ..of() });
            }
            writer.tell("response.output_text.done", EventWire { text: some(&text.text), ..of() });
            writer.tell("response.content_part.done", EventWire { part: Some(part(&text.text)), ..of() });
        }
        Part::Thinking(thinking) if !thinking.text.is_empty() => {
            let of = || EventWire { summary_index: Some(0), ..of() };
            let part = |text| Some(summary_text(text));
            writer.tell("response.reasoning_summary_part.added", EventWire { part: part(""), ..of() });
            for delta in pieces(&thinking.text, piece) {
                writer
                    .tell("response.reasoning_summary_text.delta", EventWire { delta: some(delta), ..of() });
            }
            let text = some(&thinking.text);
            writer.tell("response.reasoning_summary_text.done", EventWire { text, ..of() });
            let part = part(&thinking.text);
            writer.tell("response.reasoning_summary_part.done", EventWire { part, ..of() });
        }
        Part::ToolCall(call) => {
            let whole = call.arguments.as_str();
            let is_free = matches!(call.arguments, Arguments::Text(_));
            let (more, end) = if is_free {
                ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done")
            } else {
                ("response.function_call_arguments.delta", "response.function_call_arguments.done")
            };
            for delta in pieces(whole, piece) {
                writer.tell(more, EventWire { delta: some(delta), ..of() });
            }
            let (arguments, input) = if is_free { (None, some(whole)) } else { (some(whole), None) };
            writer.tell(end, EventWire { arguments, input, ..of() });
        }
        Part::Thinking(_) | Part::Media(_) | Part::ToolResult(_) | Part::Opaque(_) => {}
    }
    writer.tell("response.output_item.done", on(done));
}

fn output_text(text: &str) -> Json {
    let piece =
        Piece { kind: "output_text".into(), text: some(text), annotations: Some([]), ..Piece::default() };
    to_raw(&piece).into()
}

fn summary_text(text: &str) -> Json {
    to_raw(&Piece { kind: "summary_text".into(), text: some(text), ..Piece::default() }).into()
}

/// The item as it begins: what follows in pieces is empty.
fn emptied(mut item: Item<'_>) -> Item<'_> {
    item.status = Some("in_progress".into());
    item.content = item.content.map(|_| TextOr::default());
    item.arguments = item.arguments.map(|_| "".into());
    item.input = item.input.map(|_| "".into());
    item.summary = item.summary.map(|_| Vec::new());
    item.encrypted_content = None;
    item
}
