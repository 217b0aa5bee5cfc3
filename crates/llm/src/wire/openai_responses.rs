//! OpenAI's Responses.

pub(super) mod answer;
mod item;
pub(super) mod stream;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::item::{read_items, write_items};
use super::Received;
use super::content::{TextOr, from_bytes, list_or_null, raw_tools, some, to_bytes, to_raw};
use super::openai_chat::effort_word;
use crate::chat::{ChatRequest, Effort, Json, Message, Role, ToolChoice, ToolDefinition, ToolInput, texts};

/// With tools as they are read, or as they are written.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Request<'a, T> {
    #[serde(default)]
    model: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Cow<'a, str>>,
    #[serde(default)]
    input: TextOr<Json>,
    #[serde(default, deserialize_with = "list_or_null", skip_serializing_if = "Vec::is_empty")]
    tools: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    /// We keep the conversation; the vendor need not.
    #[serde(skip_deserializing)]
    store: bool,
    /// Without the vendor's memory, thoughts come back encrypted or not at all.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextOptions<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Reasoning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
struct TextOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Format<'a> {
    #[serde(rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Json>,
}

#[derive(Serialize, Deserialize)]
struct ToolWire<'a> {
    #[serde(rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Json>,
}

#[derive(Serialize, Deserialize)]
struct ChosenTool<'a> {
    r#type: Cow<'a, str>,
    name: Cow<'a, str>,
}

pub(super) fn read_request(body: &[u8]) -> Result<Received, serde_json::Error> {
    let wire: Request<'_, ToolWire<'_>> = from_bytes(body)?;
    let mut messages = Vec::new();
    if let Some(instructions) = wire.instructions.filter(|text| !text.is_empty()) {
        messages.push(Message::system(instructions));
    }
    match wire.input {
        TextOr::Text(text) => messages.push(Message::user(text)),
        TextOr::Many(items) => read_items(items, &mut messages)?,
    }
    let format = wire.text.and_then(|text| text.format);
    let effort = wire.reasoning.and_then(|reasoning| reasoning.effort);
    let chat = ChatRequest {
        model: wire.model.into_owned(),
        messages,
        tools: read_tools(wire.tools, body)?,
        tool_choice: wire.tool_choice.map_or(ToolChoice::Auto, |choice| read_choice(&choice)),
        max_tokens: wire.max_output_tokens,
        temperature: wire.temperature,
        stop: Vec::new(),
        answer_schema: format.and_then(|format| format.schema),
        effort: effort.map(|effort| Effort::Named(effort.into_owned())),
    };
    Ok(Received { chat, stream: wire.stream })
}

fn read_tools(tools: Vec<ToolWire<'_>>, body: &[u8]) -> Result<Vec<ToolDefinition>, serde_json::Error> {
    let has_vendors = tools.iter().any(|tool| !matches!(&*tool.kind, "function" | "custom"));
    let raw = if has_vendors { raw_tools(body)? } else { Vec::new() };
    Ok(tools.into_iter().enumerate().map(|(index, tool)| read_tool(tool, raw.get(index))).collect())
}

fn read_tool(wire: ToolWire<'_>, raw: Option<&Json>) -> ToolDefinition {
    let input = match &*wire.kind {
        "function" => ToolInput::Schema(wire.parameters.unwrap_or_else(Json::empty_object)),
        "custom" => ToolInput::Text,
        _ => ToolInput::Vendor(raw.cloned().unwrap_or_else(Json::empty_object)),
    };
    let name = wire.name.unwrap_or(wire.kind).into_owned();
    ToolDefinition { name, description: wire.description.unwrap_or_default().into_owned(), input }
}

fn read_choice(choice: &RawValue) -> ToolChoice {
    match choice.get() {
        "\"none\"" => ToolChoice::None,
        "\"required\"" => ToolChoice::Any,
        other => match serde_json::from_str::<ChosenTool<'_>>(other) {
            Ok(chosen) => ToolChoice::Tool(chosen.name.into_owned()),
            Err(_) => ToolChoice::Auto,
        },
    }
}

pub(super) fn write_request(request: &ChatRequest, stream: bool) -> Vec<u8> {
    let (instructions, rest) = match request.messages.split_first() {
        Some((first, rest)) if first.role == Role::System => (Some(Cow::Owned(texts(&first.parts))), rest),
        _ => (None, request.messages.as_slice()),
    };
    let effort = request.effort.as_ref().map(effort_word);
    let schema = request.answer_schema.clone();
    to_bytes(&Request {
        model: Cow::Borrowed(&request.model),
        instructions,
        input: TextOr::Many(write_items(rest)),
        tools: request.tools.iter().map(write_tool).collect(),
        tool_choice: write_choice(&request.tool_choice),
        max_output_tokens: request.max_tokens,
        temperature: request.temperature,
        stream,
        store: false,
        include: if effort.is_some() { vec!["reasoning.encrypted_content"] } else { Vec::new() },
        reasoning: effort.map(|effort| Reasoning { effort: Some(effort) }),
        text: schema.map(|schema| TextOptions {
            format: Some(Format { kind: "json_schema".into(), name: some("answer"), schema: Some(schema) }),
        }),
    })
}

fn write_tool(tool: &ToolDefinition) -> Json {
    let (kind, parameters) = match &tool.input {
        ToolInput::Vendor(whole) => return whole.clone(),
        ToolInput::Schema(schema) => ("function", Some(schema.clone())),
        ToolInput::Text => ("custom", None),
    };
    let (name, description) = (some(&tool.name), some(&tool.description));
    to_raw(&ToolWire { kind: kind.into(), name, description, parameters }).into()
}

fn write_choice(choice: &ToolChoice) -> Option<Box<RawValue>> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(to_raw(&"none")),
        ToolChoice::Any => Some(to_raw(&"required")),
        ToolChoice::Tool(name) => {
            Some(to_raw(&ChosenTool { r#type: "function".into(), name: Cow::Borrowed(name) }))
        }
    }
}
