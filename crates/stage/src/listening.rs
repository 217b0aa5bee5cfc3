//! Hears what a play is asked.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::play::{Answer, Asked, Play};

/// A play that keeps what it was asked, and lets another answer.
pub struct ListeningPlay {
    inner: Arc<dyn Play>,
    heard: Mutex<Vec<Asked>>,
}

impl ListeningPlay {
    /// Around another play.
    pub fn new(inner: Arc<dyn Play>) -> Self {
        Self { inner, heard: Mutex::default() }
    }

    /// All that was asked so far.
    pub fn heard(&self) -> Vec<Asked> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Play for ListeningPlay {
    async fn answer(&self, asked: Asked) -> Answer {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
        self.inner.answer(asked).await
    }
}
