//! What a tool answers: a document for programs, words for the model.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::commands::schema;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Document;

/// A document as `--json` prints it, and the text beside it.
pub(super) fn answer<T: Serialize>(document: T, text: String) -> Result<CallToolResult, CliError> {
    let document = serde_json::to_value(Document::new(document))
        .map_err(|error| CliError::of(Exit::Internal, &error))?;
    let mut result = CallToolResult::structured(document);
    result.content = vec![ContentBlock::text(text)];
    Ok(result)
}

/// An error is an answer too: the model reads what is wrong, and what to do about it.
pub(super) fn refusal(error: &CliError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.render().trim_end())])
}

/// Nobody reads it but the log of a client.
pub(super) fn cancelled() -> CliError {
    CliError::new(Exit::Interrupted, "stopped, since the call was cancelled")
}

/// The arguments of a call, as the tool understands them.
pub(super) fn arguments<T: DeserializeOwned>(tool: &str, given: Option<JsonObject>) -> Result<T, CliError> {
    serde_json::from_value(Value::Object(given.unwrap_or_default())).map_err(|error| {
        let properties = schema(&format!("mcp-{tool}")).get("properties").and_then(Value::as_object).cloned();
        let names: Vec<String> =
            properties.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
        CliError::usage(format!("`{tool}` cannot be called like this: {error}"))
            .hint(format!("it takes {}; all of them may be left out", names.join(", ")))
    })
}

/// The checked-in schema of a tool's arguments or of its document, without its dialect: older clients accept only
/// their own, and nothing here differs between them.
pub(super) fn schema(name: &str) -> JsonObject {
    let mut schema: JsonObject = serde_json::from_str(schema::text(name)).unwrap_or_default();
    for unneeded in ["$schema", "title", "description"] {
        schema.remove(unneeded);
    }
    schema
}
