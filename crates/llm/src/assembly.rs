//! Makes a whole answer of its pieces.

use std::future::poll_fn;

use crate::chat::{Arguments, ChatResponse, Delta, FinishReason, Part, Usage};
use crate::model::{ChatStream, ModelError};

/// Waits for all pieces of an answer.
pub async fn whole(mut stream: ChatStream) -> Result<ChatResponse, ModelError> {
    let mut assembly = Assembly::default();
    while let Some(delta) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        assembly.push(delta?)?;
    }
    Ok(assembly.finish()?)
}

/// The pieces so far.
#[derive(Debug, Default)]
pub struct Assembly {
    id: String,
    model: String,
    /// Each with the arguments of its call so far, which are read when all of them are there.
    parts: Vec<(Part, String)>,
    finish: Option<FinishReason>,
    usage: Usage,
    size: usize,
}

/// More than any model says at once; what goes on past it is no answer but an attack on our memory.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Why pieces make no whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyError {
    /// A piece of a part that never began.
    #[error("a piece belongs to part {index}, which never began")]
    NoSuchPart {
        /// The part.
        index: usize,
    },
    /// A part began in the wrong place.
    #[error("part {index} began when part {expected} was expected")]
    OutOfOrder {
        /// The part.
        index: usize,
        /// The one that was due.
        expected: usize,
    },
    /// It does not end.
    #[error("the answer is longer than {MOST_BYTES} bytes")]
    TooLong,
    /// The last piece never came.
    #[error("the answer ended before its end")]
    Unfinished,
}

impl Assembly {
    /// Adds a piece.
    pub fn push(&mut self, delta: Delta) -> Result<(), AssemblyError> {
        match delta {
            Delta::Started { id, model } => {
                self.id = id;
                self.model = model;
            }
            Delta::PartStarted { index, part } => {
                if index != self.parts.len() {
                    return Err(AssemblyError::OutOfOrder { index, expected: self.parts.len() });
                }
                self.grow(size_of::<Part>())?;
                self.parts.push((part, String::new()));
            }
            Delta::More { index, text } => {
                self.grow(text.len())?;
                let (part, arguments) = self.part(index)?;
                match part {
                    Part::Text(part) => part.text.push_str(&text),
                    Part::Thinking(part) => part.text.push_str(&text),
                    Part::ToolCall(call) => match &mut call.arguments {
                        Arguments::Text(free) => free.push_str(&text),
                        Arguments::Json(_) => arguments.push_str(&text),
                    },
                    Part::Media(_) | Part::ToolResult(_) | Part::Opaque(_) => {}
                }
            }
            Delta::Signature { index, text } => {
                self.grow(text.len())?;
                let signature = match &mut self.part(index)?.0 {
                    Part::Text(part) => &mut part.signature,
                    Part::Thinking(part) => &mut part.signature,
                    Part::ToolCall(call) => &mut call.signature,
                    Part::Media(_) | Part::ToolResult(_) | Part::Opaque(_) => return Ok(()),
                };
                signature.get_or_insert_default().push_str(&text);
            }
            Delta::Usage(usage) => self.usage = usage,
            Delta::Finished(finish) => self.finish = Some(finish),
        }
        Ok(())
    }

    /// The whole, if it is one.
    pub fn finish(self) -> Result<ChatResponse, AssemblyError> {
        let finish = self.finish.ok_or(AssemblyError::Unfinished)?;
        let parts = self.parts.into_iter().map(settled).collect();
        Ok(ChatResponse { id: self.id, model: self.model, parts, finish, usage: self.usage })
    }

    fn part(&mut self, index: usize) -> Result<&mut (Part, String), AssemblyError> {
        self.parts.get_mut(index).ok_or(AssemblyError::NoSuchPart { index })
    }

    fn grow(&mut self, bytes: usize) -> Result<(), AssemblyError> {
        self.size = self.size.saturating_add(bytes);
        if self.size > MOST_BYTES { Err(AssemblyError::TooLong) } else { Ok(()) }
    }
}

fn settled((part, arguments): (Part, String)) -> Part {
    match part {
        Part::ToolCall(mut call) if !arguments.is_empty() => {
            call.arguments = Arguments::read(arguments);
            Part::ToolCall(call)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Json, ToolCall};

    #[test]
    fn an_answer_without_its_end_is_none() {
        let mut assembly = Assembly::default();
        assembly.push(Delta::PartStarted { index: 0, part: Part::text("so far") }).unwrap();
        assert_eq!(assembly.finish().unwrap_err().to_string(), "the answer ended before its end");
    }

    #[test]
    fn a_piece_of_nothing_is_refused() {
        let mut assembly = Assembly::default();
        let stray = Delta::More { index: 3, text: "?".into() };
        assert_eq!(
            assembly.push(stray).unwrap_err().to_string(),
            "a piece belongs to part 3, which never began"
        );
    }

    #[test]
    fn arguments_come_in_pieces_and_are_read_at_the_end() {
        let mut assembly = Assembly::default();
        let call = ToolCall {
            id: "1".into(),
            name: "Write".into(),
            namespace: None,
            arguments: Arguments::Json(Json::empty_object()),
            signature: None,
        };
        assembly.push(Delta::PartStarted { index: 0, part: Part::ToolCall(call) }).unwrap();
        for piece in ["{\"pa", "th\":1}"] {
            assembly.push(Delta::More { index: 0, text: piece.into() }).unwrap();
        }
        assembly.push(Delta::Finished(FinishReason::ToolCalls)).unwrap();
        let response = assembly.finish().unwrap();
        let json = Json::parse("{\"path\":1}".into()).unwrap();
        assert_eq!(response.tool_calls().next().unwrap().arguments, Arguments::Json(json));
    }
}
