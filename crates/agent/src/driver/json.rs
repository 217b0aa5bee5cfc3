//! Reading JSON that may be anything.
//!
//! A field whose type is not certain is taken as it stands ([`RawValue`]) and read here: a vendor that changes
//! one field does not cost us the event it is in.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

/// A text that is not copied if it needs no unescaping. `Option<Cow<str>>` would always be: serde borrows only a
/// `Cow` that it sees by name.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The value, if it is a text.
pub(crate) fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(raw?.get()).ok().map(|text| text.0)
}

/// The value, if it has the type.
pub(crate) fn read<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// A whole line; or what is wrong with it, in words that do not repeat its content.
pub(crate) fn line<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| describe(&error))
}

pub(crate) fn describe(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof => format!("the JSON is cut off after column {}", error.column()),
        Category::Syntax => format!("broken JSON at column {}", error.column()),
        Category::Data | Category::Io => {
            format!("an event of unknown form (column {})", error.column())
        }
    }
}
