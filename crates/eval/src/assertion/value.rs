//! What stands behind `value:`, as each type wants it.

use globset::GlobBuilder;
use regex::RegexBuilder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Pattern, Range};

/// A larger program is not what someone meant.
const MOST_REGEX_BYTES: usize = 1 << 20;

pub(super) fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(is) => Ok(is.to_string()),
        _ => Err("`value` must be a text".to_owned()),
    }
}

pub(super) fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(values) if !values.is_empty() => values.iter().map(text).collect(),
        Value::Array(_) => Err("`value` must name at least one".to_owned()),
        one => Ok(vec![text(one).map_err(|_| "`value` must be a text or a list of texts".to_owned())?]),
    }
}

pub(super) fn regex(text: &str) -> Result<regex::Regex, String> {
    let made = RegexBuilder::new(text).size_limit(MOST_REGEX_BYTES).build();
    made.map_err(|error| {
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default();
        format!("`{text}` is not a regular expression: {}", last.trim_start_matches("error: "))
    })
}

pub(super) fn patterns(value: &Value) -> Result<Vec<Pattern>, String> {
    texts(value)?.into_iter().map(pattern).collect()
}

fn pattern(written: String) -> Result<Pattern, String> {
    let glob = GlobBuilder::new(&written).literal_separator(true).build();
    let glob = glob.map_err(|error| format!("`{written}` is not a pattern of paths: {}", error.kind()))?;
    Ok(Pattern { glob: glob.compile_matcher(), written })
}

pub(super) fn whole(value: &Value, what: &str) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| format!("`{what}` must be a whole number"))
}

pub(super) fn number(value: &Value, what: &str) -> Result<f64, String> {
    let number = value.as_f64().filter(|number| *number >= 0.0);
    number.ok_or_else(|| format!("`{what}` must be a number, 0 or more"))
}

/// A number, or `{ min: …, max: … }`.
pub(super) fn range(value: &Value) -> Result<Range, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Bounds {
        min: Option<u64>,
        max: Option<u64>,
    }
    if let Some(number) = value.as_u64() {
        return Ok(Range { min: number, max: number });
    }
    let expected = "`value` must be a whole number or `{ min: …, max: … }`";
    let bounds: Bounds = map(value).map_err(|_| expected.to_owned())?;
    let range = Range { min: bounds.min.unwrap_or(0), max: bounds.max.unwrap_or(u64::MAX) };
    match (bounds.min, bounds.max) {
        (None, None) => Err(expected.to_owned()),
        _ if range.min > range.max => {
            Err(format!("`min` ({}) is more than `max` ({})", range.min, range.max))
        }
        _ => Ok(range),
    }
}

/// A map with keys that are known.
pub(super) fn map<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    if !value.is_object() {
        return Err("`value` must be a map".to_owned());
    }
    T::deserialize(value).map_err(|error| format!("`value`: {error}"))
}
