//! Work that waits for a disk, beside the turns of everyone else.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::tool::ToolError;

#[derive(Debug, Clone)]
pub(super) struct Until {
    cancel: CancellationToken,
    began: Instant,
}

impl Until {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether it took longer than this.
    pub(super) fn took(&self, limit: Duration) -> bool {
        self.began.elapsed() > limit
    }
}

/// Does it on a thread of its own. Cancelled, nobody waits for it any more; it sees so itself by what it is given.
pub(super) async fn blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&Until) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let until = Until { cancel: cancel.child_token(), began: Instant::now() };
    let work = tokio::task::spawn_blocking(move || work(&until));
    match cancel.run_until_cancelled(work).await {
        None => Err(ToolError::Cancelled),
        Some(Ok(done)) => done,
        Some(Err(_)) => Err(ToolError::failed("the tool did not come to its end")),
    }
}

/// Does it on a thread of its own, and waits for it whatever happens: what changes files is not left to go on unseen.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ToolError::failed("the tool did not come to its end")))
}
