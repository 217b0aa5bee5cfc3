//! Whether the store is what its events say.

use serde::Serialize;

use crate::project::{Project, ProjectError};

/// `doctor --store --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreDocument {
    /// Whether nothing was found.
    pub healthy: bool,
    /// The version of the database's layout.
    pub schema_version_of_store: i64,
    /// How many events were replayed.
    pub events: i64,
    /// What is wrong.
    pub findings: Vec<String>,
}

/// Checks every task against its events, and every column against its document.
pub async fn verify_store(project: &Project) -> Result<StoreDocument, ProjectError> {
    let store = project.store().await?;
    let findings = store.verify().await?;
    Ok(StoreDocument {
        healthy: findings.is_empty(),
        schema_version_of_store: store.schema_version().await?,
        events: store.last_event().await?,
        findings,
    })
}
