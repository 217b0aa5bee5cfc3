//! What a tool is, and how its arguments are checked.

use std::marker::PhantomData;
use std::sync::OnceLock;

use async_trait::async_trait;
use rehearsal_llm::chat::{Json, ToolDefinition, ToolInput};
use rehearsal_llm::json_schema::{JsonSchema, Violation};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Permission;
use crate::worktree::AccessError;

/// Something that a model can call, whoever made it.
#[async_trait]
pub(crate) trait Tool: Send + Sync {
    fn name(&self) -> &str;

    fn definition(&self) -> ToolDefinition;

    /// What the role must be allowed.
    fn needs(&self) -> Option<Permission>;

    fn only_reads(&self) -> bool;

    /// Whether these are arguments that it takes.
    fn check(&self, arguments: &Value) -> Result<(), ToolError>;

    /// Does it, with arguments that were checked.
    async fn call(&self, arguments: &Value, cancel: &CancellationToken) -> Result<String, ToolError>;
}

/// Why a tool did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The arguments are none that it takes.
    #[error("{0}")]
    Malformed(String),
    /// In words for the model.
    #[error("{0}")]
    Failed(String),
    /// A file cannot be had.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Somebody wanted it to stop.
    #[error("stopped, since the run was cancelled")]
    Cancelled,
}

impl ToolError {
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }
}

/// A tool of ours: its arguments are a type.
#[async_trait]
pub(crate) trait BuiltIn: Send + Sync {
    type Arguments: for<'de> Deserialize<'de> + Send;

    const NAME: &'static str;
    /// The JSON Schema of its arguments, checked in.
    const SCHEMA: &'static str;
    const ABOUT: &'static str;
    const NEEDS: Option<Permission>;
    const ONLY_READS: bool;

    async fn run(&self, arguments: Self::Arguments, cancel: &CancellationToken) -> Result<String, ToolError>;
}

/// A tool of ours, as one among all.
pub(crate) struct Typed<T: BuiltIn> {
    tool: T,
    schema: Checked,
    arguments: PhantomData<fn() -> T::Arguments>,
}

impl<T: BuiltIn> Typed<T> {
    pub(crate) fn new(tool: T) -> Self {
        Self {
            tool,
            schema: Checked::new(serde_json::from_str(T::SCHEMA).unwrap_or_default()),
            arguments: PhantomData,
        }
    }
}

#[async_trait]
impl<T: BuiltIn> Tool for Typed<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn definition(&self) -> ToolDefinition {
        self.schema.definition(T::NAME, T::ABOUT)
    }

    fn needs(&self) -> Option<Permission> {
        T::NEEDS
    }

    fn only_reads(&self) -> bool {
        T::ONLY_READS
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        self.schema.check(T::NAME, arguments)
    }

    async fn call(&self, arguments: &Value, cancel: &CancellationToken) -> Result<String, ToolError> {
        let arguments = T::Arguments::deserialize(arguments).map_err(|error| {
            ToolError::Malformed(format!("`{}` cannot be called like this: {error}", T::NAME))
        })?;
        self.tool.run(arguments, cancel).await
    }
}

/// A JSON Schema, compiled when it is first needed.
pub(crate) struct Checked {
    schema: Value,
    compiled: OnceLock<Option<JsonSchema>>,
}

/// What is told of mistakes at once.
const TOLD: usize = 5;
/// What of a mistaken value is told.
const SHOWN: usize = 200;

impl Checked {
    pub(crate) fn new(schema: Value) -> Self {
        Self { schema, compiled: OnceLock::new() }
    }

    /// Whether it is a schema at all.
    pub(crate) fn compiles(&self) -> bool {
        self.compiled().is_some()
    }

    fn compiled(&self) -> Option<&JsonSchema> {
        self.compiled.get_or_init(|| JsonSchema::compile(&self.schema).ok()).as_ref()
    }

    pub(crate) fn definition(&self, name: &str, description: &str) -> ToolDefinition {
        let schema = Json::of(&self.schema).unwrap_or_else(|_| Json::empty_object());
        ToolDefinition {
            name: name.to_owned(),
            description: description.to_owned(),
            input: ToolInput::Schema(schema),
        }
    }

    /// Says at which place what is expected.
    pub(crate) fn check(&self, tool: &str, arguments: &Value) -> Result<(), ToolError> {
        let Some(schema) = self.compiled() else {
            return Err(ToolError::failed(format!("the schema of `{tool}` cannot be used")));
        };
        let mistakes: Vec<String> = schema
            .violations(arguments)
            .into_iter()
            .take(TOLD)
            .map(|Violation { place, message }| {
                let place = place.trim_start_matches('/').replace('/', ".");
                let what = shortened(&message);
                if place.is_empty() { what } else { format!("`{place}`: {what}") }
            })
            .collect();
        if mistakes.is_empty() {
            return Ok(());
        }
        let takes = self.takes();
        Err(ToolError::Malformed(format!(
            "`{tool}` cannot be called like this: {}; {takes}",
            mistakes.join("; ")
        )))
    }

    /// Which arguments there are, in a line.
    fn takes(&self) -> String {
        let required: Vec<&str> =
            self.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = self.schema["properties"].as_object().into_iter().flat_map(|all| all.keys());
        let names: Vec<String> = properties
            .map(|name| {
                let must = if required.contains(&name.as_str()) { " (required)" } else { "" };
                format!("`{name}`{must}")
            })
            .collect();
        if names.is_empty() {
            "it takes nothing".to_owned()
        } else {
            format!("it takes {}", names.join(", "))
        }
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(SHOWN / 2), text.ceil_char_boundary(text.len() - SHOWN / 2));
    format!("{}…{}", &text[..head], &text[tail..])
}
