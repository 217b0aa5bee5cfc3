//! What a model's vendor means by an error, and when it may be asked again.

use std::time::Duration;

use crate::{Timestamp, WireErrorKind};

/// No quota is filled later than this; what says so is misread.
const LONGEST_WAIT: Duration = Duration::from_hours(40 * 24);

/// The moment that a `retry-after` header stands for: seconds, or a date.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(seconds) = header.trim().parse::<f64>() {
        return in_seconds(seconds, now);
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(header.trim()).ok()?;
    if_sensible(Timestamp(date.as_millisecond()), now)
}

/// The moment some seconds from now; none if it is further away than any limit lasts.
pub fn in_seconds(seconds: f64, now: Timestamp) -> Option<Timestamp> {
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    (wait <= LONGEST_WAIT).then(|| now.plus(wait))
}

/// The moment, if it is to come and not further away than any limit lasts.
pub fn if_sensible(moment: Timestamp, now: Timestamp) -> Option<Timestamp> {
    (moment >= now && moment <= now.plus(LONGEST_WAIT)).then_some(moment)
}

/// A plan or a credit that is used up.
const QUOTA: &[&str] = &[
    "usage limit",
    "hit your limit",
    "session limit",
    "hour limit",
    "daily limit",
    "weekly limit",
    "monthly limit",
    "spending limit",
    "credit balance is too low",
    "out of credits",
    "out of extra usage",
    "insufficient credits",
    "insufficient balance",
    "insufficient_quota",
    "quota exceeded. check your plan",
    "exhausted your capacity",
    "exhausted your daily quota",
    "perday",
    "upgrade to plus",
];

/// Whether these words, in lower case, say that a plan or a credit is used up.
fn is_used_up(words: &str) -> bool {
    let any = |wanted: &[&str]| wanted.iter().any(|word| words.contains(word));
    // `Opus limit reached ∙ resets 3pm`: a limit of requests is not told with a time of day.
    let named_limit =
        words.contains("limit reached") && words.contains("reset") && !any(&["rate limit", "context"]);
    any(QUOTA) || named_limit
}

impl WireErrorKind {
    /// The kind that a vendor's status, code and words stand for; none where there is no status, and nothing else is known.
    pub fn of_vendor(status: Option<u16>, code: &str, words: &str) -> Option<Self> {
        let words = words.to_lowercase().replace('\u{2019}', "'");
        let says = |wanted: &[&str]| wanted.iter().any(|word| words.contains(word));
        let by_code = Self::of_code(code);
        // Vendors answer 400, 403 and 429 alike when a plan or a credit is used up; their words tell.
        let may_be_quota = status.is_none_or(|status| matches!(status, 400 | 402 | 403 | 429));
        if may_be_quota && (is_used_up(&words) || by_code == Some(Self::Quota { until: None })) {
            return Some(Self::Quota { until: None });
        }
        // Google answers 400 to a wrong key.
        if status == Some(400) && says(&["api key not valid", "api_key_invalid"]) {
            return Some(Self::Auth);
        }
        let by_status = status.map(Self::of_status);
        by_status.filter(|kind| *kind != Self::Other).or(by_code).or(by_status)
    }

    fn of_code(code: &str) -> Option<Self> {
        Some(match code {
            "authentication_error"
            | "authentication_failed"
            | "permission_error"
            | "UNAUTHENTICATED"
            | "PERMISSION_DENIED"
            | "FatalAuthenticationError"
            | "UnauthorizedError"
            | "ForbiddenError"
            | "ProviderAuthError"
            | "AuthenticationError"
            | "PermissionDeniedError"
            | "invalid_api_key"
            | "oauth_org_not_allowed" => Self::Auth,
            "billing_error"
            | "insufficient_quota"
            | "usage_limit_reached"
            | "TerminalQuotaError"
            | "BudgetExceededError" => Self::Quota { until: None },
            "rate_limit_error"
            | "rate_limit"
            | "rate_limit_exceeded"
            | "RESOURCE_EXHAUSTED"
            | "RateLimitError"
            | "RetryableQuotaError" => Self::RateLimit { until: None },
            "overloaded_error"
            | "overloaded"
            | "server_error"
            | "api_error"
            | "server_is_overloaded"
            | "InternalServerError"
            | "ServiceUnavailableError"
            | "UNAVAILABLE"
            | "INTERNAL" => Self::Overloaded,
            "connection_failed" | "timeout" | "timeout_error" | "Timeout" | "APIConnectionError"
            | "APITimeoutError" | "ConnectionError" | "DEADLINE_EXCEEDED" => Self::Unreachable,
            // What these say about the model's name must not be taken for a word about a key or a network.
            "not_found_error" | "model_not_found" | "ModelNotFoundError" | "NotFoundError" => Self::Other,
            "FatalSandboxError" => Self::Sandbox,
            "FatalCancellationError" | "CanceledError" | "MessageAbortedError" | "AbortError" => {
                Self::Interrupted
            }
            "FatalUntrustedWorkspaceError" => Self::Permission,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_794_772_800_000);

    #[test]
    fn a_header_is_seconds_or_a_date() {
        assert_eq!(retry_after("30", NOW), Some(Timestamp(NOW.0 + 30_000)));
        assert_eq!(retry_after("Sun, 15 Nov 2026 20:01:00 GMT", NOW), Some(Timestamp(NOW.0 + 60_000)));
        assert_eq!(retry_after("soon", NOW), None);
        assert_eq!(retry_after("-5", NOW), None);
        assert_eq!(retry_after("1e300", NOW), None);
    }

    #[test]
    fn a_quota_that_only_the_code_names_is_no_rate_limit() {
        let words = "You exceeded your current quota, please check your plan and billing details.";
        let kind = WireErrorKind::of_vendor(Some(429), "insufficient_quota", words);
        assert_eq!(kind, Some(WireErrorKind::Quota { until: None }));
        let kind = WireErrorKind::of_vendor(Some(429), "RESOURCE_EXHAUSTED", words);
        assert_eq!(kind, Some(WireErrorKind::RateLimit { until: None }));
    }

    #[test]
    fn a_limit_of_a_plan_is_known_by_any_name() {
        let kind = |words| WireErrorKind::of_vendor(None, "", words);
        for words in [
            "5-hour limit reached ∙ resets 3pm",
            "Opus limit reached ∙ resets Oct 6, 1pm (Europe/Berlin)",
            "Claude AI usage limit reached|1760000000",
            "You\u{2019}ve hit your usage limit. Try again in 2 hours 5 minutes.",
        ] {
            assert_eq!(kind(words), Some(WireErrorKind::Quota { until: None }), "{words}");
        }
        assert_eq!(kind("Rate limit reached for gpt-5; it resets in 2s"), None);
        assert_eq!(kind("context limit reached, reset the conversation"), None);
    }
}
