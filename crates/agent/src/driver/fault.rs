//! What kind of error a structured error is.
//!
//! Only what an agent's own error fields say is read here: a status, a code, and the message beside them. What
//! the model said or a tool printed never comes this way.

use rehearsal_core::{Timestamp, WireEnd, WireError, WireErrorKind};

use super::bounds::{MESSAGE, cut};
use super::{Here, wait};

/// A structured error, as it was found.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Fault<'a> {
    /// The HTTP status behind it.
    pub(crate) status: Option<u16>,
    /// The vendor's name for it: `rate_limit_error`, `RESOURCE_EXHAUSTED`, `connection_failed`.
    pub(crate) code: &'a str,
    /// What it says.
    pub(crate) message: &'a str,
    /// When it may go on, where a field of its own says so.
    pub(crate) until: Option<Timestamp>,
}

impl Fault<'_> {
    /// The end that it is.
    pub(crate) fn end(&self, here: &Here) -> WireEnd {
        match self.code {
            "FatalTurnLimitedError" => WireEnd::MaxTurns,
            _ => WireEnd::Error(self.error(here)),
        }
    }

    /// The error that it is.
    pub(crate) fn error(&self, here: &Here) -> WireError {
        let status =
            self.status.filter(|status| (100..600).contains(status)).or_else(|| status_in(self.message));
        let kind = match self.kind(status) {
            WireErrorKind::RateLimit { .. } => WireErrorKind::RateLimit { until: self.until(here) },
            WireErrorKind::Quota { .. } => WireErrorKind::Quota { until: self.until(here) },
            other => other,
        };
        WireError { kind, status, message: cut(self.message.trim(), MESSAGE) }
    }

    fn until(&self, here: &Here) -> Option<Timestamp> {
        self.until.or_else(|| wait::reset_time(self.message, here))
    }

    fn kind(&self, status: Option<u16>) -> WireErrorKind {
        let message = without_quotations(&cut(self.message, MESSAGE));
        if let Some(kind) = WireErrorKind::of_vendor(status, self.code, &message) {
            return kind;
        }
        let message = message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let by_words = MEANINGS.iter().find(|(_, words)| says(words));
        by_words.map_or(WireErrorKind::Other, |(kind, _)| *kind)
    }
}

/// What the words of a structured error mean where neither status nor code say it; the first that fits counts.
const MEANINGS: &[(WireErrorKind, &[&str])] = &[
    (WireErrorKind::Interrupted, &["interrupted (ctrl-c)", "request interrupted by user", "turn aborted"]),
    (
        WireErrorKind::RateLimit { until: None },
        &[
            "rate limit",
            "rate_limit_error",
            "rate_limit_exceeded",
            "too many requests",
            "resource_exhausted",
            "to increase your limits",
        ],
    ),
    (WireErrorKind::Quota { until: None }, &["exceeded your current quota", "quota exceeded"]),
    (
        WireErrorKind::Auth,
        &[
            "not logged in",
            "please run /login",
            "api key",
            "api_key",
            "missing environment variable",
            "unauthorized",
            "unauthenticated",
            "permission_denied",
            "authenticat",
            "access token",
            "oauth",
            "set an auth method",
            "sign in again",
        ],
    ),
    (
        WireErrorKind::Overloaded,
        &[
            "overloaded",
            "high demand",
            "at capacity",
            "internal server error",
            "status: internal",
            "status: unavailable",
            "service unavailable",
        ],
    ),
    // A stream that stops is the network's doing, also where a parser noticed it first.
    (WireErrorKind::Unreachable, &["stream disconnected", "stream closed", "idle timeout"]),
    (
        WireErrorKind::BadAnswer,
        &[
            "malformed response",
            "json parse error",
            "incomplete json",
            "invalid json",
            "json parsing failed",
            "unexpected token",
            "unexpected end of json",
            "unterminated string",
            "failed to parse",
            "could not parse",
            "type validation failed",
            "error decoding response body",
        ],
    ),
    (
        WireErrorKind::Unreachable,
        &[
            "econnrefused",
            "econnreset",
            "enotfound",
            "etimedout",
            "eai_again",
            "ehostunreach",
            "enetunreach",
            "epipe",
            "connection refused",
            "connection reset",
            "connection error",
            "connection failed",
            "connection closed",
            "error sending request",
            "error while reading the server response",
            "unable to connect",
            "cannot connect",
            "can't reach",
            "fetch failed",
            "network error",
            "timed out",
            "timeout",
            "socket",
            "other side closed",
            "api error: terminated",
            "getaddrinfo",
            "dns error",
            "name or service not known",
            "name resolution",
            "could not connect",
            "failed to connect",
            "no answer",
            "certificate",
        ],
    ),
    (WireErrorKind::Sandbox, &["landlock", "seccomp", "codex-linux-sandbox"]),
];

/// What a message says itself: what stands in backticks are names, such as those of options.
fn without_quotations(message: &str) -> String {
    message.split('`').step_by(2).collect()
}

