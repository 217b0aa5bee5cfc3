//! Passes everything on to a vendor, and records it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_core::Stream;
use hyper::body::Bytes;
use hyper::{HeaderMap, StatusCode};
use rehearsal_llm::cassette::{self, Ended, Recorder, Take, WriteError, Written};
use rehearsal_llm::http;
use rehearsal_llm::wire::Dialect;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answering::error;
use crate::body::{Body, Cut};
use crate::play::{Answer, Asked, Play, text_headers};
use crate::replaying::dialect_of;

/// Pieces of an answer that the client has not read yet. A slow client slows the vendor down, and costs no memory.
const PIECES: usize = 16;

/// How long an answer that nobody reads any more is waited for, when the recording is to end.
const REST_WITHIN: Duration = Duration::from_secs(10);

/// Headers that belong to one connection, and those that our own client sets.
const OF_THE_CONNECTION: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
];

/// A play that asks a real vendor, gives its answer on byte by byte, and keeps it.
#[derive(Debug)]
pub struct RecordingPlay {
    recorder: Arc<Recorder>,
    failures: Arc<Mutex<Vec<String>>>,
    client: reqwest::Client,
    upstreams: Upstreams,
    exchanges: TaskTracker,
    giving_up: CancellationToken,
}

/// Where vendors are: `https://api.anthropic.com`, without the version that stands in every path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstreams {
    anthropic: String,
    /// As its clients are told it, with the version if it has one: not every vendor that speaks like OpenAI does.
    openai: String,
    gemini: String,
}

/// What stands before every path of OpenAI's, and on a stage.
const VERSION: &str = "/v1";

impl Upstreams {
    /// All of them at one address, for a client that asks one vendor.
    pub fn one(address: &str) -> Self {
        let address = address.trim_end_matches('/').trim_end_matches(VERSION);
        Self::each(address, &format!("{address}{VERSION}"), address)
    }

    /// Each at its own, for a client that asks any: the form of a request says whom it is for. OpenAI's ends with the
    /// version, if it has one.
    pub fn each(anthropic: &str, openai: &str, gemini: &str) -> Self {
        let [anthropic, openai, gemini] =
            [anthropic, openai, gemini].map(|address| address.trim_end_matches('/').to_owned());
        Self { anthropic, openai, gemini }
    }

    /// Where a request goes that came to this path.
    fn target(&self, dialect: Dialect, path: &str) -> String {
        match dialect {
            Dialect::Anthropic => format!("{}{path}", self.anthropic),
            Dialect::OpenAiChat | Dialect::OpenAiResponses => {
                match path.strip_prefix(VERSION).filter(|rest| rest.starts_with('/')) {
                    Some(rest) => format!("{}{rest}", self.openai),
                    None => format!("{}{path}", self.openai.trim_end_matches(VERSION)),
                }
            }
            Dialect::Gemini => format!("{}{path}", self.gemini),
        }
    }
}

/// Why there is no cassette.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No client can be made.
    #[error("cannot make an HTTP client")]
    Client(#[source] reqwest::Error),
    /// A request got no answer.
    #[error("{0}")]
    Upstream(String),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl RecordingPlay {
    /// Asks the vendors at these addresses.
    pub fn new(recorder: Recorder, upstreams: Upstreams) -> Result<Self, RecordError> {
        let client = http::client_builder()
            // What is on this machine's loopback is not reached through a proxy.
            .no_proxy()
            .build()
            .map_err(RecordError::Client)?;
        Ok(Self {
            recorder: Arc::new(recorder),
            failures: Arc::default(),
            client,
            upstreams,
            exchanges: TaskTracker::new(),
            giving_up: CancellationToken::new(),
        })
    }

    /// How many requests came.
    pub fn asked(&self) -> u32 {
        self.recorder.asked()
    }

    /// Waits for what is still being answered, and gives the cassette its name. The stage must be closed.
    pub async fn finish(self: Arc<Self>) -> Result<Written, RecordError> {
        self.exchanges.close();
        if tokio::time::timeout(REST_WITHIN, self.exchanges.wait()).await.is_err() {
            self.giving_up.cancel();
            self.exchanges.wait().await;
        }
        let Some(this) = Arc::into_inner(self) else {
            return Err(RecordError::Upstream("the stage is still open".to_owned()));
        };
        let failures = this.failures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(first) = failures.into_iter().next() {
            return Err(RecordError::Upstream(first));
        }
        match Arc::into_inner(this.recorder) {
            Some(recorder) => Ok(recorder.finish()?),
            None => Err(RecordError::Upstream("an answer is still being recorded".to_owned())),
        }
    }
}

#[async_trait]
impl Play for RecordingPlay {
    async fn answer(&self, asked: Asked) -> Answer {
        let started = Instant::now();
        let headers = asked.text_headers();
        let take = self.recorder.ask(&cassette::Asked {
            method: asked.method.as_str(),
            target: &asked.path,
            headers: &headers,
            body: &asked.body,
        });
        let dialect = dialect_of(&asked);
        let request = self
            .client
            .request(asked.method.clone(), self.upstreams.target(dialect, &asked.path))
            .headers(passed_on(&asked.headers))
            .body(asked.body);
        let (head, begun) = oneshot::channel();
        let (pieces, rest) = mpsc::channel(PIECES);
        let exchange = Exchange {
            recorder: Arc::clone(&self.recorder),
            failures: Arc::clone(&self.failures),
            giving_up: self.giving_up.clone(),
            started,
            pieces,
        };
        // A client that hangs up does not take the answer away from the recording.
        self.exchanges.spawn(exchange.run(request, take, head));
        match begun.await {
            Ok(Head { status, headers }) => {
                Answer { status, headers, body: Body::Stream(Box::pin(Rest { rest })) }
            }
            Err(_) => error(dialect, StatusCode::BAD_GATEWAY, "the recording proxy got no answer")
                .with("x-should-retry", "false"),
        }
    }
}

/// The beginning of an answer.
struct Head {
    status: StatusCode,
    headers: HeaderMap,
}

struct Rest {
    rest: mpsc::Receiver<Result<Bytes, Cut>>,
}

impl Stream for Rest {
    type Item = Result<Bytes, Cut>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.rest.poll_recv(context)
    }
}

