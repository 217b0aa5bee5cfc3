//! A proxy that records, and a player of what it recorded.

use std::path::PathBuf;
use std::sync::Arc;

use rehearsal_agent::clis::KNOWN;
use rehearsal_llm::cassette::{
    Cassette, Ended, Matching, Normaliser, Place, Player, Recorder, Rule, Secrets,
};
use rehearsal_stage::{RecordingPlay, ReplaySpeed, ReplayingPlay, Stage, Upstreams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::theatre::{PATIENCE, Reply, Theatre, request, user};
use rehearsal_llm::wire::Dialect;

const SCRIPT: &str = "turns:\n  - say: I write to /spot/here/hello.txt.\n    do:\n      - write_file: { path: /spot/here/hello.txt, content: hi }\n  - say: Done.\n";

pub(crate) fn place(directory: &str) -> Place {
    Place { work_dir: vec![directory.into()], home: Vec::new(), temp: Vec::new() }
}

/// A proxy in front of a vendor.
pub(crate) struct Proxy {
    directory: tempfile::TempDir,
    play: Arc<RecordingPlay>,
    pub(crate) stage: Stage,
}

impl Proxy {
    pub(crate) fn before(upstream: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("session.jsonl");
        let normaliser = Normaliser::new(
            &Rule::for_client(KNOWN.named("claude").unwrap().requests.as_ref()),
            &place("/spot/here"),
            &Secrets::default(),
        )
        .unwrap();
        let recorder = Recorder::create(&path, "claude", None, normaliser, &Secrets::default()).unwrap();
        let play = Arc::new(RecordingPlay::new(recorder, Upstreams::one(upstream)).unwrap());
        let stage = Stage::open(([127, 0, 0, 1], 0).into(), play.clone()).unwrap();
        Self { directory, play, stage }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("session.jsonl")
    }

    pub(crate) async fn finish(self) -> Cassette {
        let path = self.path();
        self.stage.close().await;
        self.play.finish().await.unwrap();
        Cassette::open(&path).unwrap()
    }
}

fn replaying(cassette: Cassette, directory: &str) -> (Arc<ReplayingPlay>, Stage) {
    let player = Player::new(
        cassette,
        Matching::Strict,
        &KNOWN.model_clients(),
        &place(directory),
        &Secrets::default(),
    )
    .unwrap();
    let play = Arc::new(ReplayingPlay::new(player, ReplaySpeed::Instant));
    let stage = Stage::open(([127, 0, 0, 1], 0).into(), play.clone()).unwrap();
    (play, stage)
}

async fn ask(stage: &Stage, path: &str, body: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(stage.address()).await.unwrap();
    let headers =
        [("content-type", "application/json"), ("accept-encoding", "gzip"), ("x-api-key", "not-a-key")];
    stream.write_all(&request("POST", path, &headers, body)).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that is cut may end with an error; what came before counts.
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    drop(read);
    Reply::read(&bytes)
}

fn question(text: &str) -> (String, Vec<u8>) {
    let chat = user(text);
    (Dialect::Anthropic.path(&chat.model, true), Dialect::Anthropic.write_request(&chat, true))
}

#[tokio::test]
async fn the_proxy_changes_no_byte_and_the_player_gives_them_back() {
    let (path, body) = question("work in /spot/here");
    let direct = Theatre::play(SCRIPT).post(&path, &body).await;
    let vendor = Theatre::play(SCRIPT);
    let proxy = Proxy::before(&format!("http://{}", vendor.stage.address()));
    let through = ask(&proxy.stage, &path, &body).await;
    assert_eq!((through.status, through.text()), (200, direct.text()));
    assert!(through.is_whole);
    let cassette = proxy.finish().await;

    let (_, stage) = replaying(cassette.clone(), "/spot/here");
    let replayed = ask(&stage, &path, &body).await;
    assert_eq!((replayed.status, replayed.text()), (200, direct.text()));
    let (play, stage) = replaying(cassette, "/elsewhere/now");
    let (path, body) = question("work in /elsewhere/now");
    let elsewhere = ask(&stage, &path, &body).await;
    assert_eq!(elsewhere.text(), direct.text().replace("/spot/here", "/elsewhere/now"));
    assert!(play.report().is_faithful());
}

#[tokio::test]
async fn two_replays_are_the_same_to_the_last_byte_of_their_heads() {
    let vendor = Theatre::play(SCRIPT);
    let proxy = Proxy::before(&format!("http://{}", vendor.stage.address()));
    let (path, body) = question("go");
    ask(&proxy.stage, &path, &body).await;
    let cassette = proxy.finish().await;
    let mut replies = Vec::new();
    for _ in 0..2 {
        let (_, stage) = replaying(cassette.clone(), "/spot/here");
        let reply = ask(&stage, &path, &body).await;
        replies.push((reply.head, reply.body));
    }
    assert_eq!(replies[0], replies[1]);
}

#[tokio::test]
async fn a_miss_is_refused_in_the_vendors_form_and_not_to_be_tried_again() {
    let vendor = Theatre::play(SCRIPT);
    let proxy = Proxy::before(&format!("http://{}", vendor.stage.address()));
    let (path, body) = question("go");
    ask(&proxy.stage, &path, &body).await;
    let (play, stage) = replaying(proxy.finish().await, "/spot/here");
    let (path, other) = question("stay");
    let reply = ask(&stage, &path, &other).await;
    assert_eq!(reply.status, 400);
    assert!(reply.head.contains("x-should-retry: false"), "{}", reply.head);
    insta::assert_snapshot!(reply.text(), @r#"{"type":"error","error":{"type":"invalid_request_error","message":"cassette: POST /v1/messages was not recorded: it differs from request 1 in lane main at /messages/0/content/0/text"}}"#);
    assert_eq!(play.report().misses.len(), 1);
    assert!(!play.report().is_faithful());
}

/// A vendor that sends these bytes and then does as told.
async fn vendor(answer: &'static str, then: Then) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 64 << 10];
        let _ = stream.read(&mut buffer).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = format!("{head}{:x}\r\n{answer}\r\n", answer.len());
        stream.write_all(chunk.as_bytes()).await.unwrap();
        if let Then::WaitFor(signal) = then {
            signal.notified().await;
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
    });
    (url, serving)
}

enum Then {
    Break,
    WaitFor(Arc<tokio::sync::Notify>),
}

const WHOLE: &str = "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

#[tokio::test]
async fn a_stream_that_the_vendor_cuts_is_cut_in_the_replay_as_well() {
    let (url, serving) =
        vendor("event: message_start\ndata: {\"type\":\"message_start\"}\n\n", Then::Break).await;
    let proxy = Proxy::before(&url);
    let (path, body) = question("go");
    let reply = ask(&proxy.stage, &path, &body).await;
    assert!(!reply.is_whole);
    serving.await.unwrap();
    let cassette = proxy.finish().await;
    assert_eq!(cassette.entries[0].response.ended, Ended::Cut);
    let (_, stage) = replaying(cassette, "/spot/here");
    let replayed = ask(&stage, &path, &body).await;
    assert!(!replayed.is_whole);
    assert_eq!(replayed.text(), reply.text());
}

#[tokio::test]
async fn a_finished_stream_is_kept_although_the_client_hung_up_after_its_last_frame() {
    let hung_up = Arc::new(tokio::sync::Notify::new());
    let (url, serving) = vendor(WHOLE, Then::WaitFor(Arc::clone(&hung_up))).await;
    let proxy = Proxy::before(&url);
    let (path, body) = question("go");
    let mut stream = TcpStream::connect(proxy.stage.address()).await.unwrap();
    stream.write_all(&request("POST", &path, &[], &body)).await.unwrap();
    let mut read = Vec::new();
    while !read.windows(12).any(|window| window == b"message_stop") {
        let mut buffer = [0; 4096];
        let length = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap().unwrap();
        read.extend_from_slice(&buffer[..length]);
    }
    drop(stream);
    hung_up.notify_one();
    serving.await.unwrap();
    let cassette = proxy.finish().await;
    assert_eq!(cassette.entries[0].response.ended, Ended::Whole);
}

#[tokio::test]
async fn a_vendor_that_cannot_be_reached_leaves_no_cassette() {
    // A port that was free a moment ago, and that nobody listens on.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = Proxy::before(&format!("http://{gone}"));
    let (path, body) = question("go");
    let reply = ask(&proxy.stage, &path, &body).await;
    assert_eq!(reply.status, 502);
    let file = proxy.path();
    proxy.stage.close().await;
    let error = proxy.play.finish().await.unwrap_err().to_string();
    assert!(error.starts_with("request 1: error sending request"), "{error}");
    assert!(!file.exists());
}
