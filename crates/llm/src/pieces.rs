//! From the bytes of a stream to the pieces of an answer.

use std::collections::VecDeque;

use crate::chat::Delta;
use crate::failure::{excerpt, of_wire};
use crate::key::ApiKey;
use crate::model::ModelError;
use crate::sse::Decoder;
use crate::wire::{Dialect, StreamReader};

/// Takes bytes as they come, and gives the pieces that are whole.
#[derive(Debug)]
pub(crate) struct Pieces {
    dialect: Dialect,
    key: Option<ApiKey>,
    decoder: Decoder,
    reader: StreamReader,
    ready: VecDeque<Delta>,
    is_finished: bool,
    is_over: bool,
}

/// The last event of OpenAI's Chat Completions.
const DONE: &str = "[DONE]";

impl Pieces {
    pub(crate) fn new(dialect: Dialect, key: Option<ApiKey>) -> Self {
        Self {
            dialect,
            key,
            decoder: Decoder::default(),
            reader: dialect.stream_reader(),
            ready: VecDeque::new(),
            is_finished: false,
            is_over: false,
        }
    }

    /// Takes bytes. What was whole before an error is there nevertheless.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let Self { dialect, key, decoder, reader, ready, is_finished, is_over } = self;
        let mut failed = None;
        let decoded = decoder.push(bytes, |event| {
            if failed.is_some() || *is_over {
                return;
            }
            let read = reader.push(&event, |delta| {
                *is_finished |= matches!(delta, Delta::Finished(_));
                ready.push_back(delta);
            });
            failed = read.err().map(|error| of_wire(error, key.as_ref()));
            *is_over = *is_finished && is_last(*dialect, &event.data);
        });
        if let Some(failed) = failed {
            return Err(failed);
        }
        decoded.map_err(|error| ModelError::Malformed { message: error.to_string() })
    }

    /// The next piece that is there.
    pub(crate) fn next(&mut self) -> Option<Delta> {
        self.ready.pop_front()
    }

    /// Gives a piece back: it comes next again.
    pub(crate) fn put_back(&mut self, delta: Delta) {
        self.ready.push_front(delta);
    }

    /// Whether nothing can follow any more, though the connection may be open.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The end of the bytes: the end of the answer only if the vendor said so.
    pub(crate) fn end(&mut self, how: &str) -> Result<(), ModelError> {
        self.is_over = true;
        if self.is_finished { Ok(()) } else { Err(ModelError::Cut { message: excerpt(how, 1000) }) }
    }
}

/// Whether an event is the last one of an answer that is finished. Google's ends with the connection.
fn is_last(dialect: Dialect, data: &str) -> bool {
    match dialect {
        Dialect::Anthropic | Dialect::OpenAiResponses => true,
        Dialect::OpenAiChat => data.trim() == DONE,
        Dialect::Gemini => false,
    }
}
