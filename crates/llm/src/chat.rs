//! A conversation with a model, whoever the vendor is.

use std::fmt;

use rehearsal_core::Tokens;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// Which model.
    pub model: String,
    /// What was said so far. What the system says comes first, and may come again later.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub tools: Vec<ToolDefinition>,
    /// Whether it must.
    pub tool_choice: ToolChoice,
    /// How much it may answer.
    pub max_tokens: Option<u64>,
    /// How freely.
    pub temperature: Option<f64>,
    /// Where it stops.
    pub stop: Vec<String>,
    /// The JSON Schema that the answer must conform to.
    pub answer_schema: Option<Json>,
    /// How much it may think.
    pub effort: Option<Effort>,
}

impl ChatRequest {
    /// A request without anything special.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            model: model.into(),
            messages,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            max_tokens: None,
            temperature: None,
            stop: Vec::new(),
            answer_schema: None,
            effort: None,
        }
    }

    /// What the user said last, in text; tool results are not text.
    pub fn last_user_text(&self) -> String {
        let texts = |message: &Message| texts(&message.parts);
        self.messages
            .iter()
            .rev()
            .filter(|message| message.role == Role::User)
            .map(texts)
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }

    /// The results of tools that came with the last message.
    pub fn last_results(&self) -> impl Iterator<Item = &ToolResult> {
        let last = self.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
        let mut messages: Vec<&Message> = last.collect();
        messages.reverse();
        messages.into_iter().flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

/// How much a model may think before it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effort {
    /// At most so many tokens.
    Tokens(u64),
    /// In the vendor's words: `low`, `high`, `adaptive`.
    Named(String),
}

/// Whether a model must call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call one.
    Any,
    /// It must call this one.
    Tool(String),
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Who set the conversation up.
    System,
    /// Who asks; results of tools come from here too.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message in parts.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts }
    }

    /// Text from the system.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![Part::text(text)])
    }

    /// Text from the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::text(text)])
    }

    /// Text from the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Part::text(text)])
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Words.
    Text(Text),
    /// A picture or a document.
    Media(Media),
    /// What the model thought.
    Thinking(Thinking),
    /// The model wants a tool to be used.
    ToolCall(ToolCall),
    /// What came of it.
    ToolResult(ToolResult),
    /// A block of a kind that we do not know, as the vendor sent it.
    Opaque(Json),
}

impl Part {
    /// Plain words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), signature: None })
    }
}

/// The plain words among parts, in one.
pub fn texts(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let mut all = String::new();
    for text in words {
        if !all.is_empty() {
            all.push('\n');
        }
        all.push_str(text);
    }
    all
}

/// Words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The words.
    pub text: String,
    /// Gemini signs any kind of part; the signature must come back with it.
    pub signature: Option<String>,
}

/// A picture or a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// What kind of content it is: `image/png`.
    pub mime: String,
    /// Where it is.
    pub source: MediaSource,
}

/// Where a picture or a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// Here, in base64.
    Base64(String),
    /// There.
    Url(String),
}

/// What the model thought. It goes back to the vendor exactly as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thinking {
    /// What may be read of it.
    pub text: String,
    /// What the vendor recognises it by: a signature, or the thoughts themselves, encrypted.
    pub signature: Option<String>,
    /// The vendor's name for it.
    pub id: Option<String>,
    /// Nothing of it may be read (Anthropic's `redacted_thinking`).
    pub redacted: bool,
}

/// What a model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes.
    pub input: ToolInput,
}

/// What a tool takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolInput {
    /// An object that conforms to this JSON Schema.
    Schema(Json),
    /// Any text.
    Text,
    /// The vendor knows: a tool that it runs itself.
    Vendor(Json),
}

/// The model wants a tool to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// What the result will refer to.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Codex keeps the tools of each MCP server apart.
    pub namespace: Option<String>,
    /// With what.
    pub arguments: Arguments,
    /// Gemini signs calls; the signature must come back with them.
    pub signature: Option<String>,
}

/// What a tool is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arguments {
    /// An object.
    Json(Json),
    /// Free text: what a tool without a schema takes, or what was meant as JSON and is none.
    Text(String),
}

impl Arguments {
    /// JSON if it is, text otherwise.
    pub fn read(text: String) -> Self {
        if text.is_empty() {
            return Self::Json(Json::empty_object());
        }
        match Json::parse(text) {
            Ok(json) => Self::Json(json),
            Err(text) => Self::Text(text),
        }
    }

    /// As text, whatever they are.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Json(json) => json.as_str(),
            Self::Text(text) => text,
        }
    }
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Which call.
    pub id: String,
    /// Which tool, where the vendor wants it again.
    pub name: Option<String>,
    /// What it gave back.
    pub parts: Vec<Part>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

impl ToolResult {
    /// What the tool said, in one text.
    pub fn text(&self) -> String {
        texts(&self.parts)
    }
}

/// What a model answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatResponse {
    /// The vendor's name for it.
    pub id: String,
    /// Which model answered.
    pub model: String,
    /// What it says.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it cost.
    pub usage: Usage,
}

impl ChatResponse {
    /// What it says, in one text.
    pub fn text(&self) -> String {
        texts(&self.parts)
    }

    /// What it wants done.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// It has said what it wanted.
    Stop,
    /// It waits for tools.
    ToolCalls,
    /// It may say no more.
    Length,
    /// It came upon one of the request's stop texts.
    StopText,
    /// It must not say it.
    Refused,
    /// In the vendor's words.
    Other(String),
}

/// Tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Read, without what came from a cache.
    pub input: u64,
    /// Written, with what was thought.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Read, and kept in a cache.
    pub cache_write: u64,
    /// Of the output: thought.
    pub thinking: u64,
}

impl Usage {
    /// As every run counts them; none if the vendor told nothing, which is not zero.
    pub fn tokens(self) -> Option<Tokens> {
        let input = self.input.saturating_add(self.cache_read).saturating_add(self.cache_write);
        (self != Self::default()).then_some(Tokens { input, cached: self.cache_read, output: self.output })
    }
}

/// A piece of an answer that is being made.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// It begins.
    Started {
        /// The vendor's name for it.
        id: String,
        /// Which model answers.
        model: String,
    },
    /// A part begins. All later pieces name it by its index.
    PartStarted {
        /// Its place in the answer.
        index: usize,
        /// What is known of it: a tool call has its name here, and no arguments yet.
        part: Part,
    },
    /// More of a part's text: words, thoughts, or a call's arguments.
    More {
        /// Which part.
        index: usize,
        /// The piece.
        text: String,
    },
    /// The signature of a part.
    Signature {
        /// Which part.
        index: usize,
        /// The piece.
        text: String,
    },
    /// What it cost so far. The last one counts.
    Usage(Usage),
    /// It is over.
    Finished(FinishReason),
}

/// A JSON text that was checked to be one, and is kept letter by letter.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The text again, if it is no JSON.
    pub fn parse(text: String) -> Result<Self, String> {
        // `from_string` would take the text with it when it fails.
        serde_json::from_str(&text).map_err(|_| text)
    }

    /// Anything that can be written as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        // Two letters that are JSON; `null` would be the answer otherwise.
        RawValue::from_string("{}".to_owned()).map_or_else(|_| Self(RawValue::NULL.to_owned()), Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// As a type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({})", self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}
