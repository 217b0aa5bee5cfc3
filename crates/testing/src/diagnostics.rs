//! What compilers and linters say, in one form: for `check`, and for builds that fail before any test runs.

mod rustc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use rustc::{RustcText, compiler_message};

/// One thing that a compiler or linter says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// The tool.
    pub tool: String,
    /// How bad it is.
    pub severity: Severity,
    /// The tool's name of the rule, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it says.
    pub message: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something to know.
    Note,
    /// It works, but.
    Warning,
    /// It does not.
    Error,
}