/// What stands before an HTTP status in the messages of agents.
const BEFORE_STATUS: &[&str] = &[
    "unexpected status ",
    "last status: ",
    "status: ",
    "status ",
    "status code ",
    "API Error: ",
    "HTTP ",
    "HTTP/1.1 ",
    "error code: ",
    "\"code\":",
    "(",
];

/// The HTTP status that a structured message names: `unexpected status 401 Unauthorized`, `rejected (429)`.
pub(crate) fn status_in(message: &str) -> Option<u16> {
    // pi and others: `401 invalid x-api-key`.
    let first =
        message.trim_start().trim_start_matches('[').split([' ', ':', ']']).next().unwrap_or_default();
    let leading = first.parse().ok().filter(|status| first.len() == 3 && (400..600).contains(status));
    leading.or_else(|| status_named_in(message))
}

fn status_named_in(message: &str) -> Option<u16> {
    BEFORE_STATUS.iter().find_map(|before| {
        message.match_indices(before).find_map(|(at, _)| {
            let rest = message[at + before.len()..].trim_start();
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let status = rest[..digits].parse().ok()?;
            (400..600).contains(&status).then_some(status)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NOW: Timestamp = Timestamp(1_794_772_800_000);

    fn kind(status: Option<u16>, code: &str, message: &str) -> WireErrorKind {
        match (Fault { status, code, message, until: None }).end(&Here::at(NOW)) {
            WireEnd::Error(error) => error.kind,
            other => panic!("{other:?}"),
        }
    }

    #[rstest]
    #[case("unexpected status 401 Unauthorized: no, url: http://x", WireErrorKind::Auth)]
    #[case("unexpected status 403 Forbidden: no", WireErrorKind::Auth)]
    #[case("unexpected status 404 Not Found: no model", WireErrorKind::Other)]
    #[case("unexpected status 502 Bad Gateway", WireErrorKind::Overloaded)]
    #[case("exceeded retry limit, last status: 429 Too Many Requests", WireErrorKind::RateLimit { until: None })]
    #[case("exceeded retry limit, last status: 500 Internal Server Error", WireErrorKind::Overloaded)]
    #[case("You\u{2019}ve hit your usage limit. Try again later.", WireErrorKind::Quota { until: None })]
    #[case("Quota exceeded. Check your plan and billing details.", WireErrorKind::Quota { until: None })]
    #[case(
        "We're currently experiencing high demand, which may cause temporary errors.",
        WireErrorKind::Overloaded
    )]
    #[case("Connection failed: error sending request", WireErrorKind::Unreachable)]
    #[case(
        "Cannot connect to API: Unable to connect. Is the computer able to access the url?",
        WireErrorKind::Unreachable
    )]
    #[case("stream disconnected before completion: idle timeout waiting for SSE", WireErrorKind::Unreachable)]
    #[case("Missing environment variable: `SOME_KEY`.", WireErrorKind::Auth)]
    #[case("unknown variant `wirte`, expected one of `write`, `rate limit`, `timeout`", WireErrorKind::Other)]
    #[case(
        "script.yaml:3:5: unknown variant `wirte`, expected one of say, write, rate_limit",
        WireErrorKind::Other
    )]
    #[case("Incomplete JSON segment at the end", WireErrorKind::BadAnswer)]
    #[case("401 invalid x-api-key", WireErrorKind::Auth)]
    #[case("getaddrinfo ENOTFOUND api.example.com", WireErrorKind::Unreachable)]
    #[case("dns error: failed to lookup address information", WireErrorKind::Unreachable)]
    #[case("Codex ran out of room in the model's context window.", WireErrorKind::Other)]
    fn the_words_of_a_structured_error_are_understood(
        #[case] message: &str,
        #[case] expected: WireErrorKind,
    ) {
        assert_eq!(kind(None, "", message), expected);
    }

    #[test]
    fn a_status_says_more_than_a_code_and_a_code_more_than_words() {
        assert_eq!(kind(Some(529), "", "timeout"), WireErrorKind::Overloaded);
        assert_eq!(
            kind(Some(400), "invalid_request_error", "the api key field is unknown"),
            WireErrorKind::Other
        );
        assert_eq!(kind(None, "rate_limit_error", "connection"), WireErrorKind::RateLimit { until: None });
        assert_eq!(kind(Some(400), "", "Credit balance is too low"), WireErrorKind::Quota { until: None });
    }

    #[test]
    fn a_limit_knows_when_it_ends() {
        let message = "You've hit your usage limit. Try again in 1 hour.";
        assert_eq!(
            kind(Some(429), "", message),
            WireErrorKind::Quota { until: Some(Timestamp(NOW.0 + 3_600_000)) }
        );
        let told = Fault { status: Some(429), until: Some(Timestamp(NOW.0 + 5)), ..Fault::default() };
        let WireEnd::Error(error) = told.end(&Here::at(NOW)) else { panic!() };
        assert_eq!(error.kind, WireErrorKind::RateLimit { until: Some(Timestamp(NOW.0 + 5)) });
    }
}
