//! How a loop or a worker is told to stop.

use tokio_util::sync::CancellationToken;

/// Two ways to stop: when what is under way is done, or now.
#[derive(Debug, Clone, Default)]
pub struct StopSwitch {
    /// Begins nothing more.
    pub after_iteration: CancellationToken,
    /// Ends the agents, too.
    pub now: CancellationToken,
}

impl StopSwitch {
    /// Whether it was told to stop, either way.
    pub fn is_thrown(&self) -> bool {
        self.after_iteration.is_cancelled() || self.now.is_cancelled()
    }

    pub(crate) async fn thrown(&self) {
        tokio::select! {
            () = self.after_iteration.cancelled() => {}
            () = self.now.cancelled() => {}
        }
    }
}
