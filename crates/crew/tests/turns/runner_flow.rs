//! Turns from the first to the last.

use std::time::Duration;

use rehearsal_core::{Outcome, Tokens, WireEnd, WireErrorKind};
use rehearsal_crew::{CallEnd, Limits};
use rehearsal_llm::chat::{Arguments, ChatResponse, FinishReason, Part, Role, ToolCall, Usage, texts};
use rehearsal_llm::scripted::{asks_for, says};

use crate::scene::{FakeTools, call, cut_at_length, limits, play};

fn results(model: &rehearsal_llm::scripted::ScriptedModel, request: usize) -> Vec<(String, String, bool)> {
    let calls = model.calls();
    let results = calls[request].request.last_results();
    results.map(|result| (result.id.clone(), result.text(), result.is_error)).collect()
}

#[tokio::test]
async fn a_tool_is_called_its_result_is_seen_and_the_model_stops() {
    let tools = FakeTools::default().reads("read_file", "hello");
    let script =
        vec![Ok(asks_for(vec![call("read_file", r#"{"path":"a.txt"}"#)])), Ok(says("It says hello."))];
    let (ran, model) = play(script, &tools, limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    assert_eq!(ran.report.final_text, "It says hello.");
    assert_eq!(ran.report.turns, Some(2));
    assert_eq!(tools.asked(), [r#"read_file {"path":"a.txt"}"#]);
    assert_eq!(results(&model, 1), [("call-read_file".to_owned(), "hello".to_owned(), false)]);
    model.assert_finished();
    assert!(model.calls().iter().all(|call| call.stream), "text is heard while it comes");
}

#[tokio::test]
async fn two_calls_in_one_answer_are_both_carried_out_and_answered_in_their_order() {
    let tools = FakeTools::default().reads("grep", "found").reads("glob", "files");
    let script = vec![Ok(asks_for(vec![call("grep", "{}"), call("glob", "{}")])), Ok(says("Done."))];
    let (ran, model) = play(script, &tools, limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    let texts: Vec<String> = results(&model, 1).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(texts, ["found", "files"]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_only_read_run_side_by_side_and_others_one_after_the_other() {
    let second = Duration::from_secs(1);
    for (tools, together) in [
        (FakeTools::default().reads("a", "1").reads("b", "2").taking(second), 2),
        (FakeTools::default().reads("a", "1").writes("b", "2").taking(second), 1),
    ] {
        let script = vec![Ok(asks_for(vec![call("a", "{}"), call("b", "{}")])), Ok(says("Done."))];
        let (_, model) = play(script, &tools, limits()).await;
        assert_eq!(tools.most_at_once.lock().unwrap().1, together);
        let texts: Vec<String> = results(&model, 1).into_iter().map(|(_, text, _)| text).collect();
        assert_eq!(texts, ["1", "2"]);
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_at_its_length_is_gone_on_with() {
    let cut_call =
        ToolCall { arguments: Arguments::Text("{\"path\": \"a".into()), ..call("write_file", "{}") };
    let script = vec![
        Ok(cut_at_length(vec![Part::text("First half,"), Part::ToolCall(cut_call)])),
        Ok(says("second half.")),
    ];
    let tools = FakeTools::default().writes("write_file", "written");
    let (ran, model) = play(script, &tools, limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    assert!(tools.asked().is_empty(), "a call that was cut is not carried out");
    let messages = &model.calls()[1].request.messages;
    let last: Vec<(Role, String)> =
        messages[2..].iter().map(|message| (message.role, texts(&message.parts))).collect();
    assert_eq!(last[0], (Role::Assistant, "First half,".to_owned()));
    assert!(last[1].1.starts_with("Your answer was cut off"), "{}", last[1].1);
    assert_eq!(messages[2].parts.len(), 1, "no call is left without a result");
}

#[tokio::test]
async fn the_error_of_a_tool_goes_to_the_model() {
    let tools = FakeTools::default().ends("read_file", "ERROR: there is no file `x`", CallEnd::Failed);
    let script = vec![Ok(asks_for(vec![call("read_file", "{}")])), Ok(says("It is not there."))];
    let (ran, model) = play(script, &tools, limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    let (_, text, is_error) = results(&model, 1).remove(0);
    assert!(text.starts_with("ERROR: ") && is_error);
}

#[tokio::test]
async fn the_model_is_told_of_the_tools_that_there_are() {
    let tools = FakeTools::default().reads("glob", "").reads("grep", "").reads("read_file", "");
    let (_, model) = play(vec![Ok(says("Hi."))], &tools, limits()).await;
    model.assert_tools_provided(0, &["glob", "grep", "read_file"]);
}

#[tokio::test]
async fn turns_that_are_used_up_need_a_continuation() {
    let tools = FakeTools::default().reads("a", "1");
    let script = (0..3).map(|n| Ok(asks_for(vec![call("a", &format!("{{\"n\":{n}}}"))]))).collect();
    let (ran, model) = play(script, &tools, Limits { turns: 3, ..limits() }).await;
    assert_eq!(ran.report.end, Some(WireEnd::MaxTurns));
    assert_eq!(ran.outcome().name().as_str(), "needs_continuation");
    assert_eq!(ran.report.turns, Some(3));
    model.assert_finished();
}

#[tokio::test]
async fn all_that_happens_is_told_in_its_order() {
    let tools = FakeTools::default().reads("read_file", "hello");
    let mut first = asks_for(vec![call("read_file", r#"{"path":"a.txt"}"#)]);
    first.parts.insert(0, Part::text("I look."));
    first.usage = Usage { input: 10, output: 5, cache_read: 100, ..Usage::default() };
    let (ran, _) = play(vec![Ok(first), Ok(says("Done."))], &tools, limits()).await;
    assert_eq!(
        ran.told(),
        [
            "started",
            "turn 1",
            "text I look.",
            "used 115",
            "called read_file a.txt",
            "read_file ok",
            "turn 2",
            "text Done."
        ]
    );
    assert_eq!(ran.report.tokens, Some(Tokens { input: 110, cached: 100, output: 5 }));
}

#[tokio::test]
async fn tokens_that_nobody_tells_are_unknown() {
    let (ran, _) = play(vec![Ok(says("Done."))], &FakeTools::default(), limits()).await;
    assert_eq!(ran.report.tokens, None);
}

#[tokio::test]
async fn a_budget_of_tokens_ends_the_run_when_it_is_passed() {
    let tools = FakeTools::default().reads("a", "1");
    let turn = |n: u64| {
        let mut answer = asks_for(vec![call("a", &format!("{{\"n\":{n}}}"))]);
        answer.usage = Usage { input: 60, output: 0, ..Usage::default() };
        Ok(answer)
    };
    let (ran, model) =
        play((0..5).map(turn).collect(), &tools, Limits { tokens: Some(100), ..limits() }).await;
    assert_eq!(ran.outcome().name().as_str(), "budget_reached");
    assert_eq!(model.left(), 3);
}

#[tokio::test]
async fn a_malformed_call_may_be_repaired_once() {
    let tools =
        FakeTools::default().reads("a", "1").ends("b", "ERROR: `path` is required", CallEnd::Malformed);
    let wrong = |n: u64| Ok(asks_for(vec![call("b", &format!("{{\"n\":{n}}}"))]));
    let right = |n: u64| Ok(asks_for(vec![call("a", &format!("{{\"n\":{n}}}"))]));

    let mended = vec![wrong(1), right(1), wrong(2), right(2), Ok(says("Done."))];
    let (ran, model) = play(mended, &tools, limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    assert_eq!(results(&model, 1)[0].1, "ERROR: `path` is required");

    let (ran, _) = play(vec![wrong(1), wrong(2), right(1)], &tools, limits()).await;
    let Outcome::ProtocolError { reason } = ran.outcome() else { panic!("{:?}", ran.outcome()) };
    assert_eq!(reason, "the model was told once, and again its call of `b` is malformed");
}

#[tokio::test]
async fn an_answer_without_anything_may_be_repaired_once() {
    let empty = || says("");
    let (ran, model) = play(vec![Ok(empty()), Ok(says("Done."))], &FakeTools::default(), limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    assert!(model.calls()[1].request.last_user_text().starts_with("ERROR: your answer was empty"));

    let (ran, _) = play(vec![Ok(empty()), Ok(empty())], &FakeTools::default(), limits()).await;
    let Outcome::ProtocolError { reason } = ran.outcome() else { panic!("{:?}", ran.outcome()) };
    assert_eq!(reason, "the model was told once, and again its answer is empty");
}

#[tokio::test]
async fn the_same_call_over_and_over_is_stopped() {
    let tools = FakeTools::default().reads("a", "1");
    let script = (0..9).map(|_| Ok(asks_for(vec![call("a", "{}")]))).collect();
    let (ran, _) = play(script, &tools, limits()).await;
    assert_eq!(tools.asked().len(), 3);
    let Outcome::Failed { reason } = ran.outcome() else { panic!("{:?}", ran.outcome()) };
    assert_eq!(reason, "`a` was called 4 times in a row with the same arguments");
}

#[tokio::test]
async fn the_same_tool_with_other_arguments_is_no_loop() {
    let tools = FakeTools::default().reads("a", "1");
    let turn = |n: u64| Ok(asks_for(vec![call("a", &format!("{{\"n\":{}}}", n % 2))]));
    let script = (0..9).map(turn).chain([Ok(says("Done."))]).collect();
    let (ran, _) = play(script, &tools, limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
}

#[tokio::test]
async fn what_a_role_may_not_is_refused_and_recorded() {
    let tools = FakeTools::default().ends("bash", "ERROR: this role may not execute", CallEnd::Denied);
    let script = vec![Ok(asks_for(vec![call("bash", r#"{"command":"rm -rf /"}"#)])), Ok(says("I may not."))];
    let (ran, _) = play(script, &tools, limits()).await;
    assert_eq!(ran.report.denials.len(), 1);
    assert_eq!(
        (ran.report.denials[0].tool.as_str(), ran.report.denials[0].detail.as_str()),
        ("bash", "rm -rf /")
    );
    assert_eq!(ran.outcome().name().as_str(), "permission_denied");
}

#[tokio::test]
async fn a_vendor_that_says_stop_and_calls_all_the_same_is_understood() {
    let tools = FakeTools::default().reads("a", "1");
    let odd = ChatResponse { finish: FinishReason::Stop, ..asks_for(vec![call("a", "{}")]) };
    let (ran, _) = play(vec![Ok(odd), Ok(says("Done."))], &tools, limits()).await;
    assert_eq!((ran.outcome(), tools.asked().len()), (Outcome::Done, 1));
}

#[tokio::test]
async fn a_model_that_refuses_has_failed() {
    let refusal = ChatResponse { finish: FinishReason::Refused, ..says("No.") };
    let (ran, _) = play(vec![Ok(refusal)], &FakeTools::default(), limits()).await;
    let Some(WireEnd::Error(error)) = ran.report.end else { panic!() };
    assert_eq!((error.kind, error.message.as_str()), (WireErrorKind::Other, "the model refuses to answer"));
}

#[tokio::test]
async fn what_the_model_thought_goes_back_to_it() {
    let tools = FakeTools::default().reads("a", "1");
    let thought = rehearsal_llm::chat::Thinking {
        text: "hm".into(),
        signature: Some("signed".into()),
        ..rehearsal_llm::chat::Thinking::default()
    };
    let mut first = asks_for(vec![call("a", "{}")]);
    first.parts.insert(0, Part::Thinking(thought.clone()));
    let (_, model) = play(vec![Ok(first), Ok(says("Done."))], &tools, limits()).await;
    assert_eq!(model.calls()[1].request.messages[2].parts[0], Part::Thinking(thought));
}
