//! An answer that is there, given as if it were being made.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::chat::{Arguments, ChatResponse, Delta, Json, Part, Text, Thinking, ToolCall};
use crate::model::ModelError;
use crate::wire::pieces;

/// A stream of what is there already.
pub(crate) struct Told<I>(I);

impl<I: Iterator<Item = Result<Delta, ModelError>>> Told<I> {
    pub(crate) fn new(deltas: I) -> Self {
        Self(deltas)
    }
}

impl<I: Iterator<Item = Result<Delta, ModelError>> + Unpin> Stream for Told<I> {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

/// The pieces of an answer, its texts cut after about so many bytes.
pub(crate) fn deltas_of(response: &ChatResponse, piece: usize) -> Vec<Delta> {
    let (id, model) = (response.id.clone(), response.model.clone());
    let mut deltas = vec![Delta::Started { id, model }];
    for (index, part) in response.parts.iter().enumerate() {
        let (empty, text, signature) = opened(part);
        deltas.push(Delta::PartStarted { index, part: empty });
        deltas.extend(pieces(text, piece).map(|text| Delta::More { index, text: text.to_owned() }));
        deltas.extend(signature.map(|text| Delta::Signature { index, text: text.clone() }));
    }
    deltas.push(Delta::Usage(response.usage));
    deltas.push(Delta::Finished(response.finish.clone()));
    deltas
}

/// A part as it begins, what follows of its text, and its signature.
fn opened(part: &Part) -> (Part, &str, Option<&String>) {
    match part {
        Part::Text(Text { text, signature }) => (Part::text(""), text, signature.as_ref()),
        Part::Thinking(thinking) => {
            let empty = Thinking { text: String::new(), signature: None, ..thinking.clone() };
            (Part::Thinking(empty), &thinking.text, thinking.signature.as_ref())
        }
        Part::ToolCall(call) => {
            let arguments = match &call.arguments {
                Arguments::Json(_) => Arguments::Json(Json::empty_object()),
                Arguments::Text(_) => Arguments::Text(String::new()),
            };
            let empty = ToolCall { arguments, signature: None, ..call.clone() };
            (Part::ToolCall(empty), call.arguments.as_str(), call.signature.as_ref())
        }
        Part::Media(_) | Part::ToolResult(_) | Part::Opaque(_) => (part.clone(), "", None),
    }
}
