//! The smallest document that conforms to a JSON Schema, for those who insist on one.

use serde_json::{Map, Value, json};

/// Schemas may refer to themselves.
const DEEPEST: usize = 16;

/// The least that conforms, as far as the schema says it plainly.
pub(crate) fn smallest(schema: &Value) -> Value {
    instance(schema, schema, 0)
}

fn instance(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first()) {
        return first.clone();
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#')) {
        return root.pointer(target).map_or(Value::Null, |found| instance(found, root, depth + 1));
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(choice).and_then(Value::as_array).and_then(|all| all.first()) {
            return instance(first, root, depth + 1);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None if schema.get("properties").is_some() => Some("object"),
        None => None,
    };
    // Google writes its types in capitals.
    match kind.unwrap_or_default().to_ascii_lowercase().as_str() {
        "object" => object(schema, root, depth),
        "array" => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(DEEPEST as u64);
            let item = schema.get("items").map_or(Value::Null, |items| instance(items, root, depth + 1));
            Value::Array((0..least).map(|_| item.clone()).collect())
        }
        "string" => json!("stage"),
        // Not zero: some who ask want at least one and do not say so.
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(false),
        _ => Value::Null,
    }
}

fn object(schema: &Value, root: &Value, depth: usize) -> Value {
    let mut fields = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let field = schema.get("properties").and_then(|properties| properties.get(name));
        fields.insert(name.to_owned(), field.map_or(Value::Null, |field| instance(field, root, depth + 1)));
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_there() {
        let schema = json!({
            "type": "object",
            "properties": {
                "complexity_reasoning": { "type": "string" },
                "complexity_score": { "type": "integer" },
                "depth": { "type": "integer", "minimum": 3 },
                "kind": { "enum": ["small", "big"] },
                "more": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/flag" } },
                "left_out": { "type": "string" },
            },
            "required": ["complexity_reasoning", "complexity_score", "depth", "kind", "more"],
            "$defs": { "flag": { "type": ["boolean", "null"] } },
        });
        assert_eq!(
            smallest(&schema),
            json!({ "complexity_reasoning": "stage", "complexity_score": 1, "depth": 3, "kind": "small", "more": [false] })
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/a" } } });
        assert_eq!(smallest(&schema), Value::Null);
    }
}
