//! Ctrl-C and polite kills: what is running ends, what is known is told.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::error::CliError;
use crate::exit::Exit;
use crate::interruption::signalled;

/// Listens while it lives.
pub(super) struct Stop {
    /// Cancelled by the first signal.
    pub(super) now: CancellationToken,
    exit: Arc<OnceLock<Exit>>,
    listener: tokio::task::JoinHandle<()>,
}

impl Stop {
    pub(super) fn listen() -> Result<Self, CliError> {
        let (signal, now, exit) = (signalled()?, CancellationToken::new(), Arc::new(OnceLock::new()));
        let (token, told) = (now.clone(), Arc::clone(&exit));
        let listener = tokio::spawn(async move {
            let exit = signal.await;
            told.get_or_init(|| exit);
            token.cancel();
        });
        Ok(Self { now, exit, listener })
    }

    /// The exit code for whoever stopped it; none if nobody did.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit.get().copied()
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
