//! `{{name}}` in texts.

use std::collections::BTreeMap;

use serde_json::Value;

/// What every request has.
pub(crate) const BUILT_IN: [&str; 4] = ["cwd", "model", "lane", "prompt"];

/// A text with names in it.
#[derive(Debug, Clone)]
pub(crate) struct Template(String);

impl Template {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn render(&self, values: &Values<'_>) -> String {
        values.fill(&self.0)
    }

    /// The names in a text. Braces around anything else are just braces.
    pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
        Pieces(text).filter_map(|piece| match piece {
            Piece::Name(name) => Some(name),
            Piece::Text(_) => None,
        })
    }
}

/// What the names stand for.
pub(crate) struct Values<'a> {
    pub(crate) vars: &'a BTreeMap<String, String>,
    pub(crate) captured: &'a BTreeMap<String, String>,
    /// Looked up only if it is named: some of it has to be searched for.
    pub(crate) built_in: &'a dyn Fn(&str) -> Option<String>,
}

impl Values<'_> {
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        for piece in Pieces(text) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Name(name) => match self.captured.get(name).or_else(|| self.vars.get(name)) {
                    Some(value) => filled.push_str(value),
                    None => filled.push_str(&(self.built_in)(name).unwrap_or_default()),
                },
            }
        }
        filled
    }

    pub(crate) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), self.fill_value(field))).collect()
            }
            other => other.clone(),
        }
    }
}

/// All texts in a document.
pub(crate) fn strings_of<'a>(value: &'a Value, each: &mut dyn FnMut(&'a str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| strings_of(item, each)),
        Value::Object(fields) => fields.values().for_each(|field| strings_of(field, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.0.is_empty() {
            return None;
        }
        if let Some((name, rest)) = name_at(self.0) {
            self.0 = rest;
            return Some(Piece::Name(name));
        }
        // Up to the next braces that are not these.
        let first = self.0.chars().next().map_or(0, char::len_utf8);
        let end = self.0[first..].find("{{").map_or(self.0.len(), |at| at + first);
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(Piece::Text(text))
    }
}

fn name_at(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("{{")?.trim_start_matches(' ');
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    let rest = rest.trim_start_matches(' ').strip_prefix("}}")?;
    (!name.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fill(text: &str) -> String {
        let vars = BTreeMap::from([("greeting".to_owned(), "hello".to_owned())]);
        let captured = BTreeMap::new();
        let built_in = |name: &str| (name == "lane").then(|| "main".to_owned());
        Values { vars: &vars, captured: &captured, built_in: &built_in }.fill(text)
    }

    #[test]
    fn names_are_filled_in_and_other_braces_stay() {
        assert_eq!(fill("{{greeting}}, {{ lane }}!"), "hello, main!");
        assert_eq!(fill("${{ a b }} {{{greeting}}} {{"), "${{ a b }} {hello} {{");
        assert_eq!(fill("é{{greeting}}"), "éhello");
    }

    proptest! {
        #[test]
        fn a_text_without_names_stays(text in "([{}]|é|a| ){0,30}") {
            prop_assume!(Template::names(&text).next().is_none());
            prop_assert_eq!(fill(&text), text);
        }
    }
}
