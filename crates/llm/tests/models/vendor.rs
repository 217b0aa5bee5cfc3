//! A vendor on loopback that answers what it was told, request by request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rehearsal_core::{Timestamp, VirtualClock};
use rehearsal_llm::ApiKey;
use rehearsal_llm::chat::{ChatRequest, Json, Message, ToolDefinition, ToolInput};
use rehearsal_llm::clients::{Client, Endpoint, Limits, Settings};
use rehearsal_llm::wire::Dialect;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A key that opens nothing.
pub(crate) const KEY: &str = "sk-ant-api03-opens-nothing-at-all";

/// When the tests happen: Sun, 15 Nov 2026 20:00:00 GMT.
pub(crate) const NOW: Timestamp = Timestamp(1_794_772_800_000);

/// Longer than anything takes on the slowest machine; only a test that fails waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a request gets.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
    then: Then,
}

/// What follows the bytes.
#[derive(Debug, Clone, Copy)]
enum Then {
    HangUp,
    Hang,
    /// The same bytes again and again.
    Repeat(&'static str),
}

impl Reply {
    pub(crate) fn json(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let length = body.len();
        let mut head =
            format!("HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let bytes = format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes();
        Self { bytes, then: Then::HangUp }
    }

    pub(crate) fn ok(body: &str) -> Self {
        Self::json(200, &[], body)
    }

    /// A stream that ends as HTTP says it must.
    pub(crate) fn stream(events: &str) -> Self {
        let mut reply = Self::cut_stream(events);
        reply.bytes.extend_from_slice(b"0\r\n\r\n");
        reply
    }

    /// A stream whose connection breaks after these events.
    pub(crate) fn cut_stream(events: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
        // Small chunks, so that events come in pieces.
        let mut bytes = head.as_bytes().to_vec();
        for piece in events.as_bytes().chunks(97) {
            bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        Self { bytes, then: Then::HangUp }
    }

    /// The same, and then silence.
    pub(crate) fn stalled_stream(events: &str) -> Self {
        Self { then: Then::Hang, ..Self::cut_stream(events) }
    }

    /// A request that is read and never answered.
    pub(crate) fn silence() -> Self {
        Self { bytes: Vec::new(), then: Then::Hang }
    }

    /// A connection that is closed without a word.
    pub(crate) fn hang_up() -> Self {
        Self { bytes: Vec::new(), then: Then::HangUp }
    }

    /// An answer without an end.
    pub(crate) fn endless(kind: &str, repeated: &'static str) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
        Self { bytes: head.into_bytes(), then: Then::Repeat(repeated) }
    }

    /// Only a part of what it says it has.
    pub(crate) fn short_json(body: &str) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let half = &body.as_bytes()[..body.len() / 2];
        Self { bytes: [head.as_bytes(), half].concat(), then: Then::HangUp }
    }
}

/// An open vendor. It is closed when it is dropped.
pub(crate) struct Vendor {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<String>>>,
    left_alone: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Vendor {
    /// Answers in this order; past its end it hangs up.
    pub(crate) async fn open(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requests);
        let left_alone = Arc::<AtomicUsize>::default();
        let gone = Arc::clone(&left_alone);
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        let serving = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((mut connection, _)) = listener.accept().await {
                let Some(request) = read_request(&mut connection).await else { continue };
                seen.lock().unwrap().push(request);
                let reply = replies.pop_front().unwrap_or_else(Reply::hang_up);
                open.spawn(give(connection, reply, Arc::clone(&gone)));
            }
        });
        Self { address, requests, left_alone, serving }
    }

    /// What was asked so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// How many clients hung up while they were kept waiting.
    pub(crate) fn left_alone(&self) -> usize {
        self.left_alone.load(Ordering::SeqCst)
    }

    pub(crate) fn endpoint(&self, dialect: Dialect) -> Endpoint {
        endpoint_at(&self.address, dialect, KEY)
    }

    pub(crate) fn client(&self, dialect: Dialect) -> Client {
        self.client_with(dialect, settings()).0
    }

    pub(crate) fn client_with(&self, dialect: Dialect, settings: Settings) -> (Client, Arc<VirtualClock>) {
        let clock = Arc::new(VirtualClock::starting_at(NOW));
        (Client::new(self.endpoint(dialect), settings, clock.clone()).unwrap(), clock)
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// At a server's root, in the form that the vendor's own tools take.
pub(crate) fn endpoint_at(address: &str, dialect: Dialect, key: &str) -> Endpoint {
    let path = if matches!(dialect, Dialect::OpenAiChat | Dialect::OpenAiResponses) { "/v1" } else { "" };
    Endpoint::new(dialect, &format!("{address}{path}"), Some(ApiKey::new(key).unwrap())).unwrap()
}

/// Nothing is late, unless a test says so.
pub(crate) fn settings() -> Settings {
    let limits = Limits {
        connect: PATIENCE,
        first_byte: PATIENCE,
        idle: PATIENCE,
        total: PATIENCE,
        ..Limits::default()
    };
    Settings { limits, seed: 7, ..Settings::default() }
}

/// The same, and asks once only.
pub(crate) fn once() -> Settings {
    let mut settings = settings();
    settings.retry.tries = 1;
    settings
}

async fn give(mut connection: TcpStream, reply: Reply, left_alone: Arc<AtomicUsize>) {
    if connection.write_all(&reply.bytes).await.is_err() {
        return;
    }
    match reply.then {
        Then::HangUp => {}
        Then::Hang => {
            // Nothing comes but the end: the client hung up.
            let _ = connection.read(&mut [0; 1]).await;
            left_alone.fetch_add(1, Ordering::SeqCst);
        }
        Then::Repeat(text) => {
            let many = text.repeat(1000);
            while connection.write_all(many.as_bytes()).await.is_ok() {}
        }
    }
}

async fn read_request(connection: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            if body.len() >= length.parse::<usize>().ok()? {
                return Some(text.into_owned());
            }
        }
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A user with a tool.
pub(crate) fn user(text: &str) -> ChatRequest {
    let schema =
        r#"{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}}}"#;
    let write = ToolDefinition {
        name: "Write".into(),
        description: "Writes a file".into(),
        input: ToolInput::Schema(Json::parse(schema.into()).unwrap()),
    };
    let mut chat = ChatRequest::new("some-model", vec![Message::user(text)]);
    chat.max_tokens = Some(100);
    chat.tools.push(write);
    chat
}

/// An answer of each vendor in one piece, and as a stream.
pub(crate) fn samples(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::Anthropic => {
            (include_str!("fixtures/anthropic.json"), include_str!("fixtures/anthropic.sse"))
        }
        Dialect::OpenAiChat => {
            (include_str!("fixtures/openai_chat.json"), include_str!("fixtures/openai_chat.sse"))
        }
        Dialect::OpenAiResponses => {
            (include_str!("fixtures/openai_responses.json"), include_str!("fixtures/openai_responses.sse"))
        }
        Dialect::Gemini => (include_str!("fixtures/gemini.json"), include_str!("fixtures/gemini.sse")),
    }
}
