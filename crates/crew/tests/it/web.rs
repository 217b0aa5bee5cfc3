//! `web_search`, against a server on this machine.

use insta::assert_snapshot;
use rehearsal_crew::{CallEnd, Permissions, Toolbox, WebSearch};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::place::{ALL, Place};

/// Answers once with this, and gives back what it was asked.
async fn endpoint(answer: String) -> (WebSearch, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/search?q={{query}}&format=json", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        // Whoever has read enough goes away.
        let _enough = stream.write_all(answer.as_bytes()).await;
        String::from_utf8(request).unwrap().lines().next().unwrap().to_owned()
    });
    (WebSearch { url }, asked)
}

fn place(search: WebSearch) -> Place {
    let mut place = Place::new().may(Permissions { web: true, ..ALL });
    place.workplace.web_search = Some(search);
    place
}

fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_question_is_asked_and_the_answer_told() {
    let (search, asked) = endpoint(http("200 OK", r#"{"results": []}"#)).await;
    let text = place(search).text("web_search", json!({"query": "rust & c++?"})).await;
    assert_eq!(text, r#"{"results": []}"#);
    assert_eq!(asked.await.unwrap(), "GET /search?q=rust%20%26%20c%2B%2B%3F&format=json HTTP/1.1");
}

#[tokio::test]
async fn an_endpoint_that_fails_or_sends_us_elsewhere_is_told() {
    let (search, _asked) = endpoint(http("500 Internal Server Error", "broken")).await;
    let called = place(search).call("web_search", json!({"query": "x"})).await;
    assert_eq!(called.end, CallEnd::Failed);
    assert_snapshot!(called.text, @"
    ERROR: the web cannot be searched: HTTP 500 Internal Server Error
    broken
    ");
    let (search, _asked) =
        endpoint("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".into())
            .await;
    assert_snapshot!(place(search).text("web_search", json!({"query": "x"})).await, @"ERROR: the web cannot be searched: HTTP 302 Found");
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let body = "x".repeat(8 << 20);
    let (search, _asked) = endpoint(http("200 OK", &body)).await;
    let text = place(search).text("web_search", json!({"query": "x"})).await;
    assert!(text.len() < 32 << 10 && text.contains("bytes left out"), "{}", text.len());
}

#[tokio::test]
async fn without_an_endpoint_or_the_permission_there_is_none() {
    let place = Place::new().may(Permissions { web: true, ..ALL });
    let called = place.call("web_search", json!({"query": "x"})).await;
    assert_eq!(called.end, CallEnd::Denied);
    assert_snapshot!(called.text, @"ERROR: the role `code` does not have the tool `web_search` here");
    for url in ["http://localhost/", "file:///etc/passwd?{query}"] {
        let mut place = Place::new();
        place.workplace.web_search = Some(WebSearch { url: url.into() });
        let refused = Toolbox::open(&place.workplace).await.err().unwrap().to_string();
        assert!(refused.starts_with("the web cannot be searched: `"), "{refused}");
    }
}
