//! Reads JSON as `serde_json` does, and long texts with many escapes faster: they are most of what an agent sends.
//!
//! It knows no errors. What it cannot read is read again by `serde_json`, which may know better and has the words for what is
//! wrong; numbers and what is kept letter by letter are left to it from the start.

#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

/// Deeper documents are left to `serde_json`, which has a limit of its own.
const MOST_DEPTH: usize = 64;

/// How `serde_json` calls what is kept letter by letter. Were it called otherwise one day, it would be left to `serde_json`.
const RAW: &str = "$serde_json::private::RawValue";

/// Reads a document.
pub(super) fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    read(text).or_else(|Unread| serde_json::from_str(text))
}

fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Unread> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = T::deserialize(&mut reader)?;
    if reader.peek().is_some() { Err(Unread) } else { Ok(value) }
}

/// It could not be read here.
#[derive(Debug)]
struct Unread;

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is left to others")
    }
}

impl std::error::Error for Unread {}

impl de::Error for Unread {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: usize,
}

impl<'de> Reader<'de> {
    fn rest(&self) -> Result<&'de str, Unread> {
        self.text.get(self.at..).ok_or(Unread)
    }

    /// What comes next and is no space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Unread> {
        if self.peek() != Some(byte) {
            return Err(Unread);
        }
        self.at += 1;
        Ok(())
    }

    /// Whether there is one more in a list or an object that ends with a byte; goes there.
    fn has_next(&mut self, end: u8, is_first: &mut bool) -> Result<bool, Unread> {
        if self.peek() == Some(end) {
            return Ok(false);
        }
        if !std::mem::take(is_first) {
            self.expect(b',')?;
            // Nothing may follow the last comma.
            return if self.peek() == Some(end) { Err(Unread) } else { Ok(true) };
        }
        Ok(true)
    }

    fn string(&mut self) -> Result<Cow<'de, str>, Unread> {
        self.expect(b'"')?;
        let (text, length) = text::read(self.rest()?).ok_or(Unread)?;
        self.at += length;
        Ok(text)
    }

    /// A value letter by letter.
    fn raw(&mut self) -> Result<&'de str, Unread> {
        let mut values = serde_json::Deserializer::from_str(self.rest()?).into_iter::<&'de RawValue>();
        let value = values.next().and_then(Result::ok).ok_or(Unread)?;
        self.at += values.byte_offset();
        Ok(value.get())
    }

    fn inside<V>(
        &mut self,
        end: u8,
        visit: impl FnOnce(Elements<'_, 'de>) -> Result<V, Unread>,
    ) -> Result<V, Unread> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(Unread);
        }
        let value = visit(Elements { reader: self, end, is_first: true })?;
        self.depth -= 1;
        self.expect(end)?;
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Unread;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        match self.peek() {
            Some(b'"') => match self.string()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            Some(b'[') => self.inside(b']', |elements| visitor.visit_seq(elements)),
            Some(b'{') => self.inside(b'}', |elements| visitor.visit_map(elements)),
            _ => {
                let raw = self.raw()?;
                serde_json::Deserializer::from_str(raw).deserialize_any(visitor).map_err(|_| Unread)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        if self.peek() == Some(b'n') && self.rest()?.starts_with("null") {
            self.at += "null".len();
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unread> {
        if name != RAW {
            return visitor.visit_newtype_struct(self);
        }
        self.peek();
        let raw = BorrowedStrDeserializer::<Unread>::new(self.raw()?);
        visitor.visit_map(MapDeserializer::new(std::iter::once((name, raw))))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.raw()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// What is in a list or an object.
struct Elements<'r, 'de> {
    reader: &'r mut Reader<'de>,
    end: u8,
    is_first: bool,
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Unread;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Unread> {
        if !self.reader.has_next(self.end, &mut self.is_first)? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> MapAccess<'de> for Elements<'_, 'de> {
    type Error = Unread;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Unread> {
        if !self.reader.has_next(self.end, &mut self.is_first)? {
            return Ok(None);
        }
        if self.reader.peek() != Some(b'"') {
            return Err(Unread);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Unread> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}
