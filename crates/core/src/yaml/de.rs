//! From a tree to any type. The type decides: an unquoted `1.10` is a number to one and a text to another.

use serde::de::value::U64Deserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::spanned::SPANNED;
use super::{Node, Plain, Tree};
use crate::{Place, SourceError};

/// What stands for a boolean in quotes.
const YES: [&str; 4] = ["true", "yes", "y", "on"];
const NO: [&str; 4] = ["false", "no", "n", "off"];

impl Node {
    fn wrong(&self, message: impl Into<String>) -> SourceError {
        SourceError::at(self.place, message)
    }

    pub(super) fn text(&self) -> Result<&str, SourceError> {
        match &self.tree {
            Tree::Plain { text, .. } | Tree::Text(text) => Ok(text),
            Tree::Null => Err(self.wrong("expected a text, and there is nothing")),
            Tree::List(_) | Tree::Map(_) => Err(self.wrong("expected a text")),
        }
    }

    fn bool(&self) -> Result<bool, SourceError> {
        let is_one_of =
            |words: [&str; 4], text: &str| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        match &self.tree {
            Tree::Plain { value: Plain::Bool(value), .. } => Ok(*value),
            Tree::Text(text) if is_one_of(YES, text) => Ok(true),
            Tree::Text(text) if is_one_of(NO, text) => Ok(false),
            _ => Err(self.wrong("expected `true` or `false`")),
        }
    }

