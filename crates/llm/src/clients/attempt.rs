//! One request over HTTP.

use std::error::Error;

use rehearsal_core::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout_at};

use super::endpoint::Endpoint;
use super::policy::Limits;
use crate::chat::{ChatRequest, ChatResponse};
use crate::failure::{Refusal, excerpt, of_wire};
use crate::key::hidden;
use crate::model::{ModelError, Timeout};
use crate::wire::{VendorError, WireError};

/// What is read of an error's body. The longest that vendors send are Google's, with about 4 KB.
const ERROR_BYTES: usize = 64 * 1024;

/// What is told of an answer that is none.
const SHOWN: usize = 200;

/// A request that is about to be sent.
pub(super) struct Attempt<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) http: &'a reqwest::Client,
    pub(super) limits: Limits,
    pub(super) now: Timestamp,
    pub(super) request: &'a ChatRequest,
}

/// Why a request was not answered, and what the vendor says about asking again.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// `x-should-retry`, which knows better than any rule of ours.
    retry: Option<bool>,
}

impl Failure {
    pub(super) fn may_be_asked_again(&self) -> bool {
        self.retry.unwrap_or_else(|| self.error.is_retryable())
    }

    fn for_good(error: ModelError) -> Self {
        Self { error, retry: Some(false) }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { error, retry: None }
    }
}

impl Attempt<'_> {
    /// The answer in one piece.
    pub(super) async fn whole(self) -> Result<ChatResponse, Failure> {
        let deadline = Instant::now() + self.limits.total;
        let mut response = self.send(false, deadline).await?;
        let body = self.read(&mut response, self.limits.answer_bytes, deadline).await?;
        if body.is_too_long {
            let limit = self.limits.answer_bytes;
            let message = format!("the answer is longer than {limit} bytes");
            return Err(Failure::for_good(ModelError::Malformed { message }));
        }
        let read = self.endpoint.dialect().read_response(&body.bytes);
        read.map_err(|error| self.unreadable(error, &body.bytes).into())
    }

    /// An answer that begins.
    pub(super) async fn stream(self) -> Result<reqwest::Response, Failure> {
        let deadline = Instant::now() + self.limits.total;
        let mut response = self.send(true, deadline).await?;
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return Ok(response);
        }
        let kind = excerpt(&hidden(self.endpoint.key(), kind), SHOWN);
        let body = self.read(&mut response, ERROR_BYTES, deadline).await?;
        Err(match VendorError::read(&body.bytes) {
            Some(told) => self.broken_off(told),
            None => ModelError::Malformed { message: format!("a stream was asked for, and `{kind}` came") },
        }
        .into())
    }

    async fn send(&self, stream: bool, deadline: Instant) -> Result<reqwest::Response, Failure> {
        let dialect = self.endpoint.dialect();
        let mut request = self
            .http
            .post(self.endpoint.url(&self.request.model, stream))
            .body(dialect.write_request(self.request, stream));
        for (name, value) in dialect.request_headers() {
            request = request.header(*name, *value);
        }
        if let Some((name, value)) = self.endpoint.authorization() {
            let value = HeaderValue::try_from(value);
            let mut value = value.map_err(|_| self.unreachable("the key cannot be sent"))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let begun = deadline.min(Instant::now() + self.limits.first_byte);
        let Ok(sent) = timeout_at(begun, request.send()).await else {
            return Err(self.timed_out(Timeout::FirstByte, begun == deadline).into());
        };
        let mut response = sent.map_err(|error| self.not_sent(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let body = self.read(&mut response, ERROR_BYTES, deadline).await.unwrap_or_default();
        Err(self.refused(&response, &body.bytes))
    }

    /// The body, as far as it goes.
    async fn read(
        &self,
        response: &mut reqwest::Response,
        most: usize,
        deadline: Instant,
    ) -> Result<Body, ModelError> {
        let mut body = Body::default();
        loop {
            let next = deadline.min(Instant::now() + self.limits.idle);
            let Ok(chunk) = timeout_at(next, response.chunk()).await else {
                return Err(self.timed_out(Timeout::Idle, next == deadline));
            };
            let cut = |error| ModelError::Cut { message: self.causes(error) };
            let Some(chunk) = chunk.map_err(cut)? else { return Ok(body) };
            if body.bytes.len() + chunk.len() > most {
                body.is_too_long = true;
                return Ok(body);
            }
            body.bytes.extend_from_slice(&chunk);
        }
    }

    fn refused(&self, response: &reqwest::Response, body: &[u8]) -> Failure {
        let headers = response.headers();
        let refusal = Refusal {
            status: response.status().as_u16(),
            retry_after: header(headers, "retry-after"),
            retry_after_ms: header(headers, "retry-after-ms"),
            body,
            key: self.endpoint.key(),
        };
        let retry = match header(headers, "x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        Failure { error: refusal.error(self.now), retry }
    }

    /// Some vendors answer 200 and tell an error then.
    fn unreadable(&self, error: WireError, body: &[u8]) -> ModelError {
        match VendorError::read(body) {
            Some(told) => self.broken_off(told),
            None => of_wire(error, self.endpoint.key()),
        }
    }

    fn broken_off(&self, told: VendorError) -> ModelError {
        let VendorError { code, message, .. } = told;
        of_wire(WireError::BrokenOff { kind: code, message }, self.endpoint.key())
    }

    fn not_sent(&self, error: reqwest::Error) -> ModelError {
        if error.is_connect() && error.is_timeout() {
            return ModelError::TimedOut { limit: Timeout::Connect, after: self.limits.connect };
        }
        self.unreachable(&self.causes(error))
    }

    fn unreachable(&self, message: &str) -> ModelError {
        ModelError::Unreachable { message: excerpt(&hidden(self.endpoint.key(), message), SHOWN) }
    }

    fn timed_out(&self, limit: Timeout, is_the_last: bool) -> ModelError {
        if is_the_last { self.limits.expired(Timeout::Total) } else { self.limits.expired(limit) }
    }

    fn causes(&self, error: reqwest::Error) -> String {
        hidden(self.endpoint.key(), &causes(error)).into_owned()
    }
}

impl Limits {
    pub(super) fn expired(&self, limit: Timeout) -> ModelError {
        let after = match limit {
            Timeout::Connect => self.connect,
            Timeout::FirstByte => self.first_byte,
            Timeout::Idle => self.idle,
            Timeout::Total => self.total,
        };
        ModelError::TimedOut { limit, after }
    }
}

/// What was read of an answer.
#[derive(Debug, Default)]
struct Body {
    bytes: Vec<u8>,
    is_too_long: bool,
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// An error with all that led to it, and without the address: "error sending request" alone helps nobody.
pub(super) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
