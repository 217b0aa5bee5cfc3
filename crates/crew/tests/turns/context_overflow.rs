//! What happens when there is more than fits.

use rehearsal_core::Outcome;
use rehearsal_crew::{
    Limits, PromptBuilder, Roles, SYSTEM_BUDGET, Section, Surroundings, TRUNCATED, estimate, system_prompt,
};
use rehearsal_llm::chat::{Part, Role};
use rehearsal_llm::model::ModelError;
use rehearsal_llm::scripted::{ScriptedModel, asks_for, says};

use crate::scene::{FakeTools, Script, call, limits, play};

fn section(title: &'static str, tokens: usize, priority: u8) -> Section {
    Section { title: Some(title), text: "word".repeat(tokens), priority, most: usize::MAX }
}

fn titles(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

#[test]
fn a_section_that_matters_less_is_dropped_when_both_do_not_fit() {
    let builder = PromptBuilder::new(150).section(section("Low", 100, 1)).section(section("High", 100, 2));
    let prompt = builder.build();
    assert_eq!((titles(&prompt.text), prompt.dropped), (vec!["High"], vec!["Low"]));
}

#[test]
fn sections_that_fit_are_all_there_in_the_order_in_which_they_were_added() {
    let builder = PromptBuilder::new(300).section(section("Low", 100, 1)).section(section("High", 100, 2));
    let prompt = builder.build();
    assert_eq!((titles(&prompt.text), prompt.dropped), (vec!["Low", "High"], vec![]));
}

#[test]
fn words_of_the_system_that_fill_the_budget_leave_no_room_for_the_project() {
    let mut role = Roles::built_in().unwrap().get("code").unwrap().clone();
    role.prompt = "word".repeat(990);
    let known = Surroundings { readme: "read me ".repeat(50), ..Surroundings::default() };
    let prompt = system_prompt(&role, None, &known, 1000);
    assert!(prompt.text.starts_with("wordword") && !prompt.text.contains("read me"));
    assert_eq!(prompt.dropped, ["README"]);
}

#[test]
fn those_with_the_highest_priority_are_put_in_first() {
    let builder = PromptBuilder::new(250)
        .section(section("Third", 100, 1))
        .section(section("First", 100, 9))
        .section(section("Second", 100, 5));
    let prompt = builder.build();
    assert_eq!((titles(&prompt.text), prompt.dropped), (vec!["First", "Second"], vec!["Third"]));
}

#[test]
fn a_project_that_says_far_too_much_of_itself_is_cut_with_a_mark() {
    let role = Roles::built_in().unwrap().get("code").unwrap().clone();
    let known = Surroundings { readme: "blah ".repeat(50_000), ..Surroundings::default() };
    let prompt = system_prompt(&role, None, &known, SYSTEM_BUDGET);
    assert!(prompt.text.contains("[… cut: this is longer than there is room for]"));
    assert!(estimate(&prompt.text) <= SYSTEM_BUDGET / 8 + estimate(&role.prompt) + 10);
    assert!(prompt.dropped.is_empty());
}

#[test]
fn a_prompt_is_never_longer_than_its_budget() {
    for budget in [0, 1, 5, 20, 100, 1000] {
        let builder =
            PromptBuilder::new(budget).section(section("One", 400, 1)).section(section("Two", 30, 2));
        let text = builder.build().text;
        assert!(estimate(&text) <= budget, "{budget}: {text}");
    }
}

#[test]
fn init_is_not_told_of_the_project_and_the_others_are() {
    let known = Surroundings { readme: "What it is.".into(), ..Surroundings::default() };
    for (role, _) in Roles::built_in().unwrap().iter() {
        let is_told = system_prompt(role, None, &known, SYSTEM_BUDGET).text.contains("What it is.");
        assert_eq!(is_told, role.name != "init", "{}", role.name);
    }
}

fn many_large_calls(times: u64) -> (Script, FakeTools) {
    let tools = FakeTools::default().reads("read_file", &"line of text\n".repeat(2000));
    let turn = |n| Ok(asks_for(vec![call("read_file", &format!("{{\"path\":\"{n}\"}}"))]));
    ((0..times).map(turn).chain([Ok(says("Done."))]).collect(), tools)
}

fn tokens_of(request: &rehearsal_llm::chat::ChatRequest) -> usize {
    let text = |part: &Part| match part {
        Part::Text(text) => estimate(&text.text),
        Part::ToolResult(result) => estimate(&result.text()),
        _ => 0,
    };
    request.messages.iter().flat_map(|message| &message.parts).map(text).sum()
}

#[tokio::test]
async fn a_conversation_is_trimmed_after_many_large_results() {
    let (script, tools) = many_large_calls(40);
    let (ran, model) = play(script, &tools, Limits { context: 20_000, ..limits() }).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    for captured in model.calls() {
        assert!(tokens_of(&captured.request) <= 20_000);
    }
    let last = &model.calls()[40].request;
    assert!(last.messages.len() < 82, "{}", last.messages.len());
    assert_eq!(last.messages[1].parts, [Part::text("Do it."), Part::text(TRUNCATED)], "the task stays");
    assert_eq!(last.messages[2].role, Role::Assistant, "a result is never the first");
}

#[tokio::test]
async fn a_short_conversation_is_left_as_it_is() {
    let (script, tools) = many_large_calls(2);
    let (_, model) = play(script, &tools, limits()).await;
    let last = &model.calls()[2].request;
    assert_eq!(last.messages.len(), 6);
    assert_eq!(last.messages[1].parts, [Part::text("Do it.")]);
}

fn too_long() -> Result<rehearsal_llm::chat::ChatResponse, ModelError> {
    Err(ModelError::TooLong { message: "prompt is too long: 210000 tokens > 200000 maximum".into() })
}

#[tokio::test]
async fn what_the_vendor_calls_too_long_is_shortened_and_asked_once_more() {
    let (mut script, tools) = many_large_calls(4);
    script.insert(4, too_long());
    let (ran, model) = play(script, &tools, limits()).await;
    assert_eq!(ran.outcome(), Outcome::Done);
    let calls = model.calls();
    assert!(tokens_of(&calls[5].request) <= tokens_of(&calls[4].request) / 2 + 100);
    assert!(ran.told().contains(
        &"retrying: the conversation is too long for the model: its beginning is left out".to_owned()
    ));
}

#[tokio::test]
async fn what_is_still_too_long_then_has_failed() {
    let (mut script, tools) = many_large_calls(4);
    script.insert(4, too_long());
    script.insert(5, too_long());
    let (ran, _) = play(script, &tools, limits()).await;
    let Outcome::Failed { reason } = ran.outcome() else { panic!("{:?}", ran.outcome()) };
    assert!(reason.starts_with("the conversation is too long for the model: "), "{reason}");

    let model = ScriptedModel::new([too_long(), Ok(says("Done."))]);
    let cancel = tokio_util::sync::CancellationToken::new();
    let ran = crate::scene::run(&model, &FakeTools::default(), limits(), &cancel).await;
    assert_eq!(ran.outcome().name().as_str(), "failed");
    assert_eq!(model.left(), 1, "a task alone cannot be shortened");
}
