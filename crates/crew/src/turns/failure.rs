//! From a model's failure to the end of a run, in the words that every driver uses.

use rehearsal_core::{WireEnd, WireError, WireErrorKind};
use rehearsal_llm::model::ModelError;

/// A run that ends with an error of ours.
pub(super) fn error(kind: WireErrorKind, message: impl Into<String>) -> WireEnd {
    WireEnd::Error(WireError { kind, status: None, message: message.into() })
}

/// A run that ends because the model does not answer.
pub(super) fn of_model_error(error: &ModelError) -> WireEnd {
    let (kind, status) = kind_of(error);
    WireEnd::Error(WireError { kind, status, message: error.to_string() })
}

fn kind_of(error: &ModelError) -> (WireErrorKind, Option<u16>) {
    match error {
        ModelError::Unauthorized { .. } => (WireErrorKind::Auth, None),
        ModelError::RateLimited { until, .. } => (WireErrorKind::RateLimit { until: *until }, Some(429)),
        ModelError::QuotaExhausted { until, .. } => (WireErrorKind::Quota { until: *until }, None),
        ModelError::Overloaded { status, .. } => (WireErrorKind::Overloaded, Some(*status)),
        ModelError::TooLong { .. } => (WireErrorKind::Other, None),
        ModelError::Refused { status, .. } => (WireErrorKind::Other, Some(*status)),
        ModelError::Unreachable { .. } | ModelError::TimedOut { .. } | ModelError::Cut { .. } => {
            (WireErrorKind::Unreachable, None)
        }
        ModelError::Malformed { .. } | ModelError::NotScripted { .. } => (WireErrorKind::BadAnswer, None),
        ModelError::Resting { last, .. } => kind_of(last),
    }
}
