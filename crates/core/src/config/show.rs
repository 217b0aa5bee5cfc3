//! Settings as lines that people read.

use serde_json::Value;

use super::merge::{ANY_AGENT, SHAPE, is_section, shape_of};
use super::{Origin, Settings};
use crate::yaml::Node;

impl Settings {
    /// Every setting as a line: key, value, origin.
    pub fn lines(&self) -> Vec<(String, String, Origin)> {
        let mut lines = Vec::new();
        // Settings are plain values with texts for keys, which always are JSON.
        let all = serde_json::to_value(self).unwrap_or_default();
        self.add_lines(&SHAPE, &all, &mut Vec::new(), &mut lines);
        lines
    }

    fn add_lines(
        &self,
        shape: &Node,
        value: &Value,
        path: &mut Vec<String>,
        lines: &mut Vec<(String, String, Origin)>,
    ) {
        let (true, Value::Object(values)) = (is_section(shape), value) else {
            lines.push((path.join("."), text_of(path, value), self.origins.at(path).clone()));
            return;
        };
        // In the order of the definition; agents by their names.
        let names: Vec<String> = match shape.get(ANY_AGENT) {
            Some(_) => values.keys().cloned().collect(),
            None => shape.entries().unwrap_or_default().iter().filter_map(|(key, _)| key.to().ok()).collect(),
        };
        for name in names {
            if let (Some(shape), Some(value)) = (shape_of(shape, &name), values.get(&name)) {
                path.push(name);
                self.add_lines(shape, value, path, lines);
                path.pop();
            }
        }
    }
}

fn text_of(path: &[String], value: &Value) -> String {
    let (section, name) = (path.first().map(String::as_str), path.last().map(String::as_str));
    let joined = |parts: Vec<String>, between: &str| {
        if parts.is_empty() { "-".to_owned() } else { parts.join(between) }
    };
    match value {
        Value::Null => "-".to_owned(),
        Value::String(address) if name == Some("store") => without_password(address),
        Value::Array(items) if items.is_empty() && section == Some("check") => "nothing".to_owned(),
        Value::Array(items) => {
            let between = match section {
                Some("check") => "; ",
                Some("quality") => ", ",
                _ => " ",
            };
            joined(items.iter().map(plain).collect(), between)
        }
        Value::Object(limits) if name == Some("budget") => {
            let set = |unit: &'static str| Some((limits.get(unit).filter(|limit| !limit.is_null())?, unit));
            let limits = ["usd", "tokens", "turns"].into_iter().filter_map(set);
            joined(limits.map(|(limit, unit)| format!("{} {unit}", plain(limit))).collect(), " ")
        }
        Value::Object(variables) => {
            joined(variables.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect(), " ")
        }
        other => plain(other),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // `2`, not `2.0`.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

/// An address as it may be shown.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    // A password may have an `@` in it: the last one before the path ends it.
    let authority = rest.split('/').next().unwrap_or(rest);
    let Some((user, host)) = authority.rsplit_once('@') else { return address.to_owned() };
    let name = user.split(':').next().unwrap_or(user);
    format!("{scheme}://{name}@{host}{}", &rest[authority.len()..])
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_never_shown() {
        for (address, shown) in [
            ("postgres://me:secret@db/x", "postgres://me@db/x"),
            ("postgres://me:se@cret@db:5432/x?a=b@c", "postgres://me@db:5432/x?a=b@c"),
            ("postgres://db/x", "postgres://db/x"),
            ("postgres:///x?host=/tmp", "postgres:///x?host=/tmp"),
        ] {
            assert_eq!(without_password(address), shown);
        }
    }
}
