//! Answers to what is not of the task: they are given without a turn.

use rehearsal_llm::chat::{ChatRequest, ChatResponse, FinishReason, Part, Usage};

use crate::ids::Seeded;
use crate::schema::smallest;

/// Words that do as a title, as a summary and as an answer to "are you there".
const WORDS: &str = "Rehearsal";

/// What it costs.
const USAGE: Usage = Usage { input: 10, output: 1, cache_read: 0, cache_write: 0, thinking: 0 };

/// The least that satisfies whoever asks.
pub(crate) fn answer(chat: &ChatRequest, seeded: &mut Seeded) -> ChatResponse {
    let schema = chat.answer_schema.as_ref().and_then(|schema| schema.read().ok());
    let text = schema.map_or_else(|| WORDS.to_owned(), |schema| smallest(&schema).to_string());
    ChatResponse {
        id: seeded.id("msg"),
        model: chat.model.clone(),
        parts: vec![Part::text(text)],
        finish: FinishReason::Stop,
        usage: USAGE,
    }
}
