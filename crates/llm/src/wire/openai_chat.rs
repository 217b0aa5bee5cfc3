//! OpenAI's Chat Completions, which many other vendors and local servers speak too.

pub(super) mod answer;
mod message;
pub(super) mod stream;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::message::{Conversation, write_messages};
use super::Received;
use super::content::{TextOr, from_bytes, list_or_null, raw_tools, some, to_bytes, to_raw};
use crate::chat::{ChatRequest, Effort, Json, ToolChoice, ToolDefinition, ToolInput};

/// With messages and tools as they are read, or as they are written.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "M: Deserialize<'de> + Default, T: Deserialize<'de>"))]
struct Request<'a, M, T> {
    #[serde(default)]
    model: Cow<'a, str>,
    #[serde(default)]
    messages: M,
    #[serde(default, deserialize_with = "list_or_null", skip_serializing_if = "Vec::is_empty")]
    tools: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    /// What it was called before, and what most others call it still.
    #[serde(skip_serializing)]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<TextOr<String>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Cow<'a, str>>,
}

#[derive(Serialize, Default)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize, Deserialize)]
struct ResponseFormat<'a> {
    #[serde(rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<NamedSchema<'a>>,
}

#[derive(Serialize, Deserialize)]
struct NamedSchema<'a> {
    #[serde(default)]
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Json>,
}

#[derive(Serialize, Deserialize)]
struct ToolWire<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<FunctionWire<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom: Option<FunctionWire<'a>>,
}

#[derive(Serialize, Deserialize)]
struct FunctionWire<'a> {
    #[serde(default)]
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Json>,
}

/// `{"type": "function", "function": {"name": …}}`.
#[derive(Serialize, Deserialize)]
struct ChosenTool<'a> {
    r#type: Cow<'a, str>,
    function: ChosenName<'a>,
}

#[derive(Serialize, Deserialize)]
struct ChosenName<'a> {
    name: Cow<'a, str>,
}

pub(super) fn read_request(body: &[u8]) -> Result<Received, serde_json::Error> {
    let wire: Request<'_, Conversation, ToolWire<'_>> = from_bytes(body)?;
    let stop = match wire.stop {
        None => Vec::new(),
        Some(TextOr::Text(text)) => vec![text],
        Some(TextOr::Many(texts)) => texts,
    };
    let schema = wire.response_format.and_then(|format| format.json_schema);
    let chat = ChatRequest {
        model: wire.model.into_owned(),
        messages: wire.messages.into_messages(),
        tools: read_tools(wire.tools, body)?,
        tool_choice: wire.tool_choice.map_or(ToolChoice::Auto, |choice| read_choice(&choice)),
        max_tokens: wire.max_completion_tokens.or(wire.max_tokens),
        temperature: wire.temperature,
        stop,
        answer_schema: schema.and_then(|schema| schema.schema),
        effort: wire.reasoning_effort.map(|effort| Effort::Named(effort.into_owned())),
    };
    Ok(Received { chat, stream: wire.stream })
}

fn read_tools(tools: Vec<ToolWire<'_>>, body: &[u8]) -> Result<Vec<ToolDefinition>, serde_json::Error> {
    let is_vendors = |tool: &ToolWire<'_>| tool.function.is_none() && tool.custom.is_none();
    let raw = if tools.iter().any(is_vendors) { raw_tools(body)? } else { Vec::new() };
    Ok(tools.into_iter().enumerate().map(|(index, tool)| read_tool(tool, raw.get(index))).collect())
}

fn read_tool(wire: ToolWire<'_>, raw: Option<&Json>) -> ToolDefinition {
    let of = |function: FunctionWire<'_>, input: ToolInput| ToolDefinition {
        name: function.name.into_owned(),
        description: function.description.map(Cow::into_owned).unwrap_or_default(),
        input,
    };
    match (wire.function, wire.custom) {
        (Some(mut function), _) => {
            let schema = function.parameters.take().unwrap_or_else(Json::empty_object);
            of(function, ToolInput::Schema(schema))
        }
        (None, Some(custom)) => of(custom, ToolInput::Text),
        (None, None) => ToolDefinition {
            name: wire.kind.into_owned(),
            description: String::new(),
            input: ToolInput::Vendor(raw.cloned().unwrap_or_else(Json::empty_object)),
        },
    }
}

fn read_choice(choice: &RawValue) -> ToolChoice {
    match choice.get() {
        "\"none\"" => ToolChoice::None,
        "\"required\"" => ToolChoice::Any,
        other => match serde_json::from_str::<ChosenTool<'_>>(other) {
            Ok(chosen) => ToolChoice::Tool(chosen.function.name.into_owned()),
            Err(_) => ToolChoice::Auto,
        },
    }
}

pub(super) fn write_request(request: &ChatRequest, stream: bool) -> Vec<u8> {
    let schema = request.answer_schema.clone();
    to_bytes(&Request {
        model: Cow::Borrowed(&request.model),
        messages: write_messages(&request.messages),
        tools: request.tools.iter().map(write_tool).collect(),
        tool_choice: write_choice(&request.tool_choice),
        max_completion_tokens: request.max_tokens,
        max_tokens: None,
        temperature: request.temperature,
        stop: (!request.stop.is_empty()).then(|| TextOr::Many(request.stop.clone())),
        stream,
        // Without it a stream never says what it cost.
        stream_options: stream.then_some(StreamOptions { include_usage: true }),
        response_format: schema.map(|schema| ResponseFormat {
            kind: "json_schema".into(),
            json_schema: Some(NamedSchema { name: "answer".into(), schema: Some(schema) }),
        }),
        reasoning_effort: request.effort.as_ref().map(effort_word),
    })
}

/// OpenAI's vendors know words only; the bounds are those that others convert with.
pub(super) fn effort_word(effort: &Effort) -> Cow<'_, str> {
    match effort {
        Effort::Named(name) => Cow::Borrowed(name),
        Effort::Tokens(..=2048) => "low".into(),
        Effort::Tokens(2049..=16_384) => "medium".into(),
        Effort::Tokens(_) => "high".into(),
    }
}

fn write_tool(tool: &ToolDefinition) -> Json {
    let function = |parameters| FunctionWire {
        name: Cow::Borrowed(&tool.name),
        description: some(&tool.description),
        parameters,
    };
    let wire = match &tool.input {
        ToolInput::Vendor(whole) => return whole.clone(),
        ToolInput::Schema(schema) => {
            let function = Some(function(Some(schema.clone())));
            ToolWire { kind: "function".into(), function, custom: None }
        }
        ToolInput::Text => ToolWire { kind: "custom".into(), function: None, custom: Some(function(None)) },
    };
    to_raw(&wire).into()
}

fn write_choice(choice: &ToolChoice) -> Option<Box<RawValue>> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(to_raw(&"none")),
        ToolChoice::Any => Some(to_raw(&"required")),
        ToolChoice::Tool(name) => {
            let function = ChosenName { name: Cow::Borrowed(name) };
            Some(to_raw(&ChosenTool { r#type: "function".into(), function }))
        }
    }
}
