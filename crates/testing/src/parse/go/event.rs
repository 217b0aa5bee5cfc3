//! One line of `go test -json`.

use std::borrow::Cow;

use serde::Deserialize;

/// What a line says. Keys that we do not know are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct GoEvent<'a> {
    #[serde(borrow)]
    pub action: Cow<'a, str>,
    #[serde(borrow)]
    pub package: Cow<'a, str>,
    #[serde(borrow)]
    pub import_path: Cow<'a, str>,
    #[serde(borrow)]
    pub failed_build: Cow<'a, str>,
    #[serde(borrow)]
    pub test: Cow<'a, str>,
    #[serde(borrow)]
    pub output: Cow<'a, str>,
    /// Since Go 1.27: `frame`, `error` or `error-continue`.
    #[serde(borrow)]
    pub output_type: Cow<'a, str>,
    /// In seconds.
    pub elapsed: f64,
}

impl<'a> GoEvent<'a> {
    /// Reads a line; none if it is not an object.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        line.trim_start().starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()
    }

    pub(super) fn ms(&self) -> u64 {
        crate::parse::milliseconds::of_seconds(self.elapsed)
    }
}
