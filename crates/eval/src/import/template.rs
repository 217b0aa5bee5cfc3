//! `{{ name }}` in a text, as promptfoo fills it in: the part of its template language that nearly all files keep to.

use std::collections::BTreeMap;

use serde_json::Value;

/// The values by name.
pub(super) type Vars = BTreeMap<String, Value>;

/// A value may have `{{ … }}` in it too; deeper than this is a circle.
const DEEPEST: u32 = 5;
/// A longer text is not what someone meant.
const LONGEST: usize = 1 << 20;

/// Whether there is anything to fill in.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

/// Fills in what is known, or says what is not understood. What has no value is empty, as there, and is named in `missing`.
pub(super) fn fill(text: &str, vars: &Vars, missing: &mut Vec<String>) -> Result<String, String> {
    let mut out = String::new();
    fill_into(&mut out, text, vars, missing, 0)?;
    Ok(out)
}

/// The same in every text of a value.
pub(super) fn fill_value(value: &Value, vars: &Vars, missing: &mut Vec<String>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(fill(text, vars, missing)?),
        Value::Array(values) => {
            Value::Array(values.iter().map(|one| fill_value(one, vars, missing)).collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let filled = map.iter().map(|(key, one)| Ok((key.clone(), fill_value(one, vars, missing)?)));
            Value::Object(filled.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

fn fill_into(
    out: &mut String,
    text: &str,
    vars: &Vars,
    missing: &mut Vec<String>,
    depth: u32,
) -> Result<(), String> {
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        if rest.starts_with("{%") {
            return Err("`{% … %}` in a template is not understood".to_owned());
        }
        if let Some(comment) = rest.strip_prefix("{#") {
            rest = comment.split_once("#}").map_or("", |(_, after)| after);
            continue;
        }
        let Some(inner) = rest.strip_prefix("{{") else {
            out.push('{');
            rest = &rest[1..];
            continue;
        };
        let (expression, after) = inner.split_once("}}").ok_or("a `{{` has no `}}`")?;
        expand(out, expression.trim_matches('-').trim(), vars, missing, depth)?;
        rest = after;
        short_enough(out)?;
    }
    out.push_str(rest);
    short_enough(out)
}

fn short_enough(out: &str) -> Result<(), String> {
    if out.len() > LONGEST {
        return Err(format!("more than {} MiB would come of it", LONGEST >> 20));
    }
    Ok(())
}

fn expand(
    out: &mut String,
    expression: &str,
    vars: &Vars,
    missing: &mut Vec<String>,
    depth: u32,
) -> Result<(), String> {
    let mut parts = expression.split('|').map(str::trim);
    let path = parts.next().unwrap_or_default();
    let Some(value) = look_up(path, vars)? else {
        missing.push(path.to_owned());
        return Ok(());
    };
    let mut text = match value {
        Value::String(text) if is_template(text) => {
            if depth >= DEEPEST {
                return Err(format!("`{{{{ {path} }}}}` leads back to itself"));
            }
            let mut inner = String::new();
            fill_into(&mut inner, text, vars, missing, depth + 1)?;
            inner
        }
        value => shown(value),
    };
    for filter in parts {
        text = match filter {
            "trim" if value.is_string() => text.trim().to_owned(),
            "upper" if value.is_string() => text.to_uppercase(),
            "lower" if value.is_string() => text.to_lowercase(),
            "dump" if value.is_string() => Value::String(text).to_string(),
            "dump" => value.to_string(),
            "safe" => text,
            other => return Err(format!("the filter `{other}` in a template is not understood")),
        };
    }
    out.push_str(&text);
    Ok(())
}

/// As JavaScript shows it: a list is what is in it, with commas. Only a map is JSON, where it would be nothing of use.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number
            .as_f64()
            .filter(|_| number.is_f64())
            .map_or_else(|| number.to_string(), |number| number.to_string()),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// `name`, `name.part`, `name[0]`, `name['part']`.
fn look_up<'a>(path: &str, vars: &'a Vars) -> Result<Option<&'a Value>, String> {
    let odd = || format!("`{{{{ {path} }}}}` in a template is not understood");
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
    };
    let spread = path.replace(['[', '.'], "\0").replace(']', "");
    let mut names = spread.split('\0').map(|name| name.trim().trim_matches(['"', '\'']));
    let first = names.next().filter(|name| is_name(name)).ok_or_else(odd)?;
    let mut value = vars.get(first);
    for name in names {
        if !is_name(name) {
            return Err(odd());
        }
        value = match value {
            Some(Value::Object(map)) => map.get(name),
            Some(Value::Array(values)) => name.parse::<usize>().ok().and_then(|number| values.get(number)),
            _ => None,
        };
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(text: &str) -> Result<String, String> {
        let Value::Object(map) = json!({
            "name": "Ada",
            "greeting": "Hello {{name}}",
            "user": { "first": "Ada", "tags": ["x", "y"] },
            "a": "{{b}}", "b": "{{a}}",
            "count": 3, "whole": 2.0, "half": 0.5, "yes": true,
        }) else {
            unreachable!()
        };
        fill(text, &map.into_iter().collect(), &mut Vec::new())
    }

    #[test]
    fn names_paths_and_values_in_values_are_filled_in() {
        for (text, expected) in [
            ("{{greeting}}!", "Hello Ada!"),
            ("{{ user.first }} {{user['first']}} {{ user.tags[1] }} {{- count -}}", "Ada Ada y 3"),
            (
                "{{ user.tags }} {{ user.tags | dump }} {{ name | upper }} {{ name | dump }}",
                r#"x,y ["x","y"] ADA "Ada""#,
            ),
            (
                "{{ whole }} {{ half }} {{ yes }} {{ user | dump }}",
                r#"2 0.5 true {"first":"Ada","tags":["x","y"]}"#,
            ),
            ("a {single} brace, {# a comment #}{{nobody}}.", "a {single} brace, ."),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, error) in [
            ("{% if name %}x{% endif %}", "`{% … %}` in a template is not understood"),
            (
                "{{ name | replace('a', 'b') }}",
                "the filter `replace('a', 'b')` in a template is not understood",
            ),
            ("{{ user.tags | upper }}", "the filter `upper` in a template is not understood"),
            ("{{ name + 1 }}", "`{{ name + 1 }}` in a template is not understood"),
            ("{{ name", "a `{{` has no `}}`"),
            ("{{a}}", "`{{ b }}` leads back to itself"),
        ] {
            assert!(filled(text).is_err_and(|told| told.starts_with(error)), "{text}: {:?}", filled(text));
        }
    }
}
