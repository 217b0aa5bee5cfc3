//! Shapes that several vendors share.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::chat::{Arguments, Json, Media, MediaSource, Part};

/// A text, or a list: vendors take both for most contents.
#[derive(Debug, Clone)]
pub(super) enum TextOr<T> {
    Text(String),
    Many(Vec<T>),
}

impl<T> TextOr<T> {
    pub(super) fn into_parts(
        self,
        read: impl Fn(&T) -> Result<Part, serde_json::Error>,
    ) -> Result<Vec<Part>, serde_json::Error> {
        match self {
            Self::Text(text) => Ok(vec![Part::text(text)]),
            Self::Many(pieces) => pieces.iter().map(read).collect(),
        }
    }
}

impl<T> Default for TextOr<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOrVisitor<T> {
            type Value = TextOr<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(text.to_owned()))
            }
            fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
                Ok(TextOr::Text(text))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(TextOr::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(TextOr::Many(items))
            }
        }
        deserializer.deserialize_any(TextOrVisitor(std::marker::PhantomData))
    }
}

impl<T: Serialize> Serialize for TextOr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Many(items) => items.serialize(serializer),
        }
    }
}

/// A part of a document that is kept letter by letter: borrowed from the document when read, owned when to be written.
#[derive(Debug, Clone)]
pub(super) enum Raw<'a> {
    Read(&'a RawValue),
    Written(Json),
}

impl Raw<'_> {
    pub(super) fn read<'s, T: Deserialize<'s>>(&'s self) -> Result<T, serde_json::Error> {
        match self {
            Self::Read(raw) => serde_json::from_str(raw.get()),
            Self::Written(json) => json.read(),
        }
    }

    pub(super) fn to_json(&self) -> Json {
        match self {
            Self::Read(raw) => (*raw).to_owned().into(),
            Self::Written(json) => json.clone(),
        }
    }
}

impl From<Json> for Raw<'_> {
    fn from(json: Json) -> Self {
        Self::Written(json)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(Self::Read)
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Read(raw) => raw.serialize(serializer),
            Self::Written(json) => json.serialize(serializer),
        }
    }
}

/// Reads a body. Checking the encoding of the whole once is faster than checking each text.
pub(super) fn from_bytes<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, serde_json::Error> {
    let text = std::str::from_utf8(body).map_err(serde::de::Error::custom)?;
    serde_json::from_str(text)
}

/// The tools of a request letter by letter, as those that the vendor runs itself are kept. Few requests have such a tool, and
/// only they are read a second time.
pub(super) fn raw_tools(body: &[u8]) -> Result<Vec<Json>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Tools {
        #[serde(default, deserialize_with = "list_or_null")]
        tools: Vec<Json>,
    }
    from_bytes::<Tools>(body).map(|request| request.tools)
}

/// `null` where a list could be is none.
pub(super) fn list_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Our own types and a vector: writing one cannot fail.
pub(super) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// As [`to_bytes`], for what goes into something else.
pub(super) fn to_raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A borrowed text as a field takes it.
#[expect(clippy::unnecessary_wraps, reason = "fields are optional, and this is how they are filled")]
pub(super) fn some(text: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(text))
}

/// `data:image/png;base64,…`, as OpenAI carries pictures; any other address is just that.
pub(super) fn media_of_url(url: String) -> Media {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((mime, data)) => Media { mime: mime.to_owned(), source: MediaSource::Base64(data.to_owned()) },
        None => Media { mime: String::new(), source: MediaSource::Url(url) },
    }
}

/// The vendor takes objects only; free text goes in as one.
pub(super) fn object_of(arguments: &Arguments) -> Json {
    #[derive(Serialize)]
    struct FreeText<'a> {
        input: &'a str,
    }
    match arguments {
        Arguments::Json(json) => json.clone(),
        Arguments::Text(text) => to_raw(&FreeText { input: text }).into(),
    }
}

/// The reverse.
pub(super) fn url_of_media(media: &Media) -> String {
    match &media.source {
        MediaSource::Base64(data) => format!("data:{};base64,{data}", media.mime),
        MediaSource::Url(url) => url.clone(),
    }
}

/// A text in pieces of about so many bytes, cut between characters. An empty text has none.
pub(crate) fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = size.max(1).min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, more) = rest.split_at(end);
        rest = more;
        Some(piece)
    })
}

/// A name as a part of a path.
pub(super) fn path_segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'@');
    let escaped = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(escaped).collect()
}

/// An answer that does not say that it is over is none.
pub(super) fn without_end() -> serde_json::Error {
    serde::de::Error::custom("it does not say why it ended")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_make_the_text_again(text in "\\PC{0,60}", size in 0usize..9) {
            let cut: Vec<&str> = pieces(&text, size).collect();
            prop_assert!(cut.iter().all(|piece| !piece.is_empty()));
            prop_assert_eq!(cut.concat(), text);
        }
    }
}
