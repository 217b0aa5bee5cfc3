//! Which engine, by where the store is.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{OpenError, PostgresStore, SqliteStore, Store, TimeSource};
use rehearsal_core::BoxFuture;

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// In a directory of this machine.
    Directory(PathBuf),
    /// On a PostgreSQL server, by its URL.
    Postgres(String),
}

/// A URL may hold a password.
impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => f.debug_tuple("Directory").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres(…)"),
        }
    }
}

/// Opens the store of a location; makes what is missing. Of a server, its own clock counts.
pub fn open(location: &StoreLocation) -> BoxFuture<'_, Result<Arc<dyn Store>, OpenError>> {
    Box::pin(async move {
        let store: Arc<dyn Store> = match location {
            StoreLocation::Directory(directory) => Arc::new(SqliteStore::open(directory).await?),
            StoreLocation::Postgres(url) => Arc::new(PostgresStore::open(url, TimeSource::Server).await?),
        };
        Ok(store)
    })
}
