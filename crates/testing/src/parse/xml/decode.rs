//! From the bytes of a token to its meaning.

use std::borrow::Cow;

use memchr::memchr;

use super::{LONGEST_ENTITY, Token};

/// The attributes of a tag, as written.
#[derive(Debug, Clone, Copy)]
pub(in crate::parse) struct Attributes<'a>(&'a str);

impl<'a> Attributes<'a> {
    /// Names with their values, each value with its entities as they stand.
    pub(in crate::parse) fn raw(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let equals = memchr(b'=', rest.as_bytes())?;
            let name = rest[..equals].trim_ascii();
            let after = rest[equals + 1..].trim_ascii_start();
            let quote = *after.as_bytes().first().filter(|quote| matches!(quote, b'"' | b'\''))?;
            let value = &after[1..];
            // A tag that was cut has a value without its end.
            let end = memchr(quote, value.as_bytes()).unwrap_or(value.len());
            rest = value.get(end + 1..).unwrap_or_default();
            Some((name, &value[..end]))
        })
    }

    /// The value of one.
    pub(in crate::parse) fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.raw().find(|(it, _)| *it == name).map(|(_, value)| unescape(value))
    }

    /// Whether there are none.
    pub(in crate::parse) fn is_empty(self) -> bool {
        self.raw().next().is_none()
    }
}

pub(super) fn tag(bytes: &[u8], each: &mut impl FnMut(Token<'_>)) {
    let text = lossy(bytes.strip_prefix(b"<").unwrap_or(bytes));
    if let Some(name) = text.strip_prefix('/') {
        return each(Token::Close { name: local(name.trim_end()) });
    }
    let (inner, empty) = text.strip_suffix('/').map_or((&*text, false), |inner| (inner, true));
    let end = inner.find(char::is_whitespace).unwrap_or(inner.len());
    each(Token::Open { name: local(&inner[..end]), attributes: Attributes(&inner[end..]), empty });
}

/// A name without its namespace.
fn local(name: &str) -> &str {
    memchr(b':', name.as_bytes()).map_or(name, |colon| &name[colon + 1..])
}

/// As the standard library does it, but faster for what is right, as nearly all is.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// A piece of text as it stands in the document. Most of it nobody reads, so it is decoded when someone does.
#[derive(Debug, Clone, Copy)]
pub(in crate::parse) struct Text<'a> {
    pub bytes: &'a [u8],
    /// Whether entities are to be resolved; not so in a section.
    pub is_escaped: bool,
}

impl<'a> Text<'a> {
    pub(in crate::parse) fn decoded(self) -> Cow<'a, str> {
        match lossy(self.bytes) {
            text if !self.is_escaped => text,
            Cow::Borrowed(text) => unescape(text),
            Cow::Owned(text) => Cow::Owned(unescape(&text).into_owned()),
        }
    }
}

pub(super) fn escaped(bytes: &[u8], each: &mut impl FnMut(Token<'_>)) {
    if !bytes.is_empty() {
        each(Token::Text(Text { bytes, is_escaped: true }));
    }
}

pub(super) fn plain(bytes: &[u8], each: &mut impl FnMut(Token<'_>)) {
    if !bytes.is_empty() {
        each(Token::Text(Text { bytes, is_escaped: false }));
    }
}

/// The text with its entities resolved; what is none of XML's own stays as it stands.
pub(in crate::parse) fn unescape(text: &str) -> Cow<'_, str> {
    if memchr(b'&', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'&', rest.as_bytes()) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let near = &rest.as_bytes()[..rest.len().min(LONGEST_ENTITY)];
        let resolved = memchr(b';', near).and_then(|end| Some((entity(&rest[1..end])?, end)));
        if let Some((character, end)) = resolved {
            plain.push(character);
            rest = &rest[end + 1..];
        } else {
            plain.push('&');
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}
