use rehearsal_core::AgentName;
use rehearsal_llm::chat::{ChatResponse, Part};
use rehearsal_llm::scripted::ScriptedModel;

use super::*;

fn members() -> Vec<Member> {
    let member = |name: &str, about: &str, only_looks| Member {
        name: AgentName::new(name).unwrap(),
        about: about.to_owned(),
        only_looks,
    };
    vec![
        member("search", "Finds where things are in the code, and changes nothing", true),
        member("code", "Writes and changes code", false),
    ]
}

const PLAN: &str = r#"{"tasks": [{"id": "a", "agent": "code", "description": "Do it"}]}"#;

async fn planned(model: &ScriptedModel) -> Result<Planned, PlannerError> {
    let known = Surroundings { layout: "src/\nsrc/add.py".into(), ..Surroundings::default() };
    let members = members();
    let wish = Wish { model: "any", text: "Make the test green", members: &members, known: &known };
    plan(model, wish).await
}

#[tokio::test]
async fn a_plan_is_found_bare_fenced_and_among_words() {
    let fenced = format!("```json\n{PLAN}\n```");
    let in_words =
        format!("The key \"tasks\" is first. Here is the plan:\n\n{PLAN}\n\nI hope {{this}} helps.");
    for answer in [PLAN.to_owned(), fenced, in_words, format!("{PLAN}\n\n{PLAN}")] {
        let model = ScriptedModel::from_strings([answer.clone()]);
        let Reply::Plan(plan) = planned(&model).await.unwrap().reply else { panic!("{answer}") };
        assert_eq!(plan.steps()[0].task.description, "Do it");
    }
}

#[tokio::test]
async fn a_plain_question_gets_a_plain_answer_and_no_plan() {
    let answer = "It parses YAML; `src/parse.rs` has { all of it }.";
    let model = ScriptedModel::from_strings([format!("\n{answer}\n")]);
    let planned = planned(&model).await.unwrap();
    assert_eq!(planned.reply, Reply::Answer(answer.to_owned()));
    assert_eq!(planned.requests, 1);
}

#[tokio::test]
async fn a_malformed_plan_is_mended_once_with_all_that_is_wrong() {
    let wrong = r#"{"tasks": [{"id": "a", "agent": "coder", "description": "Do it", "depends_on": ["b"]}]}"#;
    let model = ScriptedModel::from_strings([wrong, PLAN]);
    let planned = planned(&model).await.unwrap();
    assert!(matches!(planned.reply, Reply::Plan(_)));
    assert_eq!(planned.requests, 2);
    let asked = model.calls()[1].request.clone();
    insta::assert_snapshot!(asked.last_user_text(), @"
    This plan cannot be used:
    - task `a` depends on `b`, which is not in the plan: did you mean `a`?
    - task `a` is for agent `coder`, and there is none: did you mean `code`?

    Answer with the whole plan again, mended, as one JSON object and nothing else.
    ");
    assert_eq!(asked.messages.len(), 4);
}

#[tokio::test]
async fn a_plan_that_is_still_malformed_is_an_error() {
    let model = ScriptedModel::from_strings(["{\"tasks\": 3}", "{\"plan\": []}"]);
    let error = planned(&model).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model's plan cannot be used, also not the mended one: it is not a plan: unknown field `plan`, \
         expected `tasks` at line 1 column 7"
    );
    model.assert_finished();
}

#[tokio::test]
async fn a_plan_that_was_cut_is_asked_for_again_and_shorter() {
    let cut = ChatResponse {
        id: "1".into(),
        model: "any".into(),
        parts: vec![Part::text(&PLAN[..40])],
        finish: FinishReason::Length,
        usage: Usage::default(),
    };
    let whole = ChatResponse { parts: vec![Part::text(PLAN)], finish: FinishReason::Stop, ..cut.clone() };
    let model = ScriptedModel::new([Ok(cut), Ok(whole)]);
    assert_eq!(planned(&model).await.unwrap().requests, 2);
    assert!(
        model.calls()[1].request.last_user_text().contains("- it is not a plan: it was cut: make it shorter")
    );
}

#[tokio::test]
async fn a_model_that_says_nothing_or_fails_has_not_planned() {
    let error = planned(&ScriptedModel::from_strings([" \n"])).await.unwrap_err();
    assert_eq!(error.to_string(), "the model answered with nothing");
    let failure = ModelError::Unauthorized { message: "no".into() };
    let error = planned(&ScriptedModel::with_error(failure.clone())).await.unwrap_err();
    assert!(matches!(error, PlannerError::Model(found) if found == failure));
}

#[test]
fn the_planner_is_told_who_does_what_and_where_things_are() {
    let known = Surroundings {
        conventions: "Write tests first.".into(),
        layout: "src/\nsrc/add.py".into(),
        readme: "never shown".into(),
    };
    insta::assert_snapshot!(system_prompt(&members(), &known));
    let bare = system_prompt(&members(), &Surroundings::default());
    assert!(!bare.contains("## Conventions") && !bare.contains("## Layout"));
}

proptest::proptest! {
    #[test]
    fn no_answer_panics(text in "(\\{|\"tasks\"|:|\\[|\\]|\\}|```json\n|```|,|\"id\"|é|.){0,40}") {
        let _ = read(&text, &FinishReason::Stop, &members());
    }
}
