//! The port: whatever answers like a model.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use rehearsal_core::{Blame, Outcome, Timestamp};

use crate::assembly::AssemblyError;
use crate::chat::{ChatRequest, ChatResponse, Delta};

/// An answer while it is being made. Dropping it hangs up.
pub type ChatStream = Pin<Box<dyn Stream<Item = Result<Delta, ModelError>> + Send>>;

/// Whatever answers like a model: a vendor, a script, a recording.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Asks, and waits for the whole answer.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError>;

    /// Asks, and gives the answer piece by piece. [`crate::assembly::whole`] makes a whole of the pieces.
    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError>;
}

/// One that several ask.
#[async_trait]
impl<M: ChatModel + ?Sized> ChatModel for std::sync::Arc<M> {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        (**self).chat(request).await
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        (**self).chat_stream(request).await
    }
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
    /// Too many requests; a wait helps.
    #[error("rate-limited: {message}")]
    RateLimited {
        /// When to ask again, if the vendor said so.
        until: Option<Timestamp>,
        /// In the vendor's words.
        message: String,
    },
    /// The plan or the credit is used up.
    #[error("the quota is used up: {message}")]
    QuotaExhausted {
        /// When it is filled again, if the vendor said so.
        until: Option<Timestamp>,
        /// In the vendor's words.
        message: String,
    },
    /// The vendor has too much to do, or is broken.
    #[error("the vendor answers {status}: {message}")]
    Overloaded {
        /// The HTTP status, or the one that the vendor's word for it goes with.
        status: u16,
        /// When to ask again, if the vendor said so.
        until: Option<Timestamp>,
        /// In the vendor's words.
        message: String,
    },
    /// The conversation is longer than the model can read.
    #[error("the conversation is too long for the model: {message}")]
    TooLong {
        /// In the vendor's words.
        message: String,
    },
    /// The request is not what the vendor takes.
    #[error("the vendor refuses the request ({status}): {message}")]
    Refused {
        /// The HTTP status, or the one that the vendor's word for it goes with.
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
    #[error("{limit} within {} ms", after.as_millis())]
    TimedOut {
        /// What was waited for.
        limit: Timeout,
        /// How long was waited.
        after: Duration,
    },
    /// The answer ended before its end.
    #[error("the answer was cut: {message}")]
    Cut {
        /// How it ended.
        message: String,
    },
    /// The answer is none.
    #[error("no answer: {message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// The vendor failed too often in a row, and is left alone for a while.
    #[error("the vendor failed {failures} times in a row and is left alone for now: {last}")]
    Resting {
        /// When it is asked again.
        until: Timestamp,
        /// How often it failed.
        failures: u32,
        /// The last failure.
        last: Box<ModelError>,
    },
    /// A stand-in was asked for more than it was told.
    #[error("the stand-in has no answer: {message}")]
    NotScripted {
        /// What was asked, and what would have been expected.
        message: String,
    },
}

/// What a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timeout {
    /// The connection.
    Connect,
    /// The beginning of the answer.
    FirstByte,
    /// The next piece of the answer.
    Idle,
    /// The end of the answer.
    Total,
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection",
            Self::FirstByte => "no answer",
            Self::Idle => "nothing more of the answer",
            Self::Total => "no end of the answer",
        })
    }
}

impl ModelError {
    /// What a run ends with that fails for this.
    pub fn outcome(&self) -> Outcome {
        let reason = self.to_string();
        match self {
            Self::Unauthorized { .. } => Outcome::AuthFailed { reason },
            Self::RateLimited { until, .. } => Outcome::RateLimited { until: *until },
            Self::QuotaExhausted { until, .. } => Outcome::QuotaExhausted { until: *until },
            Self::Overloaded { .. } => Outcome::Overloaded,
            Self::TooLong { .. } | Self::Refused { .. } => Outcome::Failed { reason },
            // An answer that stops is the network's doing.
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Cut { .. } => {
                Outcome::Unreachable { reason }
            }
            Self::Malformed { .. } | Self::NotScripted { .. } => Outcome::ProtocolError { reason },
            Self::Resting { last, .. } => last.outcome(),
        }
    }

    /// Whose failure it is.
    pub fn blame(&self) -> Blame {
        self.outcome().blame()
    }

    /// When the vendor may be asked again, if that is known.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::RateLimited { until, .. }
            | Self::QuotaExhausted { until, .. }
            | Self::Overloaded { until, .. } => *until,
            Self::Resting { until, .. } => Some(*until),
            _ => None,
        }
    }

    /// Whether the same request may be answered a moment later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Unreachable { .. }
            | Self::Cut { .. }
            | Self::Malformed { .. } => true,
            Self::TimedOut { limit, .. } => *limit != Timeout::Total,
            Self::Unauthorized { .. }
            | Self::QuotaExhausted { .. }
            | Self::TooLong { .. }
            | Self::Refused { .. }
            | Self::Resting { .. }
            | Self::NotScripted { .. } => false,
        }
    }

    /// Whether it shows that the vendor is ill. Who says that we ask too much or wrongly is well.
    pub fn is_illness(&self) -> bool {
        match self {
            Self::Overloaded { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Cut { .. }
            | Self::Malformed { .. } => true,
            Self::Unauthorized { .. }
            | Self::RateLimited { .. }
            | Self::QuotaExhausted { .. }
            | Self::TooLong { .. }
            | Self::Refused { .. }
            | Self::Resting { .. }
            | Self::NotScripted { .. } => false,
        }
    }
}

impl From<AssemblyError> for ModelError {
    fn from(error: AssemblyError) -> Self {
        let message = error.to_string();
        match error {
            AssemblyError::Unfinished => Self::Cut { message },
            AssemblyError::NoSuchPart { .. } | AssemblyError::OutOfOrder { .. } | AssemblyError::TooLong => {
                Self::Malformed { message }
            }
        }
    }
}
