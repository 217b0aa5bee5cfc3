//! What serde says is wrong, in our words.

use std::fmt::Display;

use serde::de::Error;

use crate::source::nearest;
use crate::{Place, SourceError};

impl Error for SourceError {
    fn custom<T: Display>(message: T) -> Self {
        Self::at(None, message.to_string())
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        unknown("variant", variant, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        unknown("field", field, expected)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format!("missing field `{field}`")).hint(format!("add `{field}: …` here"))
    }
}

fn unknown(what: &str, written: &str, known: &'static [&'static str]) -> SourceError {
    let message = format!("unknown {what} `{written}`, expected one of {}", known.join(", "));
    let error = SourceError::custom(message);
    match nearest(written, known.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

impl SourceError {
    /// The same at a place, unless it has one: the innermost place is the nearest to the mistake.
    pub(super) fn or_at(mut self, place: Option<Place>) -> Self {
        self.place = self.place.or(place);
        self
    }
}
