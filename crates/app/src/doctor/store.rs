//! The database, and what dead workers left in it.

use std::sync::Arc;

use rehearsal_core::config::without_password;
use rehearsal_core::{RunId, Timestamp};
use rehearsal_engine::left_runs;
use rehearsal_store::{OpenError, Store, StoreError, StoreLocation};

use super::{Finding, Subject};
use crate::project::{Project, ProjectError};

/// What was found of the database.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum StoreFact {
    /// Every task is what its events say. Where the store is, if it is on a server.
    Healthy { server: Option<String> },
    /// The state cannot be used.
    NoState(ProjectError),
    /// The store cannot be opened.
    NotOpened { error: OpenError, server: Option<String> },
    /// What is wrong with the store.
    Wrong { findings: Vec<String>, server: Option<String> },
    /// It cannot be checked.
    Unchecked(StoreError),
    /// A run that a dead worker left.
    RunLeft { run: RunId, started_at: Timestamp },
}

pub(super) async fn look(project: &Project) -> Vec<Finding> {
    match open(project).await {
        Ok((store, server)) => {
            let mut findings = vec![verify(&*store, server).await];
            findings.extend(left_run(&*store, project).await);
            findings
        }
        Err(fact) => vec![Finding::bad(Subject::Store, fact)],
    }
}

async fn open(project: &Project) -> Result<(Arc<dyn Store>, Option<String>), StoreFact> {
    // Where a broken configuration cannot say where the store is, the usual place is looked at.
    let location = match project.store_location() {
        Ok(_) => project.prepare_store(),
        Err(_) => project.prepare_usual_store(),
    };
    let location = location.map_err(StoreFact::NoState)?;
    let server = match &location {
        StoreLocation::Postgres(url) => Some(without_password(url)),
        StoreLocation::Directory(_) => None,
    };
    match rehearsal_store::open(&location).await {
        Ok(store) => Ok((store, server)),
        Err(error) => Err(StoreFact::NotOpened { error, server }),
    }
}

async fn verify(store: &dyn Store, server: Option<String>) -> Finding {
    match store.verify().await {
        Ok(findings) if findings.is_empty() => Finding::ok(Subject::Store, StoreFact::Healthy { server }),
        Ok(findings) => Finding::bad(Subject::Store, StoreFact::Wrong { findings, server }),
        Err(error) => Finding::bad(Subject::Store, StoreFact::Unchecked(error)),
    }
}

async fn left_run(store: &dyn Store, project: &Project) -> Option<Finding> {
    let runs = left_runs(store, &project.state_dir().ok()?).await.ok()?;
    let start = &runs.first()?.start;
    let fact = StoreFact::RunLeft { run: start.id.clone(), started_at: start.started_at };
    Some(Finding::note(Subject::Runs, fact))
}
