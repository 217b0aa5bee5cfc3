//! Asks a model for a plan.
//!
//! A wish becomes a [`Plan`], and a plain question a plain answer. What is malformed is given back once, with all that is wrong
//! with it; then it is an error.

mod answer;

use rehearsal_core::BoxFuture;
use rehearsal_llm::chat::{ChatRequest, FinishReason, Message, Usage};
use rehearsal_llm::model::{ChatModel, ModelError};

use crate::plan::{Member, Plan, PlanError, PlanErrors};
use crate::prompt::{PromptBuilder, SYSTEM_BUDGET, Section};
use crate::surroundings::Surroundings;

/// What a model is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// The model's name.
    pub model: &'a str,
    /// What the user wants.
    pub text: &'a str,
    /// Who can be given a task.
    pub members: &'a [Member],
    /// What is known of the repository.
    pub known: &'a Surroundings,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// There is nothing to be done: an answer.
    Answer(String),
    /// What is to be done.
    Plan(Plan),
}

/// What came back, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// What came back.
    pub reply: Reply,
    /// Tokens, of all requests.
    pub usage: Usage,
    /// How often the model was asked.
    pub requests: u32,
}

/// Why there is neither a plan nor an answer.
#[derive(Debug, thiserror::Error)]
pub enum PlannerError {
    /// The model does not answer.
    #[error("the model gives no plan")]
    Model(#[from] ModelError),
    /// It answers with what cannot be used, also when told what is wrong.
    #[error("the model's plan cannot be used, also not the mended one: {errors}")]
    Malformed {
        /// What is wrong with its last answer.
        errors: PlanErrors,
        /// That answer.
        answer: String,
    },
    /// It answers with nothing.
    #[error("the model answered with nothing")]
    Silent,
}

/// What the planner is told.
const PROMPT: &str = include_str!("planner/prompt.md");
/// The planner's own words come first, then who can do what, how one works here, what is where.
const PRIORITIES: [u8; 4] = [100, 90, 80, 50];

/// Asks for a plan.
pub fn plan<'a>(model: &'a dyn ChatModel, wish: Wish<'a>) -> BoxFuture<'a, Result<Planned, PlannerError>> {
    Box::pin(async move {
        let messages =
            vec![Message::system(system_prompt(wish.members, wish.known)), Message::user(wish.text)];
        let mut request = ChatRequest::new(wish.model, messages);
        let (mut usage, mut requests) = (Usage::default(), 0);
        loop {
            let response = model.chat(&request).await?;
            requests += 1;
            add(&mut usage, response.usage);
            let text = response.text();
            let errors = match read(&text, &response.finish, wish.members) {
                Ok(Some(reply)) => return Ok(Planned { reply, usage, requests }),
                Ok(None) => return Err(PlannerError::Silent),
                Err(errors) => errors,
            };
            if requests > 1 {
                return Err(PlannerError::Malformed { errors, answer: text });
            }
            request.messages.push(Message::assistant(text));
            request.messages.push(Message::user(repair(&errors)));
        }
    })
}

/// What a model's words come to; none if there are none.
fn read(text: &str, finish: &FinishReason, members: &[Member]) -> Result<Option<Reply>, PlanErrors> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match answer::plan_in(text) {
        None => Ok(Some(Reply::Answer(text.to_owned()))),
        Some(Ok(file)) => Plan::check(file, members).map(|plan| Some(Reply::Plan(plan))),
        Some(Err(_)) if *finish == FinishReason::Length => {
            Err(PlanError::NotAPlan { message: "it was cut: make it shorter".to_owned() }.into())
        }
        Some(Err(error)) => Err(error.into()),
    }
}

fn repair(errors: &PlanErrors) -> String {
    let told: Vec<String> = errors.0.iter().map(|error| format!("- {error}")).collect();
    format!(
        "This plan cannot be used:\n{}\n\nAnswer with the whole plan again, mended, as one JSON object and nothing else.",
        told.join("\n")
    )
}

/// What the planner is told before the wish.
pub fn system_prompt(members: &[Member], known: &Surroundings) -> String {
    let member = |member: &Member| {
        let looks = if member.only_looks { " (changes nothing)" } else { "" };
        format!("- `{}`: {}{looks}", member.name, member.about)
    };
    let members: Vec<String> = members.iter().map(member).collect();
    let section = |title, text: &str, at: usize| Section {
        title,
        text: text.to_owned(),
        priority: PRIORITIES[at],
        most: SYSTEM_BUDGET / 2,
    };
    PromptBuilder::new(SYSTEM_BUDGET)
        .section(section(None, PROMPT, 0))
        .section(section(Some("Agents"), &members.join("\n"), 1))
        .section(section(Some("Conventions"), &known.conventions, 2))
        .section(section(Some("Layout"), &known.layout, 3))
        .build()
        .text
}

fn add(sum: &mut Usage, more: Usage) {
    sum.input += more.input;
    sum.output += more.output;
    sum.cache_read += more.cache_read;
    sum.cache_write += more.cache_write;
    sum.thinking += more.thinking;
}

#[cfg(test)]
mod tests;
