//! Agents without a process, a repository or tools: a model that is asked directly, and the mock `echo`.

use rehearsal_core::{Outcome, Timestamp, Tokens};
use rehearsal_llm::chat::{ChatRequest, ChatResponse, FinishReason, Message};
use rehearsal_llm::wire::Dialect;

use crate::trial::{Source, Step, Trial, TrialId, shortened};

/// Answers with what it is asked.
pub const ECHO: &str = "echo";

/// Someone who is asked directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct<'a> {
    /// Whose answer is the prompt.
    Echo,
    /// A model, written `VENDOR:NAME`.
    Model {
        /// The vendor, by its format.
        dialect: Dialect,
        /// Its name there.
        name: &'a str,
    },
}

impl<'a> Direct<'a> {
    /// Whether that is meant by the name of an agent. An agent of the configuration has no colon in its name.
    pub fn of(agent: &'a str) -> Option<Self> {
        if agent == ECHO {
            return Some(Self::Echo);
        }
        Dialect::of_model(agent).map(|(dialect, name)| Self::Model { dialect, name })
    }
}

/// What a model is asked: the prompt, and nothing else.
pub fn question(model: &str, prompt: &str) -> ChatRequest {
    ChatRequest::new(model, vec![Message::user(prompt)])
}

/// The trial in which a model answered at such a time.
pub fn answered(
    id: &TrialId,
    source: Source,
    began: Timestamp,
    ended: Timestamp,
    answer: &ChatResponse,
) -> Trial {
    let output = answer.text();
    let outcome = outcome(&answer.finish, &output);
    let tokens = answer.usage.tokens();
    Trial { outcome, tokens, ..said(id, source, began, ended, output) }
}

/// The trial in which the prompt was the answer. It costs nothing, and that is known.
pub fn echoed(id: &TrialId, began: Timestamp, ended: Timestamp, prompt: String) -> Trial {
    let (tokens, cost_usd) = (Some(Tokens::default()), Some(0.0));
    Trial { tokens, cost_usd, ..said(id, Source::Scripted, began, ended, prompt) }
}

fn said(id: &TrialId, source: Source, began: Timestamp, ended: Timestamp, output: String) -> Trial {
    let agent = Step::Agent { name: id.variant.agent.clone() };
    Trial {
        duration_ms: u64::try_from(ended.0 - began.0).unwrap_or(0),
        outcome: Outcome::Done,
        steps: vec![agent, Step::Text { text: shortened(output.clone()) }],
        output,
        turns: Some(1),
        ..Trial::blank(id.clone(), source, began)
    }
}

/// An answer that the model did not end by itself is not what it wanted to say.
fn outcome(finish: &FinishReason, output: &str) -> Outcome {
    match finish {
        FinishReason::Length => {
            Outcome::BudgetReached { reason: "the answer was cut at its longest".to_owned() }
        }
        FinishReason::Refused => Outcome::Failed { reason: "the model refused to answer".to_owned() },
        _ if output.trim().is_empty() => Outcome::EmptyOutput,
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::StopText | FinishReason::Other(_) => {
            Outcome::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_llm::chat::{Part, Usage};

    use super::*;
    use crate::trial::Variant;

    fn id() -> TrialId {
        let variant = Variant { agent: "openai:gpt-x".to_owned(), model: None, prompt: None, flow: None };
        TrialId { case: "case".to_owned(), variant, trial: 1 }
    }

    fn trial(text: &str, finish: FinishReason, usage: Usage) -> Trial {
        let (answer, model) = ("answer".to_owned(), "gpt-x".to_owned());
        let answer = ChatResponse { id: answer, model, parts: vec![Part::text(text)], finish, usage };
        answered(&id(), Source::Live, Timestamp(1000), Timestamp(1250), &answer)
    }

    #[test]
    fn a_vendor_and_a_name_are_a_model_and_other_names_are_agents() {
        let model = |dialect, name| Some(Direct::Model { dialect, name });
        assert_eq!(Direct::of("echo"), Some(Direct::Echo));
        assert_eq!(Direct::of("openai:llama:70b"), model(Dialect::OpenAiChat, "llama:70b"));
        assert_eq!(Direct::of("responses:gpt-x"), model(Dialect::OpenAiResponses, "gpt-x"));
        assert_eq!(Direct::of("claude"), None);
        assert_eq!(Direct::of("llama:70b"), None);
    }

    #[test]
    fn an_answer_is_one_turn_and_what_the_vendor_told_of_it() {
        let usage = Usage { input: 10, cache_read: 5, output: 3, ..Usage::default() };
        let trial = trial("Hello", FinishReason::Stop, usage);
        assert_eq!((trial.output.as_str(), trial.turns, trial.duration_ms), ("Hello", Some(1), 250));
        assert_eq!(trial.tokens, Some(Tokens { input: 15, cached: 5, output: 3 }));
        assert_eq!((trial.cost_usd, trial.outcome), (None, Outcome::Done));
    }

    #[test]
    fn tokens_that_are_not_told_are_not_zero() {
        assert_eq!(trial("Hello", FinishReason::Stop, Usage::default()).tokens, None);
    }

    #[test]
    fn an_answer_that_is_cut_refused_or_empty_is_not_done() {
        let outcome = |text, finish| trial(text, finish, Usage::default()).outcome.name().to_string();
        assert_eq!(outcome("Hel", FinishReason::Length), "budget_reached");
        assert_eq!(outcome("No.", FinishReason::Refused), "failed");
        assert_eq!(outcome(" ", FinishReason::Stop), "empty_output");
    }
}
