//! Google's `generateContent`. The model, and whether to stream, are in the path.

pub(super) mod answer;
mod part;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use self::part::{Names, PartWire, read_part, write_part};
use super::Received;
use super::content::{from_bytes, list_or_null, some, to_bytes};
use crate::chat::{ChatRequest, Effort, Json, Message, Role, ToolChoice, ToolDefinition, ToolInput};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(alias = "system_instruction", skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    #[serde(default)]
    contents: Vec<Content<'a>>,
    #[serde(default, deserialize_with = "list_or_null", skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Json>,
    #[serde(alias = "tool_config", skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(alias = "generation_config", default)]
    generation_config: GenerationConfig,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Cow<'a, str>>,
    #[serde(default)]
    parts: Vec<PartWire<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolWire<'a> {
    #[serde(alias = "function_declarations", skip_serializing_if = "Option::is_none")]
    function_declarations: Option<Vec<Declaration<'a>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    #[serde(default)]
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<Json>,
    /// Google's own kind of schema.
    #[serde(skip_serializing)]
    parameters: Option<Json>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function_calling_config: Option<CallingConfig<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig<'a> {
    #[serde(default)]
    mode: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allowed_function_names: Vec<String>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "list_or_null", skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Json>,
    #[serde(skip_serializing)]
    response_schema: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    /// Negative: as much as the model likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
}

pub(super) fn read_request(body: &[u8]) -> Result<Received, serde_json::Error> {
    let wire: Request<'_> = from_bytes(body)?;
    let mut names = Names::default();
    let mut messages = Vec::with_capacity(wire.contents.len() + 1);
    if let Some(system) = wire.system_instruction {
        messages.push(read_content(system, Some(Role::System), &mut names));
    }
    messages.extend(wire.contents.into_iter().map(|content| read_content(content, None, &mut names)));
    let mut tools = Vec::new();
    for tool in &wire.tools {
        read_tool(tool, &mut tools)?;
    }
    let config = wire.generation_config;
    let chat = ChatRequest {
        model: String::new(),
        messages,
        tools,
        tool_choice: wire.tool_config.map_or(ToolChoice::Auto, read_choice),
        max_tokens: config.max_output_tokens,
        temperature: config.temperature,
        stop: config.stop_sequences,
        answer_schema: config.response_json_schema.or(config.response_schema),
        effort: config.thinking_config.and_then(read_effort),
    };
    Ok(Received { chat, stream: false })
}

fn read_content(content: Content<'_>, role: Option<Role>, names: &mut Names) -> Message {
    let said = if content.role.as_deref() == Some("model") { Role::Assistant } else { Role::User };
    let parts = content.parts.into_iter().map(|part| read_part(part, names)).collect();
    Message::new(role.unwrap_or(said), parts)
}

fn read_tool(tool: &Json, tools: &mut Vec<ToolDefinition>) -> Result<(), serde_json::Error> {
    let wire: ToolWire<'_> = tool.read()?;
    let Some(declarations) = wire.function_declarations else {
        let input = ToolInput::Vendor(tool.clone());
        tools.push(ToolDefinition { name: String::new(), description: String::new(), input });
        return Ok(());
    };
    tools.extend(declarations.into_iter().map(|declaration| {
        let schema = declaration.parameters_json_schema.or(declaration.parameters);
        ToolDefinition {
            name: declaration.name.into_owned(),
            description: declaration.description.map(Cow::into_owned).unwrap_or_default(),
            input: ToolInput::Schema(schema.unwrap_or_else(Json::empty_object)),
        }
    }));
    Ok(())
}

fn read_choice(config: ToolConfig<'_>) -> ToolChoice {
    let Some(mut config) = config.function_calling_config else { return ToolChoice::Auto };
    match (&*config.mode, config.allowed_function_names.len()) {
        ("NONE", _) => ToolChoice::None,
        ("ANY", 1) => ToolChoice::Tool(config.allowed_function_names.remove(0)),
        ("ANY", _) => ToolChoice::Any,
        _ => ToolChoice::Auto,
    }
}

fn read_effort(config: ThinkingConfig) -> Option<Effort> {
    match (config.thinking_budget, config.thinking_level) {
        (Some(budget), _) if budget >= 0 => Some(Effort::Tokens(budget.unsigned_abs())),
        (_, Some(level)) => Some(Effort::Named(level)),
        _ => None,
    }
}

pub(super) fn write_request(request: &ChatRequest) -> Vec<u8> {
    let (system, rest) = match request.messages.split_first() {
        Some((first, rest)) if first.role == Role::System => (Some(first), rest),
        _ => (None, request.messages.as_slice()),
    };
    let schema = request.answer_schema.clone();
    to_bytes(&Request {
        system_instruction: system.map(|message| write_content(message, None)),
        contents: rest.iter().map(|message| write_content(message, some(role_word(message.role)))).collect(),
        tools: write_tools(&request.tools),
        tool_config: write_choice(&request.tool_choice),
        generation_config: GenerationConfig {
            temperature: request.temperature,
            max_output_tokens: request.max_tokens,
            stop_sequences: request.stop.clone(),
            response_mime_type: schema.as_ref().map(|_| "application/json".to_owned()),
            response_json_schema: schema,
            response_schema: None,
            thinking_config: request.effort.as_ref().map(write_effort),
        },
    })
}

/// Between the other messages the vendor knows no system.
fn role_word(role: Role) -> &'static str {
    if role == Role::Assistant { "model" } else { "user" }
}

fn write_content<'a>(message: &'a Message, role: Option<Cow<'a, str>>) -> Content<'a> {
    Content { role, parts: message.parts.iter().map(write_part).collect() }
}

fn write_tools(tools: &[ToolDefinition]) -> Vec<Json> {
    let mut wire = Vec::new();
    let mut declarations = Vec::new();
    for tool in tools {
        let schema = match &tool.input {
            ToolInput::Vendor(whole) => {
                wire.push(whole.clone());
                continue;
            }
            ToolInput::Schema(schema) => Some(schema.clone()),
            ToolInput::Text => None,
        };
        declarations.push(Declaration {
            name: Cow::Borrowed(&tool.name),
            description: some(&tool.description),
            parameters_json_schema: schema,
            parameters: None,
        });
    }
    if !declarations.is_empty() {
        let tool = ToolWire { function_declarations: Some(declarations) };
        wire.insert(0, super::content::to_raw(&tool).into());
    }
    wire
}

fn write_choice(choice: &ToolChoice) -> Option<ToolConfig<'static>> {
    let (mode, names) = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => ("NONE", Vec::new()),
        ToolChoice::Any => ("ANY", Vec::new()),
        ToolChoice::Tool(name) => ("ANY", vec![name.clone()]),
    };
    let config = CallingConfig { mode: mode.into(), allowed_function_names: names };
    Some(ToolConfig { function_calling_config: Some(config) })
}

fn write_effort(effort: &Effort) -> ThinkingConfig {
    let (thinking_budget, thinking_level) = match effort {
        Effort::Tokens(tokens) => (i64::try_from(*tokens).ok(), None),
        Effort::Named(name) => (None, Some(name.clone())),
    };
    ThinkingConfig { thinking_budget, thinking_level, include_thoughts: Some(true) }
}
