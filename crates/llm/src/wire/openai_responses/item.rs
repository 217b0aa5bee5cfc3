//! Items: a conversation is a flat list of them here.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::chat::{Arguments, Json, Message, Part, Role, Thinking, ToolCall, ToolResult, texts};
use crate::wire::content::{TextOr, media_of_url, some, to_raw, url_of_media};

/// All kinds of items in one: which fields are there depends on `kind`.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Item<'a> {
    #[serde(rename = "type", default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<TextOr<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<TextOr<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Vec<Piece<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) encrypted_content: Option<Cow<'a, str>>,
}

/// A piece of a message's content, or of a summary.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Piece<'a> {
    #[serde(rename = "type", default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image_url: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<Cow<'a, str>>,
    /// The vendor always sends a list here, and some clients insist on it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) annotations: Option<[&'static str; 0]>,
}

const KNOWN: [&str; 7] = [
    "",
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
];

pub(super) fn read_items(items: Vec<Json>, messages: &mut Vec<Message>) -> Result<(), serde_json::Error> {
    // What a user says begins a message of its own; all else that comes from one side belongs together.
    let mut open: Option<Role> = None;
    for item in items {
        let Parsed { role, parts, alone } = parse(item)?;
        match messages.last_mut() {
            Some(last) if open == Some(role) && !alone => last.parts.extend(parts),
            _ => messages.push(Message::new(role, parts)),
        }
        open = (!alone).then_some(role);
    }
    Ok(())
}

pub(super) struct Parsed {
    role: Role,
    pub(super) parts: Vec<Part>,
    alone: bool,
}

pub(super) fn parse(json: Json) -> Result<Parsed, serde_json::Error> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow, default)]
        kind: Cow<'a, str>,
    }
    let kind = json.read::<Kind<'_>>()?.kind;
    if !KNOWN.contains(&&*kind) {
        let is_result = kind.ends_with("_output");
        // Codex tells of more tools in an item of its own.
        let is_system = kind == "additional_tools";
        let role = match (is_result, is_system) {
            (true, _) => Role::User,
            (_, true) => Role::System,
            _ => Role::Assistant,
        };
        return Ok(Parsed { role, parts: vec![Part::Opaque(json)], alone: is_system });
    }
    let item: Item<'_> = json.read()?;
    Ok(match &*item.kind {
        "reasoning" => assistant(Part::Thinking(read_thinking(item))),
        "function_call" | "custom_tool_call" => assistant(Part::ToolCall(read_call(item))),
        "function_call_output" | "custom_tool_call_output" => {
            let parts = item.output.unwrap_or_default().into_parts(read_piece)?;
            let id = item.call_id.map(Cow::into_owned).unwrap_or_default();
            let result = ToolResult { id, name: None, parts, is_error: false };
            Parsed { role: Role::User, parts: vec![Part::ToolResult(result)], alone: false }
        }
        _ => {
            let role = match item.role.as_deref() {
                Some("assistant") => Role::Assistant,
                Some("system" | "developer") => Role::System,
                _ => Role::User,
            };
            Parsed {
                role,
                parts: item.content.unwrap_or_default().into_parts(read_piece)?,
                alone: role != Role::Assistant,
            }
        }
    })
}

fn assistant(part: Part) -> Parsed {
    Parsed { role: Role::Assistant, parts: vec![part], alone: false }
}

fn read_thinking(item: Item<'_>) -> Thinking {
    let summary = item.summary.unwrap_or_default();
    let texts: Vec<&str> = summary.iter().filter_map(|piece| piece.text.as_deref()).collect();
    Thinking {
        text: texts.join("\n"),
        signature: item.encrypted_content.map(Cow::into_owned),
        id: item.id.map(Cow::into_owned),
        redacted: false,
    }
}

fn read_call(item: Item<'_>) -> ToolCall {
    let arguments = match item.input {
        Some(input) if item.kind == "custom_tool_call" => Arguments::Text(input.into_owned()),
        _ => Arguments::read(item.arguments.map(Cow::into_owned).unwrap_or_default()),
    };
    ToolCall {
        id: item.call_id.or(item.id).map(Cow::into_owned).unwrap_or_default(),
        name: item.name.map(Cow::into_owned).unwrap_or_default(),
        namespace: item.namespace.map(Cow::into_owned),
        arguments,
        signature: None,
    }
}

