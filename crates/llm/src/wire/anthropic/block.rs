//! Blocks: what a message consists of.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::chat::{Arguments, Json, Media, MediaSource, Part, Text, Thinking, ToolCall, ToolResult};
use crate::wire::content::{Raw, TextOr, object_of, some, to_raw};

/// All kinds of blocks in one: which fields are there depends on `kind`.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", default, borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signature: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    content: Option<TextOr<Raw<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
}

pub(super) fn part_of(raw: &Raw<'_>) -> Result<Part, serde_json::Error> {
    let block: Block<'_> = match raw.read() {
        Ok(block) => block,
        Err(error) if is_known(raw)? => return Err(error),
        Err(_) => return Ok(Part::Opaque(raw.to_json())),
    };
    Ok(match &*block.kind {
        "text" => Part::text(owned(block.text)),
        "thinking" => Part::Thinking(Thinking {
            text: owned(block.thinking),
            signature: block.signature.map(Cow::into_owned),
            ..Thinking::default()
        }),
        "redacted_thinking" => Part::Thinking(Thinking {
            signature: block.data.map(Cow::into_owned),
            redacted: true,
            ..Thinking::default()
        }),
        "tool_use" => Part::ToolCall(ToolCall {
            id: owned(block.id),
            name: owned(block.name),
            namespace: None,
            arguments: Arguments::Json(block.input.unwrap_or_else(Json::empty_object)),
            signature: None,
        }),
        "tool_result" => Part::ToolResult(ToolResult {
            id: owned(block.tool_use_id),
            name: None,
            parts: block.content.unwrap_or_default().into_parts(part_of)?,
            is_error: block.is_error.unwrap_or_default(),
        }),
        "image" | "document" => match block.source.and_then(media_of) {
            Some(media) => Part::Media(media),
            None => Part::Opaque(raw.to_json()),
        },
        _ => Part::Opaque(raw.to_json()),
    })
}

/// Most blocks of kinds that we do not know have fields that we do, in other shapes.
fn is_known(raw: &Raw<'_>) -> Result<bool, serde_json::Error> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow, default)]
        kind: Cow<'a, str>,
    }
    let known = ["text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"];
    Ok(known.contains(&&*raw.read::<Kind<'_>>()?.kind))
}

fn media_of(source: Source<'_>) -> Option<Media> {
    let mime = owned(source.media_type);
    match (&*source.kind, source.data, source.url) {
        ("base64", Some(data), _) => Some(Media { mime, source: MediaSource::Base64(data.into_owned()) }),
        ("url", _, Some(url)) => Some(Media { mime, source: MediaSource::Url(url.into_owned()) }),
        _ => None,
    }
}

fn owned(text: Option<Cow<'_, str>>) -> String {
    text.map(Cow::into_owned).unwrap_or_default()
}

pub(super) fn blocks_of(parts: &[Part]) -> Vec<Raw<'static>> {
    parts.iter().map(|part| block_json(part).into()).collect()
}

pub(super) fn block_json(part: &Part) -> Json {
    match part {
        Part::Opaque(json) => json.clone(),
        part => to_raw(&block_of(part)).into(),
    }
}

fn block_of(part: &Part) -> Block<'_> {
    let kind = |kind: &'static str| Block { kind: kind.into(), ..Block::default() };
    match part {
        Part::Text(Text { text, .. }) => Block { text: some(text), ..kind("text") },
        Part::Thinking(thinking) if thinking.redacted => {
            Block { data: thinking.signature.as_deref().map(Cow::Borrowed), ..kind("redacted_thinking") }
        }
        Part::Thinking(thinking) => Block {
            thinking: some(&thinking.text),
            signature: some(thinking.signature.as_deref().unwrap_or_default()),
            ..kind("thinking")
        },
        Part::ToolCall(call) => Block {
            id: some(&call.id),
            name: some(&call.name),
            input: Some(object_of(&call.arguments)),
            ..kind("tool_use")
        },
        Part::ToolResult(result) => Block {
            tool_use_id: some(&result.id),
            content: Some(TextOr::Many(blocks_of(&result.parts))),
            is_error: result.is_error.then_some(true),
            ..kind("tool_result")
        },
        Part::Media(media) => {
            let image = media.mime.starts_with("image/") || media.mime.is_empty();
            Block { source: Some(source_of(media)), ..kind(if image { "image" } else { "document" }) }
        }
        Part::Opaque(_) => Block::default(),
    }
}

fn source_of(media: &Media) -> Source<'_> {
    match &media.source {
        MediaSource::Base64(data) => {
            Source { kind: "base64".into(), media_type: some(&media.mime), data: some(data), url: None }
        }
        MediaSource::Url(url) => Source { kind: "url".into(), media_type: None, data: None, url: some(url) },
    }
}
