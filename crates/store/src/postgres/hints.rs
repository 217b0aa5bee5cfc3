//! Telling others that something changed, and hearing it from them. Both are hints: whoever waits also looks by itself
//! from time to time.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sqlx::Pool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::server::{Server, Turn};
use crate::StoreError;
use crate::policy::{BETWEEN_HINTS, LONGEST_QUIET, PAUSES};

/// The channel, which is the database's own.
const CHANNEL: &str = "rehearsal";
/// A hint that is lost with the power need not be on the disk.
const NOTIFY: &str = "SET LOCAL synchronous_commit = off; NOTIFY rehearsal";

/// What this process tells and hears.
#[derive(Debug)]
pub(super) struct Hints {
    server: Arc<Server>,
    changes: watch::Sender<u64>,
    last_told: Mutex<Option<Instant>>,
    untold: Arc<Notify>,
    listener: OnceLock<EndedWithUs>,
    teller: OnceLock<EndedWithUs>,
}

/// A task that nobody needs any more when its owner is gone.
#[derive(Debug)]
struct EndedWithUs(AbortHandle);

impl Drop for EndedWithUs {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Hints {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            changes: watch::Sender::new(0),
            last_told: Mutex::default(),
            untold: Arc::default(),
            listener: OnceLock::new(),
            teller: OnceLock::new(),
        }
    }

    /// Begins to listen when someone wants to hear.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.listener.get_or_init(|| {
            let listening = listen(Arc::clone(&self.server), self.changes.clone());
            EndedWithUs(tokio::spawn(listening).abort_handle())
        });
        self.changes.subscribe()
    }

    /// Something was committed, by this connection: tells it at once, or together with what follows soon.
    ///
    /// Not in the transaction itself. PostgreSQL lets transactions that notify commit one after the other, and each
    /// would wait for the disk for itself.
    pub(super) async fn tell(&self, turn: &mut Turn<'_>) -> Result<(), StoreError> {
        self.changes.send_modify(|count| *count += 1);
        if self.is_due() {
            return turn.run(NOTIFY).await;
        }
        self.teller.get_or_init(|| {
            let telling = tell_later(Arc::clone(&self.server), Arc::clone(&self.untold));
            EndedWithUs(tokio::spawn(telling).abort_handle())
        });
        self.untold.notify_one();
        Ok(())
    }

    fn is_due(&self) -> bool {
        let mut last = self.last_told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = last.is_none_or(|last| now >= last + BETWEEN_HINTS);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

async fn tell_later(server: Arc<Server>, untold: Arc<Notify>) {
    loop {
        untold.notified().await;
        sleep_until(Instant::now() + BETWEEN_HINTS).await;
        // Who cannot be told now will look by itself.
        if let Ok(mut turn) = server.turn().await
            && turn.run(NOTIFY).await.is_ok()
        {
            turn.keep();
        }
    }
}

async fn listen(server: Arc<Server>, changes: watch::Sender<u64>) {
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(server.options().clone());
    loop {
        // Ends when the connection does.
        let _: Result<(), sqlx::Error> = listen_once(&pool, &changes).await;
        sleep(PAUSES.1).await;
    }
}

async fn listen_once(pool: &Pool<sqlx::Postgres>, changes: &watch::Sender<u64>) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    loop {
        // Also once at the beginning: what happened before that was not heard.
        changes.send_modify(|count| *count += 1);
        match timeout(LONGEST_QUIET, listener.try_recv()).await {
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) | Err(_) => return Ok(()),
            Ok(Err(error)) => return Err(error),
        }
    }
}
