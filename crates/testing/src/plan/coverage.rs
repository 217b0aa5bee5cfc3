//! Where a runner leaves its coverage.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// A file with coverage in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoverageFile {
    /// Where.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    /// In which form.
    pub format: CoverageFormat,
}

impl CoverageFile {
    pub(super) const fn new(path: Utf8PathBuf, format: CoverageFormat) -> Self {
        Self { path, format }
    }
}

/// The forms that we read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CoverageFormat {
    /// `go test -coverprofile`.
    GoProfile,
    /// Istanbul's `json-summary`, of Jest, Vitest, c8 and nyc.
    JsonSummary,
    /// `coverage json` of coverage.py.
    CoveragePy,
    /// `cargo llvm-cov --json`.
    LlvmCov,
    /// LCOV.
    Lcov,
}
