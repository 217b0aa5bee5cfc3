//! A model that means harm, or has lost its mind: all stays in its bounds.

use rehearsal_core::{Outcome, WireEnd};
use rehearsal_crew::Limits;
use rehearsal_llm::chat::{Arguments, Json, Part, ToolCall};
use rehearsal_llm::scripted::{asks_for, says};

use crate::scene::{FakeTools, call, limits, play};

#[tokio::test]
async fn an_endless_loop_ends_at_the_turn_limit() {
    let tools = FakeTools::default().reads("a", "1").reads("b", "2");
    let turn = |n: usize| Ok(asks_for(vec![call(["a", "b"][n % 2], "{}")]));
    let (ran, _) = play((0..60).map(turn).collect(), &tools, limits()).await;
    assert_eq!((ran.report.end, tools.asked().len()), (Some(WireEnd::MaxTurns), 50));
}

#[tokio::test]
async fn giant_arguments_reach_no_tool_and_are_not_sent_again() {
    let giant = format!("{{\"content\":\"{}\"}}", "x".repeat(8 << 20));
    let tools = FakeTools::default().writes("write_file", "written");
    let script = vec![Ok(asks_for(vec![call("write_file", &giant)])), Ok(says("It is too long."))];
    let (ran, model) = play(script, &tools, limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    assert!(tools.asked().is_empty());
    let request = &model.calls()[1].request;
    let Part::ToolCall(ToolCall { arguments: Arguments::Json(kept), .. }) = &request.messages[2].parts[0]
    else {
        panic!()
    };
    assert_eq!(*kept, Json::empty_object());
    let told = request.last_results().next().unwrap().text();
    assert_eq!(told, format!("ERROR: the arguments have {} bytes, and may have 262144", giant.len()));
    let longest = ran.told().iter().map(String::len).max().unwrap();
    assert!(longest < 400, "{longest}");
}

#[tokio::test]
async fn a_flood_of_calls_is_carried_out_up_to_a_limit_and_all_are_answered() {
    let tools = FakeTools::default().reads("a", "1");
    let calls = (0..5000).map(|n| call("a", &format!("{{\"n\":{n}}}"))).collect();
    let (ran, model) = play(vec![Ok(asks_for(calls)), Ok(says("Done."))], &tools, limits()).await;
    assert_eq!((ran.outcome(), tools.asked().len()), (Outcome::Done, 64));
    let request = &model.calls()[1].request;
    assert_eq!(request.last_results().count(), 5000);
    let last = request.last_results().last().unwrap().text();
    assert_eq!(last, "ERROR: this call was not carried out: an answer may have at most 64 calls");
    assert!(tools.most_at_once.lock().unwrap().1 <= 8);
}

#[tokio::test]
async fn names_and_arguments_of_any_kind_are_told_in_a_line() {
    let odd = ToolCall {
        name: "a\nb\u{1b}[31m".repeat(1000),
        arguments: Arguments::Text("no\njson".into()),
        ..call("x", "{}")
    };
    let (ran, _) =
        play(vec![Ok(asks_for(vec![odd])), Ok(says("Done."))], &FakeTools::default(), limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
}

#[tokio::test]
async fn denials_are_counted_up_to_a_limit() {
    let tools = FakeTools::default().ends("bash", "ERROR: no", rehearsal_crew::CallEnd::Denied);
    let turn = |n: usize| Ok(asks_for(vec![call("bash", &format!("{{\"command\":\"{n}\"}}"))]));
    let (ran, _) = play((0..300).map(turn).collect(), &tools, Limits { turns: 200, ..limits() }).await;
    assert_eq!(ran.report.denials.len(), 100);
}
