//! Messages: results of tools are messages of their own here.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::chat::{Arguments, Json, Message, Part, Role, Thinking, ToolCall, ToolResult, texts};
use crate::wire::content::{Raw, TextOr, list_or_null, media_of_url, some, to_raw, url_of_media};

/// With calls as they come, or as parts of the message at once.
#[derive(Serialize, Deserialize, Default)]
#[serde(bound(deserialize = "C: Deserialize<'de>"))]
pub(super) struct MessageWire<'a, C = CallWire<'a>> {
    #[serde(default, borrow)]
    pub(super) role: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) content: Option<TextOr<Raw<'a>>>,
    /// Not of OpenAI, but of most who think and speak its format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "list_or_null", skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<C>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

/// A call, or in a stream a piece of one.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct CallWire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Cow<'a, str>>,
    /// Which of the two fields below is there says it as well.
    #[serde(rename = "type", skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) custom: Option<CustomCall<'a>>,
}

#[derive(Serialize, Deserialize, Default)]
pub(super) struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) arguments: Cow<'a, str>,
}

#[derive(Serialize, Deserialize, Default)]
pub(super) struct CustomCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) input: Cow<'a, str>,
}

/// A call that is a part of its message as soon as it is read.
struct ReadCall(Part);

impl<'de> Deserialize<'de> for ReadCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        CallWire::deserialize(deserializer).map(|call| Self(call.into()))
    }
}

impl From<ReadCall> for Part {
    fn from(call: ReadCall) -> Self {
        call.0
    }
}

/// A piece of a message's content.
#[derive(Serialize, Deserialize, Default)]
struct Piece<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<ImageUrl>,
}

#[derive(Serialize, Deserialize)]
struct ImageUrl {
    url: String,
}

/// Messages that are taken one by one as they are read, so that what one needs for a moment is there again for the next.
#[derive(Default)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    after_result: bool,
}

impl Conversation {
    pub(super) fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    fn take(&mut self, message: MessageWire<'_, ReadCall>) -> Result<(), serde_json::Error> {
        let is_result = message.role == "tool" || message.role == "function";
        let role = match &*message.role {
            "system" | "developer" => Role::System,
            "assistant" => Role::Assistant,
            _ => Role::User,
        };
        let parts = if is_result { vec![read_result(message)?] } else { read_parts(message)? };
        match self.messages.last_mut() {
            // Results of calls that were made together belong together.
            Some(last) if is_result && self.after_result => last.parts.extend(parts),
            _ => self.messages.push(Message::new(role, parts)),
        }
        self.after_result = is_result;
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ConversationVisitor;
        impl<'de> Visitor<'de> for ConversationVisitor {
            type Value = Conversation;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Conversation, A::Error> {
                let mut conversation = Conversation::default();
                while let Some(message) = list.next_element()? {
                    conversation.take(message).map_err(de::Error::custom)?;
                }
                Ok(conversation)
            }
        }
        deserializer.deserialize_seq(ConversationVisitor)
    }
}

fn read_result(message: MessageWire<'_, ReadCall>) -> Result<Part, serde_json::Error> {
    Ok(Part::ToolResult(ToolResult {
        id: message.tool_call_id.map(Cow::into_owned).unwrap_or_default(),
        name: None,
        parts: message.content.unwrap_or_default().into_parts(read_piece)?,
        is_error: false,
    }))
}

pub(super) fn read_parts<C: Into<Part>>(message: MessageWire<'_, C>) -> Result<Vec<Part>, serde_json::Error> {
    let calls = message.tool_calls.into_iter().map(Into::into);
    let thought = message.reasoning_content.filter(|thought| !thought.is_empty());
    if thought.is_none() && message.content.is_none() {
        // The list of the calls becomes that of the parts.
        return Ok(calls.collect());
    }
    let mut parts = Vec::with_capacity(calls.len() + 1);
    if let Some(thought) = thought {
        parts.push(Part::Thinking(Thinking { text: thought.into_owned(), ..Thinking::default() }));
    }
    parts.extend(message.content.unwrap_or_default().into_parts(read_piece)?);
    parts.extend(calls);
    Ok(parts)
}