    fn integer(&self) -> Result<i128, SourceError> {
        match &self.tree {
            Tree::Plain { value: Plain::Unsigned(value), .. } => Some(i128::from(*value)),
            Tree::Plain { value: Plain::Signed(value), .. } => Some(i128::from(*value)),
            Tree::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
        .ok_or_else(|| self.wrong("expected a whole number"))
    }

    fn float(&self) -> Result<f64, SourceError> {
        #[expect(clippy::cast_precision_loss, reason = "a float was asked for")]
        let value = match &self.tree {
            Tree::Plain { value: Plain::Unsigned(value), .. } => Some(*value as f64),
            Tree::Plain { value: Plain::Signed(value), .. } => Some(*value as f64),
            // `.inf` is meant; `1e999` is a mistake.
            Tree::Plain { value: Plain::Float(value), text } => {
                Some(*value).filter(|value| value.is_finite() || !text.contains(|c: char| c.is_ascii_digit()))
            }
            Tree::Text(text) => text.trim().parse().ok().filter(|value: &f64| value.is_finite()),
            _ => None,
        };
        value.ok_or_else(|| self.wrong("expected a number"))
    }

    /// The items of a list; nothing is an empty one.
    fn items(&self) -> Result<&[Node], SourceError> {
        match &self.tree {
            Tree::List(items) => Ok(items),
            Tree::Null => Ok(&[]),
            _ => Err(self.wrong("expected a list")),
        }
    }

    /// The entries of a mapping; nothing is an empty one.
    pub(crate) fn entries(&self) -> Result<&[(Node, Node)], SourceError> {
        match &self.tree {
            Tree::Map(entries) => Ok(entries),
            Tree::Null => Ok(&[]),
            _ => Err(self.wrong("expected a mapping")),
        }
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
            let number = <$type>::try_from(self.integer()?).map_err(|_| {
                self.wrong(format!("expected a whole number from {} to {}", <$type>::MIN, <$type>::MAX))
            })?;
            visitor.$visit(number)
        }
    )*};
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = SourceError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        match &self.tree {
            Tree::Null => visitor.visit_unit(),
            Tree::Plain { value: Plain::Bool(value), .. } => visitor.visit_bool(*value),
            Tree::Plain { value: Plain::Unsigned(value), .. } => visitor.visit_u64(*value),
            Tree::Plain { value: Plain::Signed(value), .. } => visitor.visit_i64(*value),
            Tree::Plain { value: Plain::Float(value), text } if !value.is_finite() => {
                Err(self.wrong(format!("`{text}` is not a finite number")))
            }
            Tree::Plain { value: Plain::Float(value), .. } => visitor.visit_f64(*value),
            Tree::Text(text) => visitor.visit_borrowed_str(text),
            Tree::List(_) => self.deserialize_seq(visitor),
            Tree::Map(_) => self.deserialize_map(visitor),
        }
        .map_err(|error| error.or_at(self.place))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        visitor.visit_bool(self.bool()?)
    }

    integers! {
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        visitor.visit_borrowed_str(self.text()?).map_err(|error: SourceError| error.or_at(self.place))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        match self.tree {
            Tree::Null => visitor.visit_none(),
            _ => visitor.visit_some(self).map_err(|error| error.or_at(self.place)),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        match self.tree {
            Tree::Null => visitor.visit_unit(),
            _ => Err(self.wrong("expected nothing here")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SourceError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SourceError> {
        match name {
            SPANNED => visitor.visit_seq(PlaceAndValue { node: self, next: 0 }),
            _ => visitor.visit_newtype_struct(self),
        }
        .map_err(|error| error.or_at(self.place))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        visitor.visit_seq(Items(self.items()?)).map_err(|error| error.or_at(self.place))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, SourceError> {
        match self.items()?.len() {
            found if found == len => self.deserialize_seq(visitor),
            found => Err(self.wrong(format!("expected a list of {len}, found {found}"))),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, SourceError> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        let entries = self.entries()?;
        // A missing field is reported at the end of the mapping that lacks it: there it can be added.
        let end = entries.last().map_or(self.place, |(key, _)| key.place);
        visitor.visit_map(Fields { rest: entries, value: None }).map_err(|error| error.or_at(end))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SourceError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SourceError> {
        let variant = match &self.tree {
            Tree::Map(entries) => match entries.as_slice() {
                [(name, value)] => Variant { name, value: Some(value) },
                [] => return Err(self.wrong("expected a name")),
                [_, (second, _), ..] => return Err(second.wrong("expected only one key")),
            },
            Tree::List(_) => return Err(self.wrong("expected a name, or a mapping with one key")),
            _ => Variant { name: self, value: None },
        };
        visitor.visit_enum(variant).map_err(|error| error.or_at(self.place))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SourceError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { char bytes byte_buf }
}

struct Items<'de>(&'de [Node]);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = SourceError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SourceError> {
        let Some((item, rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        seed.deserialize(item).map(Some).map_err(|error| error.or_at(item.place))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Fields<'de> {
    rest: &'de [(Node, Node)],
    value: Option<&'de Node>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = SourceError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, SourceError> {
        let Some(((key, value), rest)) = self.rest.split_first() else { return Ok(None) };
        (self.rest, self.value) = (rest, Some(value));
        seed.deserialize(key).map(Some).map_err(|error| error.or_at(key.place))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, SourceError> {
        let value = self.value.take().ok_or_else(|| SourceError::at(None, "a value without a key"))?;
        seed.deserialize(value).map_err(|error| error.or_at(value.place))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// `name`, or `name: value`.
struct Variant<'de> {
    name: &'de Node,
    value: Option<&'de Node>,
}

impl<'de> Variant<'de> {
    fn value(&self) -> Result<&'de Node, SourceError> {
        let name = self.name.text()?;
        self.value.ok_or_else(|| self.name.wrong(format!("`{name}` needs a value: write `{name}: …`")))
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = SourceError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), SourceError> {
        let name = seed.deserialize(self.name).map_err(|error| error.or_at(self.name.place))?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = SourceError;

    fn unit_variant(self) -> Result<(), SourceError> {
        match self.value {
            Some(value) if value.tree != Tree::Null => {
                Err(value.wrong(format!("`{}` has no value", self.name.text()?)))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, SourceError> {
        let value = self.value()?;
        seed.deserialize(value).map_err(|error| error.or_at(value.place))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, SourceError> {
        self.value()?.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SourceError> {
        self.value()?.deserialize_map(visitor)
    }
}

/// What [`Spanned`](super::Spanned) reads: line, column, value.
struct PlaceAndValue<'de> {
    node: &'de Node,
    next: u8,
}

impl<'de> SeqAccess<'de> for PlaceAndValue<'de> {
    type Error = SourceError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SourceError> {
        let place = self.node.place.unwrap_or(Place { line: 0, column: 0 });
        let number = |number: u64| -> U64Deserializer<SourceError> { number.into_deserializer() };
        self.next += 1;
        match self.next {
            1 => seed.deserialize(number(place.line)).map(Some),
            2 => seed.deserialize(number(place.column)).map(Some),
            _ => seed.deserialize(self.node).map(Some),
        }
    }
}
