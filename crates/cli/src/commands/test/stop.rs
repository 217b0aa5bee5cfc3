//! Ctrl-C and polite kills: what is running ends, what is known is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::CliError;
use crate::exit::Exit;

/// Listens while it lives.
pub(super) struct Stop {
    /// Cancelled by the first signal.
    pub(super) now: CancellationToken,
    terminated: Arc<AtomicBool>,
    listener: tokio::task::JoinHandle<()>,
}

impl Stop {
    pub(super) fn listen() -> Result<Self, CliError> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let now = CancellationToken::new();
        let terminated = Arc::new(AtomicBool::new(false));
        let (token, flag) = (now.clone(), Arc::clone(&terminated));
        let listener = tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => flag.store(true, Ordering::SeqCst),
                _ = hangup.recv() => flag.store(true, Ordering::SeqCst),
            }
            token.cancel();
        });
        Ok(Self { now, terminated, listener })
    }

    /// The exit code for whoever stopped it; none if nobody did.
    pub(super) fn exit(&self) -> Option<Exit> {
        let exit = if self.terminated.load(Ordering::SeqCst) { Exit::Terminated } else { Exit::Interrupted };
        self.now.is_cancelled().then_some(exit)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
