//! Every format says the same thing, in both directions.

use proptest::prelude::*;

use super::*;
use crate::assembly::Assembly;
use crate::chat::{
    Arguments, Effort, FinishReason, Json, Media, MediaSource, Message, Part, Role, Thinking, ToolCall,
    ToolChoice, ToolDefinition, ToolInput, ToolResult, Usage,
};
use crate::sse::Decoder;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    let arguments = Arguments::Json(json(arguments));
    let (id, name) = (id.to_owned(), name.to_owned());
    Part::ToolCall(ToolCall { id, name, namespace: None, arguments, signature: None })
}

fn result(id: &str, name: Option<&str>, text: &str) -> Part {
    let name = name.map(str::to_owned);
    Part::ToolResult(ToolResult { id: id.to_owned(), name, parts: vec![Part::text(text)], is_error: false })
}

/// A conversation with all that every vendor can say.
fn conversation(dialect: Dialect) -> ChatRequest {
    let named = (dialect == Dialect::Gemini).then_some("write");
    let picture = Media { mime: "image/png".into(), source: MediaSource::Base64("AAAA".into()) };
    let messages = vec![
        Message::system("You write files."),
        Message::new(Role::User, vec![Part::text("Write a.txt like this"), Part::Media(picture)]),
        Message::new(
            Role::Assistant,
            vec![
                Part::text("I write two."),
                call("c1", "write", r#"{"path":"a"}"#),
                call("c2", "write", "{}"),
            ],
        ),
        Message::new(Role::User, vec![result("c1", named, "written"), result("c2", named, "no path")]),
        Message::user("And now?"),
    ];
    ChatRequest {
        tools: vec![ToolDefinition {
            name: "write".into(),
            description: "Writes a file".into(),
            input: ToolInput::Schema(json(r#"{"type":"object"}"#)),
        }],
        tool_choice: ToolChoice::Tool("write".into()),
        max_tokens: Some(100),
        temperature: Some(0.5),
        answer_schema: Some(json(r#"{"type":"string"}"#)),
        ..ChatRequest::new("m-1", messages)
    }
}

#[test]
fn a_request_arrives_as_it_was_asked() {
    for dialect in Dialect::ALL {
        let asked = conversation(dialect);
        let mut received = dialect.read_request(&dialect.write_request(&asked, true)).unwrap();
        assert_eq!(received.stream, dialect != Dialect::Gemini, "{dialect:?}");
        if dialect == Dialect::Gemini {
            // The path has it.
            received.chat.model = "m-1".into();
        }
        assert_eq!(received.chat, asked, "{dialect:?}");
    }
}

fn answer(dialect: Dialect) -> ChatResponse {
    let thinking = Thinking {
        text: "Which file? ☂".into(),
        // Chat Completions have thoughts as plain text, where they have them at all.
        signature: (dialect != Dialect::OpenAiChat).then(|| "c2lnbmVk".to_owned()),
        id: (dialect == Dialect::OpenAiResponses).then(|| "rs_1".to_owned()),
        redacted: false,
    };
    ChatResponse {
        id: "msg_1".into(),
        model: "m-1".into(),
        parts: vec![
            Part::Thinking(thinking),
            Part::text("I write it: «é☂𝄞»"),
            call("c1", "write", r#"{"path":"ä.txt","content":"a long enough text\n"}"#),
            call("c2", "run", "{}"),
        ],
        finish: FinishReason::ToolCalls,
        usage: Usage { input: 10, output: 20, cache_read: 5, cache_write: 0, thinking: 0 },
    }
}

/// Reads what was written, cut into pieces of a size.
fn through_a_stream(dialect: Dialect, response: &ChatResponse, piece: usize, cut: usize) -> ChatResponse {
    let (bytes, ends) = dialect.write_stream(response, piece).finish();
    assert_eq!(ends.last(), Some(&bytes.len()));
    let mut decoder = Decoder::default();
    let mut reader = dialect.stream_reader();
    let mut assembly = Assembly::default();
    for bytes in bytes.chunks(cut) {
        let mut events = Vec::new();
        decoder.push(bytes, |event| events.push(event)).unwrap();
        for event in events {
            reader.push(&event, |delta| assembly.push(delta).unwrap()).unwrap();
        }
    }
    assembly.finish().unwrap()
}

#[test]
fn an_answer_arrives_as_it_was_given() {
    for dialect in Dialect::ALL {
        let given = answer(dialect);
        let received = dialect.read_response(&dialect.write_response(&given)).unwrap();
        assert_eq!(received, given, "{dialect:?}");
    }
}

#[test]
fn a_streamed_answer_arrives_as_it_was_given() {
    for dialect in Dialect::ALL {
        for (piece, cut) in [(1, 1), (7, 3), (1000, 1000)] {
            let given = answer(dialect);
            assert_eq!(through_a_stream(dialect, &given, piece, cut), given, "{dialect:?}");
        }
    }
}

#[test]
fn an_answer_of_free_text_for_a_tool_stays_text() {
    let arguments = Arguments::Text("await tools.exec_command({cmd: 'ls'})".into());
    let free = ToolCall {
        id: "c1".into(),
        name: "exec".into(),
        namespace: Some("mcp__demo".into()),
        arguments,
        signature: None,
    };
    let given = ChatResponse { parts: vec![Part::ToolCall(free)], ..answer(Dialect::OpenAiResponses) };
    assert_eq!(through_a_stream(Dialect::OpenAiResponses, &given, 5, 64), given);
}

#[test]
fn blocks_of_a_new_kind_come_back_as_they_came() {
    let block = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"},"new":[1]}"#;
    let body = format!(
        r#"{{"model":"m","max_tokens":1,"brand_new":{{}},"messages":[{{"role":"assistant","content":[{block}]}}]}}"#
    );
    let received = Dialect::Anthropic.read_request(body.as_bytes()).unwrap();
    assert_eq!(received.chat.messages[0].parts, [Part::Opaque(json(block))]);
    let again = String::from_utf8(Dialect::Anthropic.write_request(&received.chat, false)).unwrap();
    assert!(again.contains(block), "{again}");
}

#[test]
fn a_tool_that_the_vendor_runs_is_kept_letter_by_letter_between_the_others() {
    let vendors = r#"{ "type":"web_search",  "name":"search","new":[1.0, 2e0] }"#;
    let schema = r#"{"type":"object"}"#;
    for (dialect, ours) in [
        (Dialect::Anthropic, format!(r#"{{"name":"write","input_schema":{schema}}}"#)),
        (
            Dialect::OpenAiChat,
            format!(r#"{{"type":"function","function":{{"name":"write","parameters":{schema}}}}}"#),
        ),
        (Dialect::OpenAiResponses, format!(r#"{{"type":"function","name":"write","parameters":{schema}}}"#)),
    ] {
        let body = format!(r#"{{"tools":[{ours},{vendors},{ours}]}}"#);
        let tools = dialect.read_request(body.as_bytes()).unwrap().chat.tools;
        let inputs: Vec<&ToolInput> = tools.iter().map(|tool| &tool.input).collect();
        let ours = ToolInput::Schema(json(schema));
        assert_eq!(inputs, [&ours, &ToolInput::Vendor(json(vendors)), &ours], "{dialect:?}");
    }
}

#[test]
fn redacted_thoughts_keep_what_must_come_back() {
    let body = br#"{"id":"m","model":"x","content":[{"type":"redacted_thinking","data":"0paque"}],"stop_reason":"end_turn"}"#;
    let response = Dialect::Anthropic.read_response(body).unwrap();
    let written = String::from_utf8(Dialect::Anthropic.write_response(&response)).unwrap();
    assert!(written.contains(r#"{"type":"redacted_thinking","data":"0paque"}"#), "{written}");
}

#[test]
fn gemini_without_ids_still_pairs_calls_and_results() {
    let body = br#"{"contents":[
        {"role":"model","parts":[{"functionCall":{"name":"ls","args":{}}},{"functionCall":{"name":"ls"}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"a"}}},
                                {"functionResponse":{"name":"ls","response":{"files":["b"]}}}]}]}"#;
    let chat = Dialect::Gemini.read_request(body).unwrap().chat;
    let called = chat.messages[0].parts.iter().map(|part| match part {
        Part::ToolCall(call) => call.id.clone(),
        other => panic!("{other:?}"),
    });
    let results: Vec<_> = chat.last_results().map(|result| (result.id.clone(), result.text())).collect();
    assert_eq!(called.collect::<Vec<_>>(), ["ls-1", "ls-2"]);
    assert_eq!(results, [("ls-1".into(), "a".into()), ("ls-2".into(), r#"{"files":["b"]}"#.into())]);
}

#[test]
fn thinking_is_asked_for_in_the_vendors_words() {
    for (dialect, expected) in [
        (Dialect::Anthropic, r#""thinking":{"type":"enabled","budget_tokens":4000}"#),
        (Dialect::OpenAiChat, r#""reasoning_effort":"medium""#),
        (Dialect::OpenAiResponses, r#""reasoning":{"effort":"medium"}"#),
        (Dialect::Gemini, r#""thinkingConfig":{"thinkingBudget":4000,"includeThoughts":true}"#),
    ] {
        let effort = Some(Effort::Tokens(4000));
        let request = ChatRequest { effort, ..ChatRequest::new("m", vec![Message::user("hi")]) };
        let body = String::from_utf8(dialect.write_request(&request, false)).unwrap();
        assert!(body.contains(expected), "{body}");
    }
}

#[test]
fn an_error_is_told_as_the_vendor_tells_it() {
    let told = |dialect: Dialect| String::from_utf8(dialect.write_error(429, "slow down")).unwrap();
    insta::assert_snapshot!(told(Dialect::Anthropic), @r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#);
    insta::assert_snapshot!(told(Dialect::OpenAiResponses), @r#"{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#);
    insta::assert_snapshot!(told(Dialect::Gemini), @r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}"#);
    for dialect in Dialect::ALL {
        let told = VendorError::read(&dialect.write_error(529, "busy")).unwrap();
        assert_eq!(told.message, "busy");
    }
}

#[test]
fn a_vendor_that_breaks_off_is_heard() {
    for (dialect, data) in [
        (Dialect::Anthropic, r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#),
        (Dialect::OpenAiChat, r#"{"error":{"type":"overloaded_error","message":"busy"}}"#),
        (Dialect::OpenAiResponses, r#"{"type":"error","code":"overloaded_error","message":"busy"}"#),
        (Dialect::Gemini, r#"{"error":{"code":503,"status":"overloaded_error","message":"busy"}}"#),
    ] {
        let event = sse::Event { name: None, data: data.to_owned() };
        let error = dialect.stream_reader().push(&event, |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "the vendor broke off: busy", "{dialect:?}");
    }
}

#[test]
fn responses_may_come_without_their_pieces() {
    let mut reader = Dialect::OpenAiResponses.stream_reader();
    let mut assembly = Assembly::default();
    for data in [
        r#"{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}"#,
        r#"{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":3,"output_tokens":1}}}"#,
    ] {
        let event = sse::Event { name: None, data: data.to_owned() };
        reader.push(&event, |delta| assembly.push(delta).unwrap()).unwrap();
    }
    let response = assembly.finish().unwrap();
    assert_eq!((response.id.as_str(), response.text().as_str(), response.usage.input), ("r1", "hi", 3));
}

proptest! {
    #[test]
    fn no_body_panics(body in r#"[\[\]{}",:a-z0-9]{0,60}"#) {
        for dialect in Dialect::ALL {
            let _ = dialect.read_request(body.as_bytes());
            let _ = dialect.read_response(body.as_bytes());
            let event = sse::Event { name: None, data: body.clone() };
            let _ = dialect.stream_reader().push(&event, |_| {});
        }
    }

    #[test]
    fn a_damaged_body_is_read_or_refused(
        dialect in 0..Dialect::ALL.len(),
        at in 0usize..4000,
        damage in r#"[\[\]{}",:a-z0-9\\\x00]{0,4}"#,
    ) {
        let dialect = Dialect::ALL[dialect];
        let damaged = |mut body: Vec<u8>| {
            let at = at % body.len();
            body.splice(at..(at + damage.len()).min(body.len()), damage.bytes());
            body
        };
        if let Ok(received) = dialect.read_request(&damaged(dialect.write_request(&conversation(dialect), true))) {
            let again = dialect.write_request(&received.chat, received.stream);
            prop_assert!(dialect.read_request(&again).is_ok(), "what was written cannot be read");
        }
        if let Ok(response) = dialect.read_response(&damaged(dialect.write_response(&answer(dialect)))) {
            let again = dialect.write_response(&response);
            prop_assert_eq!(dialect.read_response(&again).unwrap().parts.len(), response.parts.len());
        }
        let (bytes, _) = dialect.write_stream(&answer(dialect), 9).finish();
        let (mut decoder, mut reader) = (Decoder::default(), dialect.stream_reader());
        let mut assembly = Assembly::default();
        let read = |event| drop(reader.push(&event, |delta| drop(assembly.push(delta))));
        prop_assert!(decoder.push(&damaged(bytes), read).is_ok());
    }

    #[test]
    fn any_words_arrive(text in "\\PC{1,40}", piece in 1usize..20, cut in 1usize..50) {
        for dialect in Dialect::ALL {
            let given = ChatResponse {
                parts: vec![Part::text(text.clone())],
                finish: FinishReason::Stop,
                ..answer(dialect)
            };
            prop_assert_eq!(&through_a_stream(dialect, &given, piece, cut), &given);
        }
    }
}
