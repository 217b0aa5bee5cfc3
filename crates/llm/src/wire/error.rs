//! What vendors say when they do not answer.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// An error as a vendor tells it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorError {
    /// The vendor's word for it: `rate_limit_error`, `context_length_exceeded`, `RESOURCE_EXHAUSTED`.
    pub code: String,
    /// What it says.
    pub message: String,
    /// Google says here, and not in a header, how long to wait: `34s`.
    pub retry_delay: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Body {
    /// A stream of Google's that is no stream of events is a list. It comes first: serde would read a struct from a list as well.
    Many(Vec<One>),
    One(One),
}

#[derive(Deserialize)]
struct One {
    error: Told,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Words(String),
    Structured(Structured),
}

#[derive(Deserialize)]
struct Structured {
    #[serde(default)]
    message: Option<String>,
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    code: Option<Code>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    details: Option<Vec<Detail>>,
}

/// OpenAI's is a word, Google's the HTTP status.
#[derive(Deserialize)]
#[serde(untagged)]
enum Code {
    Word(String),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    #[serde(default)]
    retry_delay: Option<String>,
}

impl VendorError {
    /// From an answer's body, whoever the vendor is; none if it tells of no error.
    pub fn read(body: &[u8]) -> Option<Self> {
        let one = match serde_json::from_slice(body).ok()? {
            Body::One(one) => one,
            Body::Many(many) => many.into_iter().next()?,
        };
        let told = match one.error {
            Told::Words(message) => return Some(Self { message, ..Self::default() }),
            Told::Structured(told) => told,
        };
        let word = match told.code {
            Some(Code::Word(word)) => Some(word),
            Some(Code::Other(_)) | None => None,
        };
        let retry_delay = told.details.into_iter().flatten().find_map(|detail| detail.retry_delay);
        let code = word.or(told.status).or(told.kind).unwrap_or_default();
        Some(Self { code, message: told.message.unwrap_or_default(), retry_delay })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> (String, String, Option<String>) {
        let error = VendorError::read(body.as_bytes()).unwrap();
        (error.code, error.message, error.retry_delay)
    }

    #[test]
    fn every_vendor_has_its_own_form() {
        let anthropic = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(read(anthropic), ("overloaded_error".into(), "Overloaded".into(), None));
        let openai =
            r#"{"error":{"message":"m","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#;
        assert_eq!(read(openai), ("rate_limit_exceeded".into(), "m".into(), None));
        let google = r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"a","links":[]},{"@type":"b","retryDelay":"34s"}]}}]"#;
        assert_eq!(read(google), ("RESOURCE_EXHAUSTED".into(), "m".into(), Some("34s".into())));
        assert_eq!(
            read(r#"{"error":"model is required"}"#),
            (String::new(), "model is required".into(), None)
        );
    }

    #[test]
    fn an_answer_is_no_error() {
        for body in ["", "{}", "[]", "<html>", r#"{"error":null,"choices":[]}"#, r#"{"error":7}"#] {
            assert_eq!(VendorError::read(body.as_bytes()), None, "{body}");
        }
    }
}
