//! What goes wrong on purpose.

use rehearsal_llm::wire::Dialect;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::theatre::{PATIENCE, Theatre, read_stream, request, user};

#[tokio::test]
async fn an_error_is_told_with_what_belongs_to_it() {
    let theatre = Theatre::play(
        "
turns:
  - fault: { status: { code: 429, retry_after: 2s, message: slow down } }
  - fault: { status: { code: 529, retry: false } }
  - fault: { status: { code: 401 } }
  - say: At last.
",
    );
    let ask = async || theatre.chat(Dialect::Anthropic, &user("hi"), true).await;
    let limited = ask().await;
    assert_eq!((limited.status, limited.message().as_str()), (429, "slow down"));
    assert!(limited.head.contains("retry-after: 2\r\n"), "{}", limited.head);
    let overloaded = ask().await;
    assert_eq!(overloaded.status, 529);
    assert!(overloaded.head.starts_with("HTTP/1.1 529 Overloaded\r\n"), "{}", overloaded.head);
    assert!(overloaded.head.contains("x-should-retry: false\r\n"), "{}", overloaded.head);
    assert!(overloaded.text().contains("overloaded_error"), "{}", overloaded.text());
    let refused = ask().await;
    assert!(refused.text().contains("authentication_error"), "{}", refused.text());
    assert!(!refused.head.contains("x-should-retry"), "{}", refused.head);
    assert_eq!(ask().await.status, 200);
    assert!(theatre.report().is_clean());
}

#[tokio::test]
async fn a_stream_is_cut_after_as_many_frames_as_were_told() {
    for dialect in Dialect::ALL {
        for frames in [0, 1, 3] {
            let theatre = Theatre::play(&format!(
                "turns:\n  - {{ say: 'words enough for more than one frame of every vendor', fault: {{ cut: {frames} }} }}\n"
            ));
            let reply = theatre.chat(dialect, &user("hi"), true).await;
            assert!(!reply.is_whole, "{dialect:?}");
            assert_eq!(reply.text().matches("data: ").count(), frames, "{}", reply.text());
        }
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_can_be_cut_as_well() {
    let theatre = Theatre::play("turns:\n  - { say: 'some words', fault: { cut: 1 } }\n");
    let reply = theatre.chat(Dialect::OpenAiChat, &user("hi"), false).await;
    assert!(!reply.is_whole && !reply.body.is_empty());
    assert!(serde_json::from_slice::<serde_json::Value>(&reply.body).is_err());
}

#[tokio::test]
async fn a_broken_frame_is_the_last() {
    let theatre = Theatre::play("turns:\n  - { say: 'some words', fault: { malformed: 2 } }\n");
    let reply = theatre.chat(Dialect::Anthropic, &user("hi"), true).await;
    assert!(reply.is_whole);
    let text = reply.text();
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let read: Vec<bool> =
        data.iter().map(|data| serde_json::from_str::<serde_json::Value>(data).is_ok()).collect();
    assert_eq!(read, [true, true, false]);
}

#[tokio::test]
async fn what_comes_late_comes_whole() {
    for fault in ["stall: { after: 1, for: 5ms }", "first_token: 5ms"] {
        let theatre = Theatre::play(&format!("turns:\n  - {{ say: 'some words', fault: {{ {fault} }} }}\n"));
        let reply = theatre.chat(Dialect::Gemini, &user("hi"), true).await;
        assert_eq!(read_stream(Dialect::Gemini, &reply.body).text(), "some words");
    }
    let slow = "speed: { profile: { first_token: 2ms, frames_per_second: 1000, jitter: 0.5 } }\nturns: [say: words that come one by one]\n";
    let said = Theatre::play(slow).says(Dialect::OpenAiResponses, &user("hi"), true).await;
    assert_eq!(said.text(), "words that come one by one");
}

#[tokio::test]
async fn who_hangs_answers_nothing_and_lets_the_others_be_answered() {
    let theatre = Theatre::play(
        "turns:\n  - fault: hang\n  - { say: 'some words', fault: { hang_after: 2 } }\n  - say: Hello.\n",
    );
    let dialect = Dialect::Anthropic;
    let bytes = request("POST", "/v1/messages", &[], &dialect.write_request(&user("hi"), true));
    let mut silent = theatre.connect().await;
    silent.write_all(&bytes).await.unwrap();
    while theatre.report().requests < 1 {
        tokio::task::yield_now().await;
    }
    let mut halting = theatre.connect().await;
    halting.write_all(&bytes).await.unwrap();
    let mut seen = Vec::new();
    while String::from_utf8_lossy(&seen).matches("data: ").count() < 2 {
        let mut piece = [0; 4096];
        let read = tokio::time::timeout(PATIENCE, halting.read(&mut piece)).await.unwrap().unwrap();
        assert_ne!(read, 0, "it ended");
        seen.extend_from_slice(&piece[..read]);
    }
    assert_eq!(theatre.says(dialect, &user("hi"), true).await.text(), "Hello.");
    assert!(silent.try_read(&mut [0; 1]).is_err(), "nothing is there to read");

    // Whoever waits is let go when the stage closes.
    tokio::time::timeout(PATIENCE, theatre.stage.close()).await.unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, b"");
}
