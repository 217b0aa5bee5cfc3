use rehearsal_llm::chat::{Arguments, Json, ToolCall};

use super::*;

fn call(id: usize) -> Message {
    let call = ToolCall {
        id: id.to_string(),
        name: "read_file".into(),
        namespace: None,
        arguments: Arguments::Json(Json::empty_object()),
        signature: None,
    };
    Message::new(Role::Assistant, vec![Part::ToolCall(call)])
}

fn result(id: usize, bytes: usize) -> Message {
    let result = ToolResult {
        id: id.to_string(),
        name: None,
        parts: vec![Part::text("x".repeat(bytes))],
        is_error: false,
    };
    Message::new(Role::User, vec![Part::ToolResult(result)])
}

fn conversation(limit: usize) -> Conversation {
    Conversation::new("model", "system".into(), "task".into(), Vec::new(), limit)
}

/// Every result has its call before it, and every call its result after it.
fn is_paired(conversation: &Conversation) -> bool {
    let messages = &conversation.request().messages[HEAD..];
    messages.len().is_multiple_of(2)
        && messages.chunks(2).all(|pair| match (&pair[0].parts[0], &pair[1].parts[0]) {
            (Part::ToolCall(call), Part::ToolResult(result)) => call.id == result.id,
            _ => false,
        })
}

#[test]
fn old_results_are_shortened_before_anything_goes() {
    let mut conversation = conversation(4400);
    for id in 0..10 {
        conversation.push(call(id));
        conversation.push(result(id, 2000));
    }
    conversation.make_room();
    assert!(conversation.total <= 4400);
    assert_eq!(conversation.request().messages.len(), HEAD + 20, "nothing is dropped");
    let text = rehearsal_llm::chat::texts(match &conversation.request().messages[3].parts[0] {
        Part::ToolResult(result) => &result.parts,
        _ => panic!(),
    });
    assert!(text.contains("[… 1200 bytes left out …]"), "{text}");
    let last = conversation.request().messages.last().unwrap();
    assert_eq!(size_of_message(last), size_of_message(&result(9, 2000)), "the last is whole");
}

#[test]
fn a_call_is_never_split_from_its_result() {
    let mut conversation = conversation(2000);
    for id in 0..500 {
        conversation.push(call(id));
        conversation.push(result(id, id * 7 % 3000));
        conversation.make_room();
        assert!(is_paired(&conversation), "after {id}");
        assert!(conversation.total <= 2000, "{} tokens after {id}", conversation.total);
    }
    let task = &conversation.request().messages[1];
    assert_eq!(task.parts.len(), 2, "it is told once");
    assert_eq!(task.parts[1], Part::text(TRUNCATED));
}

#[test]
fn a_giant_in_the_last_exchange_is_shortened_too() {
    let mut conversation = conversation(2000);
    conversation.push(call(1));
    conversation.push(result(1, 100_000));
    conversation.make_room();
    assert!(conversation.total <= 2000, "{}", conversation.total);
    assert!(is_paired(&conversation));
}

#[test]
fn what_the_vendor_calls_too_long_is_kept_shorter_from_then_on() {
    let mut conversation = conversation(100_000);
    for id in 0..10 {
        conversation.push(call(id));
        conversation.push(result(id, 2000));
    }
    let before = conversation.total;
    assert!(conversation.shrink());
    assert!(conversation.total <= before / 2);
    for id in 10..20 {
        conversation.push(call(id));
        conversation.push(result(id, 2000));
        conversation.make_room();
    }
    assert!(conversation.total <= before / 2);
}

#[test]
fn where_nothing_can_be_left_out_nothing_is() {
    let mut conversation = conversation(100);
    assert!(!conversation.shrink());
}
