//! A model that says what it was told to say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rehearsal_core::{Clock, Timestamp, VirtualClock};

use crate::chat::{Arguments, ChatRequest, ChatResponse, Delta, FinishReason, Json, Part, ToolCall, Usage};
use crate::deltas::{Told, deltas_of};
use crate::model::{ChatModel, ChatStream, ModelError};

/// Answers with what it was given, one after the other, and remembers what it was asked.
///
/// ```
/// use rehearsal_llm::chat::{ChatRequest, Message};
/// use rehearsal_llm::model::ChatModel;
/// use rehearsal_llm::scripted::ScriptedModel;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = ScriptedModel::from_strings(["Hello."]);
/// let request = ChatRequest::new("any", vec![Message::user("Hi")]);
/// assert_eq!(model.chat(&request).await.unwrap().text(), "Hello.");
///
/// let error = model.chat(&request).await.unwrap_err();
/// assert_eq!(error.to_string(), "the stand-in has no answer: request 2 came, and the script has 1 answer; \
///     the user says \"Hi\", no tools");
/// # });
/// ```
pub struct ScriptedModel {
    clock: Arc<dyn Clock>,
    piece: usize,
    state: Mutex<State>,
}

struct State {
    script: VecDeque<Result<ChatResponse, ModelError>>,
    length: usize,
    captured: Vec<CapturedCall>,
}

/// A request that a [`ScriptedModel`] got.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedCall {
    /// What was asked.
    pub request: ChatRequest,
    /// Whether the answer was wanted piece by piece.
    pub stream: bool,
    /// When.
    pub at: Timestamp,
}

/// How many bytes a piece of a streamed answer has, if nothing else was said: a word or two.
const PIECE: usize = 8;

/// How much of what the user says is told when there is no answer.
const SHOWN: usize = 120;

impl ScriptedModel {
    /// Answers and failures, in the order in which they are given.
    pub fn new(script: impl IntoIterator<Item = Result<ChatResponse, ModelError>>) -> Self {
        let script: VecDeque<_> = script.into_iter().collect();
        let state = State { length: script.len(), script, captured: Vec::new() };
        let clock = Arc::new(VirtualClock::starting_at(Timestamp::default()));
        Self { clock, piece: PIECE, state: Mutex::new(state) }
    }

    /// Says these texts.
    pub fn from_strings<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::new(texts.into_iter().map(|text| Ok(says(text))))
    }

    /// Calls tools, and says something when they have answered.
    pub fn with_tool_calls(calls: Vec<ToolCall>, then: impl Into<String>) -> Self {
        Self::new([Ok(asks_for(calls)), Ok(says(then))])
    }

    /// Fails.
    pub fn with_error(error: ModelError) -> Self {
        Self::new([Err(error)])
    }

    /// Takes the time from a clock; without one it is always 0.
    pub fn timed_by(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Streams its texts in pieces of about so many bytes.
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    /// All that was asked so far.
    pub fn calls(&self) -> Vec<CapturedCall> {
        self.state().captured.clone()
    }

    /// How many answers nobody asked for yet.
    pub fn left(&self) -> usize {
        self.state().script.len()
    }

    /// Asserts that a request, counted from 0, offered exactly these tools.
    ///
    /// # Panics
    /// If it did not, or if there was no such request.
    #[track_caller]
    pub fn assert_tools_provided(&self, call: usize, expected: &[&str]) {
        let calls = self.calls();
        let Some(captured) = calls.get(call) else {
            panic!("there was no request {call}: {} came", calls.len());
        };
        let offered: Vec<&str> = captured.request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(offered, expected, "the tools of request {call}");
    }

    /// Asserts that every answer was asked for.
    ///
    /// # Panics
    /// If answers are left.
    #[track_caller]
    pub fn assert_finished(&self) {
        let (left, length) = (self.left(), self.state().length);
        assert_eq!(left, 0, "{left} of {length} answers were not asked for");
    }

    fn next(&self, request: &ChatRequest, stream: bool) -> Result<ChatResponse, ModelError> {
        let at = self.clock.now();
        let mut state = self.state();
        state.captured.push(CapturedCall { request: request.clone(), stream, at });
        let (number, length) = (state.captured.len(), state.length);
        state.script.pop_front().unwrap_or_else(|| Err(past_the_end(request, number, length)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        f.debug_struct("ScriptedModel")
            .field("script", &state.script)
            .field("captured", &state.captured)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.next(request, false)
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        let response = self.next(request, true)?;
        let deltas: Vec<Delta> = deltas_of(&response, self.piece);
        Ok(Box::pin(Told::new(deltas.into_iter().map(Ok))))
    }
}

/// An answer that is only words.
pub fn says(text: impl Into<String>) -> ChatResponse {
    answer(vec![Part::text(text)], FinishReason::Stop)
}

/// An answer that wants tools to be used.
pub fn asks_for(calls: Vec<ToolCall>) -> ChatResponse {
    answer(calls.into_iter().map(Part::ToolCall).collect(), FinishReason::ToolCalls)
}

/// A call of a tool, with arguments as JSON.
pub fn tool_call(id: &str, name: &str, arguments: Json) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        namespace: None,
        arguments: Arguments::Json(arguments),
        signature: None,
    }
}

fn answer(parts: Vec<Part>, finish: FinishReason) -> ChatResponse {
    let (id, model) = ("scripted".to_owned(), "scripted".to_owned());
    ChatResponse { id, model, parts, finish, usage: Usage::default() }
}

fn past_the_end(request: &ChatRequest, number: usize, length: usize) -> ModelError {
    let answers = if length == 1 { "answer" } else { "answers" };
    let text = crate::failure::excerpt(&request.last_user_text(), SHOWN);
    let results = request.last_results().count();
    let results = if results == 0 { String::new() } else { format!(", {results} tool results came with it") };
    let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    let tools = if tools.is_empty() { "no tools".to_owned() } else { format!("tools: {}", tools.join(", ")) };
    let message = format!(
        "request {number} came, and the script has {length} {answers}; the user says {text:?}{results}, {tools}"
    );
    ModelError::NotScripted { message }
}
