//! The versions of flows that tasks started with, each parsed once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::flow::{self, Flow};

use crate::StoreError;
use crate::link::{Link, values};

/// Flows by version. A version is a hash of its text and so never changes what it means.
#[derive(Debug, Default)]
pub(crate) struct FlowCache(Mutex<HashMap<String, Arc<Flow>>>);

impl FlowCache {
    pub(crate) async fn get(&self, link: &mut Link<'_>, version: &str) -> Result<Arc<Flow>, StoreError> {
        if let Some(flow) = self.lock().get(version) {
            return Ok(Arc::clone(flow));
        }
        let source: Option<(String,)> =
            link.optional("SELECT source FROM flows WHERE version = $1", values![version]).await?;
        let corrupt = |what: String| StoreError::Corrupt { what };
        let (source,) = source.ok_or_else(|| corrupt(format!("version `{version}` of a flow is missing")))?;
        let flow = flow::parse(&source)
            .map_err(|error| corrupt(format!("version `{version}` of a flow cannot be read: {error}")))?;
        let flow = Arc::new(flow);
        self.lock().insert(version.to_owned(), Arc::clone(&flow));
        Ok(flow)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Flow>>> {
        // A map is whole even if someone panicked beside it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a version for the tasks that start with it.
pub(crate) async fn pin(link: &mut Link<'_>, flow: &Flow) -> Result<(), StoreError> {
    link.execute(
        "INSERT INTO flows (version, name, source) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        values![&flow.version, flow.name.as_str(), &flow.source],
    )
    .await?;
    Ok(())
}
