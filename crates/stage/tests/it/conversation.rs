//! One script, every vendor.

use rehearsal_llm::chat::{FinishReason, Message, Part, Role, ToolResult};
use rehearsal_llm::wire::Dialect;

use crate::theatre::{Theatre, user};

const TASK: &str = r#"
seed: 7
vars: { greeting: hello }
turns:
  - think: Which file?
    say: I write it.
    do:
      - write_file: { path: /repo/hello.txt, content: "{{greeting}}\n" }
  - when: { result: written }
    say: Done.
"#;

#[tokio::test]
async fn one_script_plays_on_every_interface() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let theatre = Theatre::play(TASK);
            let mut chat = user("Write hello.txt");
            let first = theatre.says(dialect, &chat, stream).await;
            let call = first.tool_calls().next().unwrap().clone();
            assert_eq!(first.text(), "I write it.", "{dialect:?}");
            assert_eq!(first.finish, FinishReason::ToolCalls);
            assert!(matches!(&first.parts[0], Part::Thinking(thinking) if thinking.text == "Which file?"));
            assert_eq!(call.name, "Write");
            assert_eq!(call.arguments.as_str(), r#"{"content":"hello\n","file_path":"/repo/hello.txt"}"#);

            let result = ToolResult {
                id: call.id,
                name: Some(call.name),
                parts: vec![Part::text("written")],
                is_error: false,
            };
            chat.messages.push(Message::new(Role::Assistant, first.parts));
            chat.messages.push(Message::new(Role::User, vec![Part::ToolResult(result)]));
            let last = theatre.says(dialect, &chat, stream).await;
            assert_eq!((last.text().as_str(), last.finish), ("Done.", FinishReason::Stop));
            let report = theatre.report();
            assert!(report.is_clean(), "{report:#?}");
            assert_eq!((report.requests, report.refusable), (2, 0), "{report:#?}");
        }
    }
}

#[tokio::test]
async fn the_same_requests_get_the_same_bytes() {
    let mut seen: Vec<(String, String)> = Vec::new();
    for _ in 0..2 {
        let theatre = Theatre::play(TASK);
        for dialect in [Dialect::Anthropic] {
            let reply = theatre.chat(dialect, &user("Write hello.txt"), true).await;
            seen.push((reply.head.clone(), reply.text()));
        }
    }
    assert_eq!(seen[0], seen[1]);
    insta::assert_snapshot!(seen[0].0.replace('\r', ""), @"
    HTTP/1.1 200 OK
    content-type: text/event-stream
    cache-control: no-cache
    connection: close
    transfer-encoding: chunked
    ");
    insta::assert_snapshot!(seen[0].1, @r#"
    event: message_start
    data: {"type":"message_start","message":{"id":"msg_ff951ff0da77bbd625e453f6","type":"message","role":"assistant","model":"some-model","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}

    event: content_block_start
    data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Which file?"}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig_2025f7a689eff178787eb9af"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":0}

    event: content_block_start
    data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I write it."}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":1}

    event: content_block_start
    data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_206cc65ede7eb4a148674c7a","name":"Write","input":{}}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"content\":\"hello\\n\",\"fi"}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"le_path\":\"/repo/hello.tx"}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"t\"}"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":2}

    event: message_delta
    data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20}}

    event: message_stop
    data: {"type":"message_stop"}
    "#);
    let other = Theatre::play(&TASK.replace("seed: 7", "seed: 8"));
    let reply = other.chat(Dialect::Anthropic, &user("Write hello.txt"), true).await;
    assert_ne!(reply.text(), seen[0].1, "another seed makes other ids");
}

#[tokio::test]
async fn gemini_without_events_gets_a_list() {
    let theatre = Theatre::play(TASK);
    let body = Dialect::Gemini.write_request(&user("Write hello.txt"), true);
    let reply = theatre.post("/v1beta/models/m:streamGenerateContent", &body).await;
    let list: Vec<serde_json::Value> = serde_json::from_slice(&reply.body).unwrap();
    assert!(list.len() > 2, "{list:?}");
    assert_eq!(list.last().unwrap()["candidates"][0]["finishReason"], "STOP");
}

#[tokio::test]
async fn what_the_clis_ask_besides_is_answered() {
    let theatre = Theatre::play("models: [one, two]\nturns: []\n");
    let anthropic = [("anthropic-version", "2023-06-01")];
    for (method, path, headers, status, says) in [
        ("HEAD", "/api/hello", &[][..], 200, ""),
        ("HEAD", "/", &[], 200, ""),
        ("GET", "/v1/responses", &[("upgrade", "websocket")], 426, ""),
        ("GET", "/v1/models", &anthropic, 200, r#""id":"one","type":"model""#),
        ("GET", "/v1/models/two", &[], 200, r#""id":"two""#),
        ("GET", "/v1beta/models", &[], 200, r#""name":"models/one""#),
        ("POST", "/v1/messages/count_tokens", &anthropic, 200, r#"{"input_tokens":2}"#),
        ("POST", "/v1beta/models/m:countTokens", &[], 200, r#"{"totalTokens":2}"#),
        ("POST", "/v1/embeddings", &[], 404, "the stage does not play POST /v1/embeddings"),
    ] {
        let body: &[u8] = if method == "POST" { b"{\"a\":1}" } else { b"" };
        let reply = theatre.ask(method, path, headers, body).await;
        assert_eq!(reply.status, status, "{path}");
        assert!(reply.text().contains(says), "{path}: {}", reply.text());
    }
    let report = theatre.report();
    assert_eq!((report.requests, report.misses), (9, 0));
    assert!(report.is_clean());
}
