//! Anthropic's Messages.

pub(super) mod answer;
mod block;
pub(super) mod stream;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use self::block::{blocks_of, part_of};
use super::Received;
use super::content::{Raw, TextOr, from_bytes, list_or_null, raw_tools, some, to_bytes};
use crate::chat::{ChatRequest, Effort, Json, Message, Part, Role, ToolChoice, ToolDefinition, ToolInput};

/// The vendor demands a limit; this is what is asked for where ours has none.
const MAX_TOKENS: u64 = 8192;

/// With tools as they are read, or as they are written.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Request<'a, T> {
    #[serde(default)]
    model: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(default, borrow, skip_serializing_if = "is_empty")]
    system: TextOr<Raw<'a>>,
    #[serde(default, borrow)]
    messages: Vec<MessageWire<'a>>,
    #[serde(default, deserialize_with = "list_or_null", skip_serializing_if = "Vec::is_empty")]
    tools: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(default, deserialize_with = "list_or_null", skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingWire<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

fn is_empty(content: &TextOr<Raw<'_>>) -> bool {
    matches!(content, TextOr::Many(blocks) if blocks.is_empty())
}

#[derive(Serialize, Deserialize)]
struct MessageWire<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(default, borrow)]
    content: TextOr<Raw<'a>>,
}

#[derive(Serialize, Deserialize)]
struct ToolWire<'a> {
    #[serde(default)]
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Json>,
}

#[derive(Serialize, Deserialize)]
struct Choice<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
struct ThinkingWire<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u64>,
}

#[derive(Serialize, Deserialize, Default)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Format<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Json>,
}

pub(super) fn read_request(body: &[u8]) -> Result<Received, serde_json::Error> {
    let wire: Request<'_, ToolWire<'_>> = from_bytes(body)?;
    let output = wire.output_config.unwrap_or_default();
    let mut messages = Vec::with_capacity(wire.messages.len() + 1);
    let system = wire.system.into_parts(part_of)?;
    if !system.is_empty() {
        messages.push(Message::new(Role::System, system));
    }
    for message in wire.messages {
        let role = match &*message.role {
            "assistant" => Role::Assistant,
            // Claude Code puts messages of the system between the others.
            "system" => Role::System,
            _ => Role::User,
        };
        messages.push(Message::new(role, message.content.into_parts(part_of)?));
    }
    let chat = ChatRequest {
        model: wire.model.into_owned(),
        messages,
        tools: read_tools(wire.tools, body)?,
        tool_choice: wire.tool_choice.map_or(ToolChoice::Auto, read_choice),
        max_tokens: wire.max_tokens,
        temperature: wire.temperature,
        stop: wire.stop_sequences,
        answer_schema: output.format.and_then(|format| format.schema),
        effort: read_effort(wire.thinking, output.effort),
    };
    Ok(Received { chat, stream: wire.stream })
}

fn read_tools(tools: Vec<ToolWire<'_>>, body: &[u8]) -> Result<Vec<ToolDefinition>, serde_json::Error> {
    let has_vendors = tools.iter().any(|tool| tool.input_schema.is_none());
    let raw = if has_vendors { raw_tools(body)? } else { Vec::new() };
    Ok(tools.into_iter().enumerate().map(|(index, tool)| read_tool(tool, raw.get(index))).collect())
}

fn read_tool(wire: ToolWire<'_>, raw: Option<&Json>) -> ToolDefinition {
    let (name, description) = (wire.name.into_owned(), wire.description.map(Cow::into_owned));
    // Without a schema it is a tool that the vendor runs itself.
    let vendors = || ToolInput::Vendor(raw.cloned().unwrap_or_else(Json::empty_object));
    let input = wire.input_schema.map_or_else(vendors, ToolInput::Schema);
    ToolDefinition { name, description: description.unwrap_or_default(), input }
}

fn read_choice(choice: Choice<'_>) -> ToolChoice {
    match (&*choice.kind, choice.name) {
        ("none", _) => ToolChoice::None,
        ("any", _) => ToolChoice::Any,
        ("tool", Some(name)) => ToolChoice::Tool(name.into_owned()),
        _ => ToolChoice::Auto,
    }
}

fn read_effort(thinking: Option<ThinkingWire<'_>>, effort: Option<Cow<'_, str>>) -> Option<Effort> {
    match (thinking, effort) {
        (Some(ThinkingWire { budget_tokens: Some(tokens), .. }), _) => Some(Effort::Tokens(tokens)),
        (_, Some(effort)) => Some(Effort::Named(effort.into_owned())),
        (Some(thinking), None) if thinking.kind == "adaptive" => Some(Effort::Named("adaptive".into())),
        _ => None,
    }
}

pub(super) fn write_request(request: &ChatRequest, stream: bool) -> Vec<u8> {
    // What the system says first has a field of its own.
    let leading = request.messages.iter().take_while(|message| message.role == Role::System).count();
    let (system, rest) = request.messages.split_at(leading);
    let system: Vec<Part> = system.iter().flat_map(|message| message.parts.clone()).collect();
    let (thinking, effort) = write_effort(request.effort.as_ref());
    let format = request.answer_schema.clone();
    let format = format.map(|schema| Format { kind: "json_schema".into(), schema: Some(schema) });
    let has_output = effort.is_some() || format.is_some();
    to_bytes(&Request {
        model: Cow::Borrowed(&request.model),
        max_tokens: Some(request.max_tokens.unwrap_or(MAX_TOKENS)),
        system: TextOr::Many(blocks_of(&system)),
        messages: rest.iter().map(write_message).collect(),
        tools: request.tools.iter().map(write_tool).collect(),
        tool_choice: write_choice(&request.tool_choice),
        temperature: request.temperature,
        stop_sequences: request.stop.clone(),
        stream,
        thinking,
        output_config: has_output.then_some(OutputConfig { effort, format }),
    })
}

fn write_message(message: &Message) -> MessageWire<'static> {
    let content = TextOr::Many(blocks_of(&message.parts));
    MessageWire { role: message.role.as_str().into(), content }
}

fn write_tool(tool: &ToolDefinition) -> Json {
    let schema = match &tool.input {
        ToolInput::Vendor(whole) => return whole.clone(),
        ToolInput::Schema(schema) => schema.clone(),
        ToolInput::Text => Json::empty_object(),
    };
    let (name, description) = (Cow::Borrowed(tool.name.as_str()), some(&tool.description));
    super::content::to_raw(&ToolWire { name, description, input_schema: Some(schema) }).into()
}

fn write_choice(choice: &ToolChoice) -> Option<Choice<'_>> {
    let plain = |kind: &'static str| Some(Choice { kind: kind.into(), name: None });
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => plain("none"),
        ToolChoice::Any => plain("any"),
        ToolChoice::Tool(name) => Some(Choice { kind: "tool".into(), name: some(name) }),
    }
}

fn write_effort(effort: Option<&Effort>) -> (Option<ThinkingWire<'_>>, Option<Cow<'_, str>>) {
    let adaptive = Some(ThinkingWire { kind: "adaptive".into(), budget_tokens: None });
    match effort {
        None => (None, None),
        Some(Effort::Tokens(tokens)) => {
            (Some(ThinkingWire { kind: "enabled".into(), budget_tokens: Some(*tokens) }), None)
        }
        Some(Effort::Named(name)) if name == "adaptive" => (adaptive, None),
        Some(Effort::Named(name)) => (adaptive, some(name)),
    }
}
