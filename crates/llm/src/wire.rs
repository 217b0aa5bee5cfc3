//! The vendors' formats, in both directions: a client writes requests and reads answers, a server that plays the
//! vendor reads requests and writes answers.
//!
//! What is not understood is passed over when it says how to answer, and kept when it is a part of the conversation.

mod anthropic;
mod content;
mod error;
mod gemini;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod tests;

pub(crate) use content::pieces;
pub use error::VendorError;

use crate::chat::{ChatRequest, ChatResponse, Delta};
use crate::sse;

/// A vendor's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions, which many others speak too.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Google's `generateContent`.
    Gemini,
}

/// A request that a server received.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// What is asked. Gemini names the model in the path and not here.
    pub chat: ChatRequest,
    /// Whether the answer is wanted piece by piece. Gemini says so in the path and not here.
    pub stream: bool,
}

/// Something that came is not in the vendor's format.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Not even near.
    #[error("{what} cannot be read: {source}")]
    Malformed {
        /// What was read.
        what: &'static str,
        /// Where it went wrong.
        source: serde_json::Error,
    },
    /// The vendor broke off.
    #[error("the vendor broke off: {message}")]
    BrokenOff {
        /// In the vendor's words: `overloaded_error`.
        kind: String,
        /// In the vendor's words.
        message: String,
    },
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini];

    /// What people write before a model's name, as in `anthropic:claude-x`. `responses` is OpenAI by its other interface.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// The format and the name of `VENDOR:NAME`. What is before a colon and is no vendor belongs to the name: models are called
    /// `llama:70b` too.
    pub fn of_model(written: &str) -> Option<(Self, &str)> {
        let (prefix, name) = written.split_once(':')?;
        let dialect = Self::ALL.into_iter().find(|dialect| dialect.prefix() == prefix)?;
        Some((dialect, name))
    }

    /// Where a request goes, below the vendor's base address.
    pub fn path(self, model: &str, stream: bool) -> String {
        match self {
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::OpenAiChat => "/v1/chat/completions".to_owned(),
            Self::OpenAiResponses => "/v1/responses".to_owned(),
            Self::Gemini if stream => {
                format!("/v1beta/models/{}:streamGenerateContent?alt=sse", content::path_segment(model))
            }
            Self::Gemini => format!("/v1beta/models/{}:generateContent", content::path_segment(model)),
        }
    }

    /// The headers of a request that change what the vendor answers.
    pub fn request_headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Anthropic => &[("content-type", "application/json"), ("anthropic-version", "2023-06-01")],
            Self::OpenAiChat | Self::OpenAiResponses | Self::Gemini => {
                &[("content-type", "application/json")]
            }
        }
    }

    /// Reads a request's body.
    pub fn read_request(self, body: &[u8]) -> Result<Received, WireError> {
        match self {
            Self::Anthropic => anthropic::read_request(body),
            Self::OpenAiChat => openai_chat::read_request(body),
            Self::OpenAiResponses => openai_responses::read_request(body),
            Self::Gemini => gemini::read_request(body),
        }
        .map_err(|source| WireError::Malformed { what: "the request", source })
    }

    /// Writes a request's body.
    pub fn write_request(self, request: &ChatRequest, stream: bool) -> Vec<u8> {
        match self {
            Self::Anthropic => anthropic::write_request(request, stream),
            Self::OpenAiChat => openai_chat::write_request(request, stream),
            Self::OpenAiResponses => openai_responses::write_request(request, stream),
            Self::Gemini => gemini::write_request(request),
        }
    }

    /// Reads an answer that came in one piece.
    pub fn read_response(self, body: &[u8]) -> Result<ChatResponse, WireError> {
        match self {
            Self::Anthropic => anthropic::answer::read_response(body),
            Self::OpenAiChat => openai_chat::answer::read_response(body),
            Self::OpenAiResponses => openai_responses::answer::read_response(body),
            Self::Gemini => gemini::answer::read_response(body),
        }
        .map_err(|source| WireError::Malformed { what: "the answer", source })
    }

    /// Writes an answer in one piece.
    pub fn write_response(self, response: &ChatResponse) -> Vec<u8> {
        match self {
            Self::Anthropic => anthropic::answer::write_response(response),
            Self::OpenAiChat => openai_chat::answer::write_response(response),
            Self::OpenAiResponses => openai_responses::answer::write_response(response),
            Self::Gemini => gemini::answer::write_response(response),
        }
    }

    /// Writes an answer as events, its texts cut into pieces of about so many bytes.
    pub fn write_stream(self, response: &ChatResponse, piece: usize) -> sse::Encoder {
        match self {
            Self::Anthropic => anthropic::stream::write(response, piece),
            Self::OpenAiChat => openai_chat::stream::write(response, piece),
            Self::OpenAiResponses => openai_responses::stream::write(response, piece),
            Self::Gemini => gemini::answer::write_stream(response, piece),
        }
    }

    /// Reads an answer event by event.
    pub fn stream_reader(self) -> StreamReader {
        StreamReader(match self {
            Self::Anthropic => Reader::Anthropic(anthropic::stream::Reader::default()),
            Self::OpenAiChat => Reader::OpenAiChat(openai_chat::stream::Reader::default()),
            Self::OpenAiResponses => Reader::OpenAiResponses(openai_responses::stream::Reader::default()),
            Self::Gemini => Reader::Gemini(gemini::answer::Reader::default()),
        })
    }

    /// Writes an error as the vendor does.
    pub fn write_error(self, status: u16, message: &str) -> Vec<u8> {
        content::to_bytes(&match self {
            Self::Anthropic => anthropic::answer::error(status, message),
            Self::OpenAiChat | Self::OpenAiResponses => openai_chat::answer::error(status, message),
            Self::Gemini => gemini::answer::error(status, message),
        })
    }
}

/// Makes pieces of an answer out of events.
#[derive(Debug)]
pub struct StreamReader(Reader);

#[derive(Debug)]
enum Reader {
    Anthropic(anthropic::stream::Reader),
    OpenAiChat(openai_chat::stream::Reader),
    OpenAiResponses(openai_responses::stream::Reader),
    Gemini(gemini::answer::Reader),
}

impl StreamReader {
    /// Takes an event. A stream that ends without a [`Delta::Finished`] was cut; usage may follow it.
    pub fn push(&mut self, event: &sse::Event, mut each: impl FnMut(Delta)) -> Result<(), WireError> {
        let each: &mut dyn FnMut(Delta) = &mut each;
        match &mut self.0 {
            Reader::Anthropic(reader) => reader.push(event, each),
            Reader::OpenAiChat(reader) => reader.push(event, each),
            Reader::OpenAiResponses(reader) => reader.push(event, each),
            Reader::Gemini(reader) => reader.push(event, each),
        }
    }
}

fn malformed(source: serde_json::Error) -> WireError {
    WireError::Malformed { what: "an event", source }
}
