//! Ctrl-C once: the iteration is finished. Twice: the agent is stopped now. A polite kill is a Ctrl-C twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rehearsal_engine::StopSwitch;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Ui;

/// Listens while it lives.
pub(super) struct Interruption {
    terminated: Arc<AtomicBool>,
    listener: tokio::task::JoinHandle<()>,
}

impl Interruption {
    /// The exit code for whoever stopped it.
    pub(super) fn exit(&self) -> Exit {
        if self.terminated.load(Ordering::SeqCst) { Exit::Terminated } else { Exit::Interrupted }
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

pub(super) fn listen(stop: StopSwitch, ui: Ui) -> Result<Interruption, CliError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let terminated = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&terminated);
    let listener = tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {
                    if stop.after_iteration.is_cancelled() {
                        stop.now.cancel();
                    } else {
                        ui.aside("the loop ends after this iteration; Ctrl-C again stops the agent now");
                        stop.after_iteration.cancel();
                    }
                }
                _ = terminate.recv() => stop_now(&stop, &flag),
                _ = hangup.recv() => stop_now(&stop, &flag),
            }
        }
    });
    Ok(Interruption { terminated, listener })
}

fn stop_now(stop: &StopSwitch, flag: &AtomicBool) {
    flag.store(true, Ordering::SeqCst);
    stop.after_iteration.cancel();
    stop.now.cancel();
}