/// One exchange, in a task of its own.
struct Exchange {
    recorder: Arc<Recorder>,
    failures: Arc<Mutex<Vec<String>>>,
    giving_up: CancellationToken,
    started: Instant,
    pieces: mpsc::Sender<Result<Bytes, Cut>>,
}

impl Exchange {
    async fn run(self, request: reqwest::RequestBuilder, mut take: Take, head: oneshot::Sender<Head>) {
        let answered = tokio::select! {
            answered = request.send() => answered,
            () = self.giving_up.cancelled() => return self.failed(&take, "was not answered in time"),
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(error) => return self.failed(&take, &causes(&error)),
        };
        let headers = passed_on(response.headers());
        take.answered(response.status().as_u16(), &text_headers(response.headers()), self.started.elapsed());
        // The client may have gone: what comes is kept nevertheless.
        let _ = head.send(Head { status: response.status(), headers });
        let ended = self.pass(&mut response, &mut take).await;
        if let Err(error) = self.recorder.keep(take, ended) {
            self.tell(error.to_string());
        }
    }

    async fn pass(&self, response: &mut reqwest::Response, take: &mut Take) -> Ended {
        loop {
            let next = tokio::select! {
                next = response.chunk() => next,
                () = self.giving_up.cancelled() => return Ended::Cut,
            };
            match next {
                Ok(Some(bytes)) => {
                    take.bytes(&bytes, self.started.elapsed());
                    let _ = self.pieces.send(Ok(bytes)).await;
                }
                Ok(None) => return Ended::Whole,
                Err(_) => {
                    let _ = self.pieces.send(Err(Cut)).await;
                    return Ended::Cut;
                }
            }
        }
    }

    fn failed(&self, take: &Take, why: &str) {
        self.tell(format!("request {}: {why}", take.number()));
    }

    fn tell(&self, failure: String) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}

/// What the other side is to see. Compressed answers could not be recorded, so nobody asks for them.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    for name in OF_THE_CONNECTION.into_iter().chain(["accept-encoding"]) {
        passed.remove(name);
    }
    passed
}

/// An error with all that led to it: "error sending request" alone helps nobody.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_where_its_client_would_have_sent_it() {
        for address in ["http://vendor", "http://vendor/", "http://vendor/v1"] {
            let one = Upstreams::one(address);
            let to = |dialect, path| one.target(dialect, path);
            assert_eq!(to(Dialect::Anthropic, "/v1/messages"), "http://vendor/v1/messages");
            assert_eq!(to(Dialect::OpenAiChat, "/v1/chat/completions"), "http://vendor/v1/chat/completions");
            assert_eq!(to(Dialect::OpenAiChat, "/api/hello"), "http://vendor/api/hello");
            assert_eq!(to(Dialect::Gemini, "/v1beta/models"), "http://vendor/v1beta/models");
        }
        let other = Upstreams::each("http://a", "http://other/openai/api", "http://g");
        let to = other.target(Dialect::OpenAiResponses, "/v1/responses");
        assert_eq!(to, "http://other/openai/api/responses");
    }
}
