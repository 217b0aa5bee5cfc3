//! From what a vendor says instead of an answer to a [`ModelError`].

use rehearsal_core::vendor::{in_seconds, retry_after};
use rehearsal_core::{Timestamp, WireErrorKind};

use crate::key::{ApiKey, hidden};
use crate::model::ModelError;
use crate::wire::{VendorError, WireError};

/// What is kept of a vendor's words: enough for a person, and no more than a log can bear.
const MESSAGE: usize = 1000;

/// Where words are looked for that say what kind of error it is.
const LOOKED_THROUGH: usize = 16 * 1024;

/// An answer that is no success.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal<'a> {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<&'a str>,
    pub(crate) retry_after_ms: Option<&'a str>,
    pub(crate) body: &'a [u8],
    /// What must not be told, if a vendor repeats it.
    pub(crate) key: Option<&'a ApiKey>,
}

impl Refusal<'_> {
    pub(crate) fn error(&self, now: Timestamp) -> ModelError {
        let told = VendorError::read(self.body);
        let until = self.until(told.as_ref().and_then(|told| told.retry_delay.as_deref()), now);
        let words = excerpt(&String::from_utf8_lossy(self.body), LOOKED_THROUGH);
        let VendorError { code, message, .. } = told.unwrap_or_default();
        let message = if message.is_empty() { &words } else { &message };
        let message = if message.is_empty() { "no reason given" } else { message };
        let kind = WireErrorKind::of_vendor(Some(self.status), &code, &words);
        let kind = kind.unwrap_or(WireErrorKind::Other);
        let message = excerpt(&hidden(self.key, message), MESSAGE);
        error(kind, self.status, &code, &words, message, until)
    }

    fn until(&self, delay: Option<&str>, now: Timestamp) -> Option<Timestamp> {
        let exact =
            self.retry_after_ms.and_then(|ms| in_seconds(ms.trim().parse::<f64>().ok()? / 1000.0, now));
        let header = || retry_after(self.retry_after?, now);
        let told = || in_seconds(delay?.strip_suffix('s')?.parse().ok()?, now);
        exact.or_else(header).or_else(told)
    }
}

/// An answer that cannot be read, or in which the vendor broke off.
pub(crate) fn of_wire(failed: WireError, key: Option<&ApiKey>) -> ModelError {
    let (code, message) = match failed {
        WireError::BrokenOff { kind, message } => (kind, message),
        WireError::Malformed { what, source } => {
            let message = format!("{what} is malformed: {source}");
            return ModelError::Malformed { message: excerpt(&hidden(key, &message), MESSAGE) };
        }
    };
    // Words alone mean what they say in no status: a vendor that breaks off without a known code is broken.
    let kind = WireErrorKind::of_vendor(None, &code, &message).unwrap_or(WireErrorKind::Overloaded);
    let is_ours = matches!(code.as_str(), "invalid_request_error" | "invalid_prompt" | "INVALID_ARGUMENT");
    let kind = if is_ours { WireErrorKind::Other } else { kind };
    let status = match code.as_str() {
        "overloaded_error" => 529,
        "UNAVAILABLE" | "server_is_overloaded" => 503,
        _ if is_ours => 400,
        _ => 500,
    };
    error(kind, status, &code, &message, excerpt(&hidden(key, &message), MESSAGE), None)
}

fn error(
    kind: WireErrorKind,
    status: u16,
    code: &str,
    words: &str,
    message: String,
    until: Option<Timestamp>,
) -> ModelError {
    if is_too_long(status, code, words) {
        return ModelError::TooLong { message };
    }
    match kind {
        WireErrorKind::Auth => ModelError::Unauthorized { message },
        WireErrorKind::RateLimit { .. } => ModelError::RateLimited { until, message },
        WireErrorKind::Quota { .. } => ModelError::QuotaExhausted { until, message },
        WireErrorKind::Overloaded | WireErrorKind::Unreachable => {
            ModelError::Overloaded { status, until, message }
        }
        WireErrorKind::BadAnswer
        | WireErrorKind::Permission
        | WireErrorKind::Sandbox
        | WireErrorKind::Interrupted
        | WireErrorKind::Other => ModelError::Refused { status, message },
    }
}

/// Anthropic and Google answer 400 and say it in words, OpenAI has a code; 413 is what proxies answer.
fn is_too_long(status: u16, code: &str, words: &str) -> bool {
    let words = words.to_lowercase();
    let says = |wanted: &[&str]| wanted.iter().any(|word| words.contains(word));
    status == 413
        || matches!(code, "context_length_exceeded" | "request_too_large")
        || status == 400
            && says(&[
                "prompt is too long",
                "maximum context length",
                "exceed context limit",
                "exceeds the maximum number of tokens",
                "exceeds the context window",
            ])
}

pub(crate) fn excerpt(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}