fn read_piece(json: &Json) -> Result<Part, serde_json::Error> {
    let piece: Piece<'_> = json.read()?;
    Ok(match (piece.text.or(piece.refusal), piece.image_url) {
        (Some(text), _) => Part::text(text),
        (None, Some(url)) => Part::Media(media_of_url(url.into_owned())),
        (None, None) => Part::Opaque(json.clone()),
    })
}

pub(super) fn write_items(messages: &[Message]) -> Vec<Json> {
    let mut items = Vec::new();
    for message in messages {
        let mut said: Vec<&Part> = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(_) | Part::Media(_) => said.push(part),
                other => {
                    flush(&mut said, message.role, &mut items);
                    items.push(write_other(other));
                }
            }
        }
        flush(&mut said, message.role, &mut items);
    }
    items
}

fn flush(said: &mut Vec<&Part>, role: Role, items: &mut Vec<Json>) {
    if said.is_empty() {
        return;
    }
    let words = if role == Role::Assistant { "output_text" } else { "input_text" };
    let pieces = said.drain(..).map(|part| write_piece(part, words)).collect();
    let role = if role == Role::System { "developer" } else { role.as_str() };
    let content = Some(TextOr::Many(pieces));
    items.push(to_raw(&Item { kind: "message".into(), role: some(role), content, ..Item::default() }).into());
}

fn write_other(part: &Part) -> Json {
    match part {
        Part::Opaque(json) => json.clone(),
        Part::ToolResult(result) => {
            let output = Some(TextOr::Text(texts(&result.parts)));
            let kind = "function_call_output".into();
            to_raw(&Item { kind, call_id: some(&result.id), output, ..Item::default() }).into()
        }
        part => to_raw(&item_of(part)).into(),
    }
}

fn write_piece(part: &Part, words: &'static str) -> Json {
    let piece = match part {
        Part::Text(text) => Piece { kind: words.into(), text: some(&text.text), ..Piece::default() },
        Part::Media(media) => Piece {
            kind: "input_image".into(),
            image_url: Some(Cow::Owned(url_of_media(media))),
            ..Piece::default()
        },
        _ => Piece::default(),
    };
    to_raw(&piece).into()
}

/// What the model says, as an item. What it does not say has none.
pub(super) fn item_of(part: &Part) -> Item<'_> {
    match part {
        Part::Text(text) => {
            let annotations = Some([]);
            let piece =
                Piece { kind: "output_text".into(), text: some(&text.text), annotations, ..Piece::default() };
            let content = Some(TextOr::Many(vec![to_raw(&piece).into()]));
            Item { kind: "message".into(), role: some("assistant"), content, ..Item::default() }
        }
        Part::Thinking(thinking) => {
            let piece = |text| Piece { kind: "summary_text".into(), text: some(text), ..Piece::default() };
            let summary = if thinking.text.is_empty() { Vec::new() } else { vec![piece(&thinking.text)] };
            Item {
                kind: "reasoning".into(),
                id: thinking.id.as_deref().map(Cow::Borrowed),
                summary: Some(summary),
                encrypted_content: thinking.signature.as_deref().map(Cow::Borrowed),
                ..Item::default()
            }
        }
        Part::ToolCall(call) => {
            let item = Item {
                call_id: some(&call.id),
                name: some(&call.name),
                namespace: call.namespace.as_deref().map(Cow::Borrowed),
                ..Item::default()
            };
            match &call.arguments {
                Arguments::Json(json) => {
                    Item { kind: "function_call".into(), arguments: some(json.as_str()), ..item }
                }
                Arguments::Text(text) => Item { kind: "custom_tool_call".into(), input: some(text), ..item },
            }
        }
        Part::Media(_) | Part::ToolResult(_) | Part::Opaque(_) => Item::default(),
    }
}
