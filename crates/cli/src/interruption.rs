//! Ctrl-C once: what is under way is finished. Twice: it is stopped now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rehearsal_engine::StopSwitch;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::CliError;
use crate::exit::Exit;

/// Prints a line; on a terminal it does not disturb what moves there.
pub(crate) type Aside = Box<dyn Fn(&str) + Send>;

/// What a command makes of signals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manners {
    /// What is said after the first Ctrl-C.
    pub(crate) first: &'static str,
    /// Whether a polite kill is like a Ctrl-C; otherwise it is like two.
    pub(crate) kill_drains: bool,
}

/// Listens while it lives.
pub(crate) struct Interruption {
    terminated: Arc<AtomicBool>,
    listener: tokio::task::JoinHandle<()>,
}

impl Interruption {
    /// The exit code for whoever stopped it.
    pub(crate) fn exit(&self) -> Exit {
        if self.terminated.load(Ordering::SeqCst) { Exit::Terminated } else { Exit::Interrupted }
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// Ends at the first signal to end, with its exit code.
pub(crate) fn signalled() -> std::io::Result<impl Future<Output = Exit>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
            _ = hangup.recv() => Exit::Terminated,
        }
    })
}

pub(crate) fn listen(stop: StopSwitch, manners: Manners, aside: Aside) -> Result<Interruption, CliError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let terminated = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&terminated);
    let listener = tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => stop_gently(&stop, manners, &aside),
                _ = terminate.recv() => {
                    flag.store(true, Ordering::SeqCst);
                    if manners.kill_drains { stop_gently(&stop, manners, &aside) } else { stop_now(&stop) }
                }
                // Whoever watched it is gone, and with it the way to stop it.
                _ = hangup.recv() => {
                    flag.store(true, Ordering::SeqCst);
                    stop_now(&stop);
                }
            }
        }
    });
    Ok(Interruption { terminated, listener })
}

fn stop_gently(stop: &StopSwitch, manners: Manners, aside: &Aside) {
    if stop.after_iteration.is_cancelled() {
        return stop.now.cancel();
    }
    aside(manners.first);
    stop.after_iteration.cancel();
}

fn stop_now(stop: &StopSwitch) {
    stop.after_iteration.cancel();
    stop.now.cancel();
}
