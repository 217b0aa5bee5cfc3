//! The port: one agent, run once.

use std::sync::Arc;

use rehearsal_core::{Activity, RunReport};
use tokio_util::sync::CancellationToken;

use crate::clis::Sessions;
use crate::{ConfinedBy, Containment, Lease, Orphan, RunRequest};

/// Told of everything an agent does, while it does it. Must not block.
pub type Watch = Arc<dyn Fn(Activity) + Send + Sync>;

/// An agent, real or not.
#[async_trait::async_trait]
pub trait Agent: Send + Sync {
    /// Runs it once, to its end. Every failure is an outcome: there is always a report, and no process is left.
    async fn run(&self, request: RunRequest, watch: Watch, cancel: CancellationToken) -> RunReport;

    /// Goes on with a run of this agent whose worker died, to its end, as if nothing had happened. None: it is not of
    /// this agent's kind; then it is ended.
    async fn adopt(
        &self,
        orphan: Orphan,
        _lease: Lease,
        _watch: Watch,
        _cancel: CancellationToken,
    ) -> Option<RunReport> {
        orphan.end().await;
        None
    }

    /// The driver's name, as listings show it: `claude`, `codex`, `command`, `scripted`, …
    fn driver(&self) -> &str;

    /// What it does with sessions.
    fn sessions(&self) -> Sessions;

    /// What keeps it within bounds.
    fn confined_by(&self) -> ConfinedBy {
        Containment::default().confined_by()
    }
}

#[async_trait::async_trait]
impl<T: Agent + ?Sized> Agent for Arc<T> {
    async fn run(&self, request: RunRequest, watch: Watch, cancel: CancellationToken) -> RunReport {
        (**self).run(request, watch, cancel).await
    }

    async fn adopt(
        &self,
        orphan: Orphan,
        lease: Lease,
        watch: Watch,
        cancel: CancellationToken,
    ) -> Option<RunReport> {
        (**self).adopt(orphan, lease, watch, cancel).await
    }

    fn driver(&self) -> &str {
        (**self).driver()
    }

    fn sessions(&self) -> Sessions {
        (**self).sessions()
    }

    fn confined_by(&self) -> ConfinedBy {
        (**self).confined_by()
    }
}
