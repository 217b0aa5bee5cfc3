//! The model that says what it was told to say.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::{Timestamp, VirtualClock};
use rehearsal_llm::assembly;
use rehearsal_llm::chat::{ChatRequest, Json, Message, Part, Role, ToolResult};
use rehearsal_llm::model::{ChatModel, ModelError};
use rehearsal_llm::scripted::{ScriptedModel, tool_call};

use crate::vendor::user;

fn arguments() -> Json {
    Json::parse(r#"{"pattern":"*.rs"}"#.to_owned()).unwrap()
}

#[tokio::test]
async fn tools_are_called_and_answered_in_the_order_of_the_script() {
    let clock = Arc::new(VirtualClock::starting_at(Timestamp(1000)));
    let model = ScriptedModel::with_tool_calls(vec![tool_call("c1", "Write", arguments())], "Found 5 files")
        .timed_by(clock.clone());
    let mut request = user("find them");
    let first = model.chat(&request).await.unwrap();
    assert_eq!(first.tool_calls().next().unwrap().name, "Write");

    clock.advance(Duration::from_secs(5));
    let result = ToolResult { id: "c1".into(), name: None, parts: vec![Part::text("5")], is_error: false };
    request.messages.push(Message::new(Role::User, vec![Part::ToolResult(result)]));
    assert_eq!(model.chat(&request).await.unwrap().text(), "Found 5 files");

    model.assert_tools_provided(0, &["Write"]);
    model.assert_finished();
    let calls = model.calls();
    assert_eq!(calls[1].request.last_results().count(), 1);
    assert_eq!([calls[0].at, calls[1].at], [Timestamp(1000), Timestamp(6000)]);

    let error = model.chat(&request).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the stand-in has no answer: request 3 came, and the script has 2 answers; the user says \"find them\", \
         1 tool results came with it, tools: Write"
    );
}

#[tokio::test]
async fn a_stream_has_pieces_of_the_size_that_was_told() {
    let model = ScriptedModel::from_strings(["ä longer text", "ä longer text"]).in_pieces_of(3);
    let mut stream = model.chat_stream(&user("hi")).await.unwrap();
    let mut pieces = Vec::new();
    while let Some(delta) = std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await {
        if let rehearsal_llm::chat::Delta::More { text, .. } = delta.unwrap() {
            pieces.push(text);
        }
    }
    assert_eq!(pieces, ["ä ", "lon", "ger", " te", "xt"]);
    let whole = assembly::whole(model.chat_stream(&user("hi")).await.unwrap()).await.unwrap();
    assert_eq!(whole.text(), "ä longer text");
    assert!(model.calls()[0].stream);
}

#[tokio::test]
async fn it_fails_as_it_was_told() {
    let down = ModelError::Unreachable { message: "API down".into() };
    let model = ScriptedModel::with_error(down.clone());
    assert_eq!(model.chat(&user("hi")).await.unwrap_err(), down);
    assert_eq!(model.left(), 0);
}

#[tokio::test]
#[should_panic(expected = "the tools of request 0")]
async fn other_tools_are_noticed() {
    let model = ScriptedModel::from_strings(["a"]);
    let bare = ChatRequest::new("any", vec![Message::user("hi")]);
    model.chat(&bare).await.unwrap();
    model.assert_tools_provided(0, &["glob"]);
}

#[test]
#[should_panic(expected = "2 of 2 answers were not asked for")]
fn answers_that_nobody_wanted_are_noticed() {
    ScriptedModel::from_strings(["a", "b"]).assert_finished();
}
