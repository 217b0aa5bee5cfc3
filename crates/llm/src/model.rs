//! The port: whatever answers like a model.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use rehearsal_core::Blame;

use crate::chat::{ChatRequest, ChatResponse, Delta};

/// An answer while it is being made. Dropping it hangs up.
pub type ChatStream = Pin<Box<dyn Stream<Item = Result<Delta, ModelError>> + Send>>;

/// Whatever answers like a model: a vendor, a script, a recording.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Asks, and waits for the whole answer.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError>;

    /// Asks, and gives the answer piece by piece. [`crate::assembly::Assembly`] makes a whole of the pieces.
    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError>;
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The key is missing, wrong or not enough.
    #[error("the vendor refuses the key: {message}")]
    Unauthorized {
        /// In the vendor's words.
        message: String,
    },
    /// Too many requests, or no quota left.
    #[error("rate-limited: {message}")]
    RateLimited {
        /// When to ask again, if the vendor said so.
        retry_after: Option<Duration>,
        /// In the vendor's words.
        message: String,
    },
    /// The vendor has too much to do, or is broken.
    #[error("the vendor answers {status}: {message}")]
    Unavailable {
        /// The HTTP status.
        status: u16,
        /// When to ask again, if the vendor said so.
        retry_after: Option<Duration>,
        /// In the vendor's words.
        message: String,
    },
    /// The request is not what the vendor takes.
    #[error("the vendor refuses the request ({status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// In the vendor's words.
        message: String,
    },
    /// No connection.
    #[error("the vendor cannot be reached: {message}")]
    Unreachable {
        /// What stood in the way.
        message: String,
    },
    /// No answer in time.
    #[error("no answer within {} ms", after.as_millis())]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// The answer ended before its end, or is none.
    #[error("the answer cannot be read: {message}")]
    Broken {
        /// What is wrong with it.
        message: String,
    },
    /// A stand-in was asked for more than it was told.
    #[error("the stand-in has no answer: {message}")]
    NotScripted {
        /// What was asked, and what would have been expected.
        message: String,
    },
}

impl ModelError {
    /// Whose failure it is: a request that no vendor takes is the caller's, all else is the world's.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Refused { .. } | Self::NotScripted { .. } => Blame::Agent,
            Self::Unauthorized { .. }
            | Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Broken { .. } => Blame::System,
        }
    }

    /// Whether the same request may be answered later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Broken { .. } => true,
            Self::Unauthorized { .. } | Self::Refused { .. } | Self::NotScripted { .. } => false,
        }
    }

    /// From an HTTP status that is no success, and what the vendor said with it.
    pub fn from_status(status: u16, retry_after: Option<Duration>, message: String) -> Self {
        match status {
            401 | 403 => Self::Unauthorized { message },
            429 => Self::RateLimited { retry_after, message },
            408 | 409 | 500..=599 => Self::Unavailable { status, retry_after, message },
            _ => Self::Refused { status, message },
        }
    }
}