fn read_piece(raw: &Raw<'_>) -> Result<Part, serde_json::Error> {
    let piece: Piece<'_> = raw.read()?;
    Ok(match (piece.text, piece.image_url) {
        (Some(text), _) => Part::text(text),
        (None, Some(image)) => Part::Media(media_of_url(image.url)),
        (None, None) => Part::Opaque(raw.to_json()),
    })
}

impl From<CallWire<'_>> for Part {
    fn from(call: CallWire<'_>) -> Self {
        Self::ToolCall(call.read())
    }
}

impl CallWire<'_> {
    pub(super) fn read(self) -> ToolCall {
        let (name, arguments) = match (self.function, self.custom) {
            (Some(function), _) => (function.name, Arguments::read(function.arguments.into_owned())),
            (None, Some(custom)) => (custom.name, Arguments::Text(custom.input.into_owned())),
            (None, None) => (None, Arguments::Json(Json::empty_object())),
        };
        ToolCall {
            id: self.id.map(Cow::into_owned).unwrap_or_default(),
            name: name.map(Cow::into_owned).unwrap_or_default(),
            namespace: None,
            arguments,
            signature: None,
        }
    }
}

pub(super) fn write_messages(messages: &[Message]) -> Vec<MessageWire<'_>> {
    let mut wire = Vec::with_capacity(messages.len());
    for message in messages {
        wire.extend(message.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(write_result(result)),
            _ => None,
        }));
        let only_results = message.parts.iter().all(|part| matches!(part, Part::ToolResult(_)));
        if !only_results || message.parts.is_empty() {
            wire.push(write_message(message.role, &message.parts));
        }
    }
    wire
}

fn write_result(result: &ToolResult) -> MessageWire<'_> {
    MessageWire {
        role: "tool".into(),
        content: Some(write_content(&result.parts)),
        tool_call_id: some(&result.id),
        ..MessageWire::default()
    }
}

pub(super) fn write_message(role: Role, parts: &[Part]) -> MessageWire<'_> {
    let thought = parts.iter().find_map(|part| match part {
        Part::Thinking(thinking) if !thinking.text.is_empty() => some(&thinking.text),
        _ => None,
    });
    let calls = parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(write_call(call)),
        _ => None,
    });
    let tool_calls: Vec<CallWire<'_>> = calls.collect();
    let silent = !parts.iter().any(|part| matches!(part, Part::Text(_) | Part::Media(_) | Part::Opaque(_)));
    MessageWire {
        role: role.as_str().into(),
        content: if silent { None } else { Some(write_content(parts)) },
        reasoning_content: thought,
        tool_calls,
        tool_call_id: None,
    }
}

/// One text where that says it all: not all who speak this format take lists.
fn write_content(parts: &[Part]) -> TextOr<Raw<'static>> {
    let plain = parts.iter().all(|part| !matches!(part, Part::Media(_) | Part::Opaque(_)));
    if plain {
        return TextOr::Text(texts(parts));
    }
    TextOr::Many(parts.iter().filter_map(write_piece).map(Raw::from).collect())
}

fn write_piece(part: &Part) -> Option<Json> {
    match part {
        Part::Text(text) => {
            Some(to_raw(&Piece { kind: "text".into(), text: some(&text.text), image_url: None }).into())
        }
        Part::Media(media) => {
            let image_url = Some(ImageUrl { url: url_of_media(media) });
            Some(to_raw(&Piece { kind: "image_url".into(), text: None, image_url }).into())
        }
        Part::Opaque(json) => Some(json.clone()),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    }
}

pub(super) fn write_call(call: &ToolCall) -> CallWire<'_> {
    let name = some(&call.name);
    let (kind, function, custom) = match &call.arguments {
        Arguments::Json(json) => {
            ("function", Some(FunctionCall { name, arguments: Cow::Borrowed(json.as_str()) }), None)
        }
        Arguments::Text(text) => ("custom", None, Some(CustomCall { name, input: Cow::Borrowed(text) })),
    };
    CallWire { index: None, id: some(&call.id), kind: some(kind), function, custom }
}
