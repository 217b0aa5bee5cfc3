//! An open stage, and whoever asks it.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_agent::clis::KNOWN;
use rehearsal_llm::assembly::Assembly;
use rehearsal_llm::chat::{ChatRequest, ChatResponse, Json, Message, ToolDefinition, ToolInput};
use rehearsal_llm::sse::Decoder;
use rehearsal_llm::wire::{Dialect, VendorError};
use rehearsal_stage::{Report, Script, ScriptedPlay, Stage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than anything takes on the slowest machine; only a test that fails waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Theatre {
    pub(crate) stage: Stage,
    pub(crate) play: Arc<ScriptedPlay>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as HTTP says it must.
    pub(crate) is_whole: bool,
}

impl Theatre {
    pub(crate) fn play(script: &str) -> Self {
        let script = Script::parse(script).unwrap_or_else(|error| panic!("{:?}: {error}", error.place));
        let play = Arc::new(ScriptedPlay::new(script, &KNOWN.model_clients()));
        let stage = Stage::open(([127, 0, 0, 1], 0).into(), play.clone()).unwrap();
        Self { stage, play }
    }

    pub(crate) fn report(&self) -> Report {
        self.play.report()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.stage.address()).await.unwrap()
    }

    /// Sends a request and waits for all that comes back.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = self.connect().await;
        stream.write_all(&request(method, path, headers, body)).await.unwrap();
        let mut bytes = Vec::new();
        // A connection that is cut may end with an error; what came before counts.
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
        drop(read);
        Reply::read(&bytes)
    }

    pub(crate) async fn post(&self, path: &str, body: &[u8]) -> Reply {
        self.ask("POST", path, &[], body).await
    }

    /// Asks as a vendor's own client does.
    pub(crate) async fn chat(&self, dialect: Dialect, chat: &ChatRequest, stream: bool) -> Reply {
        self.post(&dialect.path(&chat.model, stream), &dialect.write_request(chat, stream)).await
    }

    /// The same, and understands the answer.
    pub(crate) async fn says(&self, dialect: Dialect, chat: &ChatRequest, stream: bool) -> ChatResponse {
        let reply = self.chat(dialect, chat, stream).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.is_whole);
        if stream { read_stream(dialect, &reply.body) } else { dialect.read_response(&reply.body).unwrap() }
    }
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: stage\r\nconnection: close\r\ncontent-length: {length}\r\n"
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

pub(crate) fn read_stream(dialect: Dialect, body: &[u8]) -> ChatResponse {
    let (mut decoder, mut reader) = (Decoder::default(), dialect.stream_reader());
    let mut assembly = Assembly::default();
    let read = |event| reader.push(&event, |delta| assembly.push(delta).unwrap()).unwrap();
    decoder.push(body, read).unwrap();
    assembly.finish().unwrap()
}

impl Reply {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let (body, is_whole) = if head.contains("transfer-encoding: chunked") {
            unchunked(&bytes[end..])
        } else {
            let body = bytes[end..].to_vec();
            let is_whole = head.contains(&format!("content-length: {}\r\n", body.len()));
            (body, is_whole)
        };
        Self { status, head, body, is_whole }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The message of an error, whoever the vendor is.
    pub(crate) fn message(&self) -> String {
        VendorError::read(&self.body).unwrap_or_else(|| panic!("no error: {}", self.text())).message
    }
}

fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else { return (body, false) };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
}

/// A user with the tools of an agent.
pub(crate) fn user(text: &str) -> ChatRequest {
    let schema = r#"{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},"required":["file_path","content"]}"#;
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
