//! Clients that do not behave.

use std::sync::Arc;

use rehearsal_llm::wire::Dialect;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::theatre::{PATIENCE, Reply, Theatre, request, user};

#[tokio::test]
async fn what_is_no_request_is_refused_and_costs_no_turn() {
    let theatre = Theatre::play("turns:\n  - say: Hello.\n");
    for (dialect, path) in [
        (Dialect::Anthropic, "/v1/messages"),
        (Dialect::OpenAiChat, "/v1/chat/completions"),
        (Dialect::OpenAiResponses, "/v1/responses"),
        (Dialect::Gemini, "/v1beta/models/m:generateContent"),
    ] {
        let deep = "[".repeat(100_000);
        for body in
            ["", "{", "[]", "null", "\u{0}", deep.as_str(), r#"{"messages":{},"contents":3,"input":{}}"#]
        {
            let reply = theatre.post(path, body.as_bytes()).await;
            assert_eq!(reply.status, 400, "{dialect:?} {body:.20}: {}", reply.text());
            assert!(reply.message().starts_with("the request cannot be read: "), "{}", reply.message());
        }
    }
    assert_eq!(theatre.says(Dialect::Anthropic, &user("hi"), true).await.text(), "Hello.");
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_before_it_is_read() {
    let theatre = Theatre::play("turns: []\n");
    let mut stream = theatre.connect().await;
    let head = "POST /v1/messages HTTP/1.1\r\nhost: stage\r\ncontent-length: 68719476736\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    assert_eq!(Reply::read(&bytes).status, 413);
}

#[tokio::test]
async fn noise_harms_nobody() {
    let theatre = Theatre::play("turns:\n  - say: Hello.\n");
    for noise in
        [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", b"\r\n\r\n\r\n", b"POST /v1/messages HTTP/1.1\r\n"]
    {
        let mut stream = theatre.connect().await;
        stream.write_all(noise).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut bytes = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    }
    assert_eq!(theatre.says(Dialect::Anthropic, &user("hi"), true).await.text(), "Hello.");
}

#[tokio::test]
async fn who_never_reads_holds_nobody_up() {
    let long = "word ".repeat(100_000);
    let theatre = Theatre::play(&format!("turns:\n  - say: {long}\n  - say: Hello.\n"));
    let dialect = Dialect::OpenAiChat;
    let bytes = request("POST", "/v1/chat/completions", &[], &dialect.write_request(&user("hi"), true));
    let mut deaf = theatre.connect().await;
    deaf.write_all(&bytes).await.unwrap();
    while theatre.report().requests < 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(theatre.says(dialect, &user("hi"), true).await.text(), "Hello.");
    tokio::time::timeout(PATIENCE, theatre.stage.close()).await.unwrap();
}

#[tokio::test]
async fn hundreds_at_once_are_all_answered() {
    let theatre = Arc::new(Theatre::play("turns:\n  - { say: Hello., times: 300 }\n"));
    let mut asking = JoinSet::new();
    for _ in 0..300 {
        let theatre = Arc::clone(&theatre);
        asking.spawn(async move { theatre.says(Dialect::OpenAiResponses, &user("hi"), true).await.text() });
    }
    let said = asking.join_all().await;
    assert!(said.iter().all(|text| text == "Hello."));
    assert!(theatre.report().is_clean());
}
