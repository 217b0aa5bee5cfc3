//! JSON Schemas that models, tools and people write.

use boon::{Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

/// A compiled schema. It never loads another document: a `$ref` that leads elsewhere is an error.
pub struct JsonSchema {
    schemas: Schemas,
    root: SchemaIndex,
}

/// A value that does not conform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// A JSON Pointer into the document; empty for the document itself.
    pub place: String,
    /// What the schema expects there.
    pub message: String,
}

/// The schema itself is not valid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(String);

/// How the schema is called in its own messages.
const NAME: &str = "schema:/";

impl JsonSchema {
    /// Compiles a schema of any draft since 4; without `$schema` it is of 2020-12.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(NoLoader));
        let mut schemas = Schemas::new();
        let compiled = compiler.add_resource(NAME, schema.clone());
        let root = compiled.and_then(|()| compiler.compile(NAME, &mut schemas));
        root.map(|root| Self { schemas, root }).map_err(|error| SchemaError(format!("{error:#}")))
    }

    /// Everything that does not conform, in the order of the schema.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        if let Err(error) = self.schemas.validate(value, self.root) {
            collect(&error, &mut found);
        }
        found
    }
}

/// The causes are what the reader can act on; what contains them says only that something failed.
fn collect(error: &ValidationError<'_, '_>, found: &mut Vec<Violation>) {
    if error.causes.is_empty() {
        let place = error.instance_location.to_string();
        found.push(Violation { place, message: error.kind.to_string() });
    }
    for cause in &error.causes {
        collect(cause, found);
    }
}

struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, _url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err("a schema cannot refer to other documents".into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_violation_has_its_place_and_what_is_expected() {
        let schema = json!({ "type": "object", "properties": { "n": { "minimum": 1, "type": "integer" } }, "required": ["n"] });
        let schema = JsonSchema::compile(&schema).unwrap();
        let said = |value: Value| {
            let all = schema.violations(&value).into_iter();
            all.map(|Violation { place, message }| format!("{place}: {message}"))
                .collect::<Vec<_>>()
                .join("; ")
        };
        assert_eq!(said(json!({ "n": 1 })), "");
        assert_eq!(said(json!({ "n": "1" })), "/n: want integer, but got string");
        assert_eq!(said(json!({ "n": 0 })), "/n: must be >=1, but got 0");
        assert_eq!(said(json!({})), ": missing properties 'n'");
    }

    #[test]
    fn a_schema_reads_no_file_and_asks_no_server() {
        for elsewhere in ["file:///etc/passwd", "http://127.0.0.1:9/schema.json", "other.json"] {
            let error = JsonSchema::compile(&json!({ "$ref": elsewhere })).err().unwrap().to_string();
            assert!(error.ends_with("a schema cannot refer to other documents"), "{elsewhere}: {error}");
        }
    }

    #[test]
    fn what_is_not_a_schema_is_refused() {
        let error = JsonSchema::compile(&json!({ "type": "nothing" })).err().unwrap();
        assert!(error.to_string().contains("/type"), "{error}");
    }

    #[test]
    fn a_pattern_cannot_take_exponential_time() {
        let schema = JsonSchema::compile(&json!({ "pattern": "^(a+)+$" })).unwrap();
        assert_eq!(schema.violations(&json!(format!("{}!", "a".repeat(50_000)))).len(), 1);
    }
}
