//! Every vendor is understood, in one piece and piece by piece.

use rehearsal_llm::assembly;
use rehearsal_llm::chat::{ChatResponse, FinishReason, Part, Usage};
use rehearsal_llm::clients::Endpoint;
use rehearsal_llm::model::ChatModel;
use rehearsal_llm::wire::Dialect;

use crate::vendor::{KEY, Reply, Vendor, samples, user};

fn outline(response: &ChatResponse) -> String {
    let part = |part: &Part| match part {
        Part::Thinking(thinking) => {
            format!(
                "thinks {:?}, signed {:?}\n",
                thinking.text,
                thinking.signature.as_deref().unwrap_or("not")
            )
        }
        Part::Text(text) => format!("says {:?}\n", text.text),
        Part::ToolCall(call) => {
            format!(
                "calls {} with {}\n",
                call.name,
                call.arguments.as_str().split_whitespace().collect::<String>()
            )
        }
        other => format!("{other:?}\n"),
    };
    response.parts.iter().map(part).collect()
}

#[tokio::test]
async fn what_a_vendor_says_is_heard_with_its_thoughts_and_its_calls() {
    for dialect in Dialect::ALL {
        let (json, _) = samples(dialect);
        let vendor = Vendor::open([Reply::ok(json)]).await;
        let answer = vendor.client(dialect).chat(&user("Greet")).await.unwrap();
        let signature = match dialect {
            Dialect::Anthropic => "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds",
            Dialect::OpenAiResponses => "gAAAAABnzNK_",
            Dialect::OpenAiChat | Dialect::Gemini => "not",
        };
        let expected = format!(
            "thinks \"The user wants a greeting in a file.\", signed \"{signature}\"\nsays \"I write the file.\"\n\
             calls Write with {{\"file_path\":\"hello.txt\",\"content\":\"Hello.\"}}\n"
        );
        assert_eq!(outline(&answer), expected, "{dialect:?}");
        assert_eq!(answer.finish, FinishReason::ToolCalls, "{dialect:?}");
        let cache_write = if dialect == Dialect::Anthropic { 7 } else { 0 };
        let thinking = if dialect == Dialect::Anthropic { 0 } else { 9 };
        let usage = Usage { input: 472, output: 89, cache_read: 128, cache_write, thinking };
        assert_eq!(answer.usage, usage, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_stream_makes_the_same_answer() {
    for dialect in Dialect::ALL {
        let (json, events) = samples(dialect);
        let vendor = Vendor::open([Reply::ok(json), Reply::stream(events)]).await;
        let client = vendor.client(dialect);
        let at_once = client.chat(&user("Greet")).await.unwrap();
        let stream = client.chat_stream(&user("Greet")).await.unwrap();
        let in_pieces = assembly::whole(stream).await.unwrap();
        // JSON is kept letter by letter, and Google spaces its two forms differently.
        assert_eq!(outline(&in_pieces), outline(&at_once), "{dialect:?}");
        assert_eq!((in_pieces.finish, in_pieces.usage), (at_once.finish, at_once.usage), "{dialect:?}");
        assert_eq!((in_pieces.id, in_pieces.model), (at_once.id, at_once.model), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_request_goes_where_the_vendor_expects_it_with_the_key_in_its_place() {
    let mut heads = String::new();
    for dialect in Dialect::ALL {
        let (json, events) = samples(dialect);
        let vendor = Vendor::open([Reply::ok(json), Reply::stream(events)]).await;
        let client = vendor.client(dialect);
        client.chat(&user("Greet")).await.unwrap();
        assembly::whole(client.chat_stream(&user("Greet")).await.unwrap()).await.unwrap();
        for request in vendor.requests() {
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            assert_eq!(dialect.read_request(body.as_bytes()).unwrap().chat.last_user_text(), "Greet");
            let told = |line: &&str| !line.starts_with("host") && !line.starts_with("content-length");
            heads.extend(head.lines().filter(told).map(|line| format!("{}\n", line.replace(KEY, "KEY"))));
        }
    }
    insta::assert_snapshot!(heads, @"
    POST /v1/messages HTTP/1.1
    content-type: application/json
    anthropic-version: 2023-06-01
    x-api-key: KEY
    accept: */*
    POST /v1/messages HTTP/1.1
    content-type: application/json
    anthropic-version: 2023-06-01
    x-api-key: KEY
    accept: */*
    POST /v1/chat/completions HTTP/1.1
    content-type: application/json
    authorization: Bearer KEY
    accept: */*
    POST /v1/chat/completions HTTP/1.1
    content-type: application/json
    authorization: Bearer KEY
    accept: */*
    POST /v1/responses HTTP/1.1
    content-type: application/json
    authorization: Bearer KEY
    accept: */*
    POST /v1/responses HTTP/1.1
    content-type: application/json
    authorization: Bearer KEY
    accept: */*
    POST /v1beta/models/some-model:generateContent HTTP/1.1
    content-type: application/json
    x-goog-api-key: KEY
    accept: */*
    POST /v1beta/models/some-model:streamGenerateContent?alt=sse HTTP/1.1
    content-type: application/json
    x-goog-api-key: KEY
    accept: */*
    ");
}

#[tokio::test]
async fn a_vendor_that_says_its_end_and_stays_is_not_waited_for() {
    for dialect in [Dialect::Anthropic, Dialect::OpenAiChat, Dialect::OpenAiResponses] {
        let vendor = Vendor::open([Reply::stalled_stream(samples(dialect).1)]).await;
        let stream = vendor.client(dialect).chat_stream(&user("Greet")).await.unwrap();
        assert_eq!(assembly::whole(stream).await.unwrap().text(), "I write the file.", "{dialect:?}");
    }
}

#[test]
fn the_environment_says_where_a_vendor_is_and_who_asks() {
    let of = |dialect, set: &'static [(&str, &str)]| {
        Endpoint::from_environment(dialect, |name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    let known = of(Dialect::Anthropic, &[("ANTHROPIC_API_KEY", "sk-ant-0123456789")]).unwrap();
    insta::assert_snapshot!(format!("{known:?}"), @r#"Endpoint { dialect: Anthropic, base: "https://api.anthropic.com", is_loopback: false, key: Some(ApiKey(⟦key⟧)) }"#);
    assert!(of(Dialect::OpenAiChat, &[("OPENAI_BASE_URL", "http://localhost:11434/v1")]).is_ok());
    let error = |dialect, set| of(dialect, set).unwrap_err().to_string();
    assert_eq!(error(Dialect::Gemini, &[]), "`GEMINI_API_KEY` is not set");
    assert_eq!(error(Dialect::Gemini, &[("GEMINI_API_KEY", "a\nb")]), "`GEMINI_API_KEY` cannot be used");
    let base = |base: &str| Endpoint::new(Dialect::Anthropic, base, None).unwrap_err().to_string();
    assert_eq!(base("nowhere"), "the base address is not a URL: relative URL without a base");
    assert_eq!(base("file:///etc/passwd"), "the base address must begin with `https://` or `http://`");
    let plain = "the base address must not hold a user, a password, a query or a fragment";
    assert_eq!(base("https://me:secret@example.com"), plain);
    assert_eq!(base("https://example.com/?key=secret"), plain);
}
