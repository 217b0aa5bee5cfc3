//! The port: whatever knows what to answer.

use async_trait::async_trait;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode};

use crate::body::Body;

/// Whatever knows what to answer: a script, a recording, a proxy. A stage asks it for every request, many at a time.
#[async_trait]
pub trait Play: Send + Sync + 'static {
    /// The answer. It may take its time; when the client hangs up it is dropped.
    async fn answer(&self, asked: Asked) -> Answer;
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// How.
    pub method: Method,
    /// Where, with what stands after the question mark.
    pub path: String,
    /// As the client sent them.
    pub headers: HeaderMap,
    /// All of it.
    pub body: Bytes,
}

impl Asked {
    /// A header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// All headers that are text.
    pub fn text_headers(&self) -> Vec<(String, String)> {
        text_headers(&self.headers)
    }
}

pub(crate) fn text_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect()
}

/// What the client gets.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers. The length and the framing of the body are added by the server.
    pub headers: HeaderMap,
    /// What follows.
    pub body: Body,
}

impl Answer {
    /// Some JSON.
    pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self::of_type(status, "application/json", Body::Whole(body.into()))
    }

    /// A body of a kind.
    pub fn of_type(status: StatusCode, content_type: &'static str, body: Body) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        Self { status, headers, body }
    }

    /// Nothing.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: Body::Whole(Bytes::new()) }
    }

    /// The same with a header more.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }
}
