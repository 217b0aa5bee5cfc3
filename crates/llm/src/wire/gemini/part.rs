//! Parts: what a content consists of.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::chat::{Arguments, Json, Media, MediaSource, Part, Text, Thinking, ToolCall, ToolResult, texts};
use crate::wire::content::{object_of, some, to_raw};

/// All kinds of parts in one.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartWire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    #[serde(alias = "thought_signature", skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<Cow<'a, str>>,
    #[serde(alias = "function_call", skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<Call<'a>>,
    #[serde(alias = "function_response", skip_serializing_if = "Option::is_none")]
    pub(super) function_response: Option<Response<'a>>,
    #[serde(alias = "inline_data", skip_serializing_if = "Option::is_none")]
    pub(super) inline_data: Option<Inline<'a>>,
    #[serde(alias = "file_data", skip_serializing_if = "Option::is_none")]
    pub(super) file_data: Option<File<'a>>,
}

impl<'a> PartWire<'a> {
    pub(super) fn words(text: &'a str, thought: bool) -> Self {
        Self { text: some(text), thought, ..Self::default() }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(default)]
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Json>,
}

#[derive(Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
pub(super) struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(default)]
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Json>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Inline<'a> {
    #[serde(alias = "mime_type", default)]
    mime_type: Cow<'a, str>,
    #[serde(default)]
    data: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File<'a> {
    #[serde(alias = "mime_type", default)]
    mime_type: Cow<'a, str>,
    #[serde(alias = "file_uri", default)]
    file_uri: Cow<'a, str>,
}

/// What a tool gave back: the vendor takes any object, and looks for these.
#[derive(Serialize, Deserialize, Default)]
struct Given<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
}

/// The vendor may leave ids away: then the n-th call of a tool has the n-th result of that tool.
#[derive(Debug, Default)]
pub(super) struct Names {
    called: HashMap<String, usize>,
    answered: HashMap<String, usize>,
}

fn made_id(counts: &mut HashMap<String, usize>, name: &str) -> String {
    let count = counts.entry(name.to_owned()).or_default();
    *count += 1;
    format!("{name}-{count}")
}

pub(super) fn read_part(part: PartWire<'_>, names: &mut Names) -> Part {
    let signature = part.thought_signature.map(Cow::into_owned);
    if let Some(call) = part.function_call {
        let id = call.id.map(Cow::into_owned);
        return Part::ToolCall(ToolCall {
            id: id.unwrap_or_else(|| made_id(&mut names.called, &call.name)),
            name: call.name.into_owned(),
            namespace: None,
            arguments: Arguments::Json(call.args.unwrap_or_else(Json::empty_object)),
            signature,
        });
    }
    if let Some(response) = part.function_response {
        return Part::ToolResult(read_result(response, names));
    }
    if let Some(inline) = part.inline_data {
        let source = MediaSource::Base64(inline.data.into_owned());
        return Part::Media(Media { mime: inline.mime_type.into_owned(), source });
    }
    if let Some(file) = part.file_data {
        let source = MediaSource::Url(file.file_uri.into_owned());
        return Part::Media(Media { mime: file.mime_type.into_owned(), source });
    }
    let text = part.text.map(Cow::into_owned).unwrap_or_default();
    if part.thought {
        return Part::Thinking(Thinking { text, signature, ..Thinking::default() });
    }
    Part::Text(Text { text, signature })
}

fn read_result(response: Response<'_>, names: &mut Names) -> ToolResult {
    let whole = response.response.unwrap_or_else(Json::empty_object);
    let given: Given<'_> = whole.read().unwrap_or_default();
    let is_error = given.error.is_some();
    let text = given.error.or(given.output).map(Cow::into_owned);
    let id = response.id.map(Cow::into_owned);
    ToolResult {
        id: id.unwrap_or_else(|| made_id(&mut names.answered, &response.name)),
        name: Some(response.name.into_owned()),
        parts: vec![Part::text(text.unwrap_or_else(|| whole.as_str().to_owned()))],
        is_error,
    }
}

pub(super) fn write_part(part: &Part) -> PartWire<'_> {
    let signed = |signature: &'_ Option<String>| signature.clone().map(Cow::Owned);
    match part {
        Part::Text(Text { text, signature }) => {
            PartWire { text: some(text), thought_signature: signed(signature), ..PartWire::default() }
        }
        Part::Thinking(thinking) => PartWire {
            text: some(&thinking.text),
            thought: true,
            thought_signature: signed(&thinking.signature),
            ..PartWire::default()
        },
        Part::ToolCall(call) => PartWire {
            function_call: Some(Call {
                id: some(&call.id),
                name: Cow::Borrowed(&call.name),
                args: Some(object_of(&call.arguments)),
            }),
            thought_signature: signed(&call.signature),
            ..PartWire::default()
        },
        Part::ToolResult(result) => {
            PartWire { function_response: Some(write_result(result)), ..PartWire::default() }
        }
        Part::Media(media) => write_media(media),
        // No other vendor's blocks make sense here, and Google's are all known.
        Part::Opaque(json) => PartWire { text: some(json.as_str()), ..PartWire::default() },
    }
}

fn write_result(result: &ToolResult) -> Response<'_> {
    let text = Some(Cow::Owned(texts(&result.parts)));
    let given = if result.is_error {
        Given { error: text, output: None }
    } else {
        Given { output: text, error: None }
    };
    Response {
        id: some(&result.id),
        name: Cow::Borrowed(result.name.as_deref().unwrap_or_default()),
        response: Some(to_raw(&given).into()),
    }
}

fn write_media(media: &Media) -> PartWire<'_> {
    let mime_type = Cow::Borrowed(media.mime.as_str());
    match &media.source {
        MediaSource::Base64(data) => {
            let inline = Inline { mime_type, data: Cow::Borrowed(data) };
            PartWire { inline_data: Some(inline), ..PartWire::default() }
        }
        MediaSource::Url(url) => {
            let file = File { mime_type, file_uri: Cow::Borrowed(url) };
            PartWire { file_data: Some(file), ..PartWire::default() }
        }
    }
}
