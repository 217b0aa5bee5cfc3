//! From a turn to an answer in the vendor's form.

use std::collections::BTreeMap;

use hyper::StatusCode;
use rehearsal_llm::chat::{ChatResponse, FinishReason, Part, Thinking, ToolCall, Usage};
use rehearsal_llm::wire::Dialect;

use crate::action::{Offered, call_for};
use crate::body::{Body, Frames};
use crate::client::Request;
use crate::ids::Seeded;
use crate::pace::{Framed, steps};
use crate::play::Answer;
use crate::route::Framing;
use crate::script::{Fault, Pace, Turn};
use crate::template::Values;

/// Texts come in pieces of about this size: a few words, as models send them.
const PIECE: usize = 24;

/// What a request costs where the script does not say. Small: agents that think that they ran full summarise.
const INPUT_TOKENS: u64 = 100;

/// What a turn says to a request, or why it cannot.
pub(crate) fn response(
    turn: &Turn,
    request: &Request,
    vars: &BTreeMap<String, String>,
    captured: &BTreeMap<String, String>,
    seeded: &mut Seeded,
) -> Result<ChatResponse, String> {
    let built_in = |name: &str| match name {
        "cwd" => request.clients.working_directory(&request.chat),
        "model" => Some(request.chat.model.clone()),
        "lane" => Some(request.lane.clone()),
        "prompt" => Some(request.chat.last_user_text()),
        _ => None,
    };
    let values = Values { vars, captured, built_in: &built_in };
    let id = seeded.id(if request.dialect == Dialect::OpenAiResponses { "resp" } else { "msg" });
    let mut parts = Vec::new();
    if let Some(thought) = &turn.think {
        let text = thought.render(&values);
        parts.push(Part::Thinking(Thinking {
            text,
            signature: Some(seeded.id("sig")),
            ..Thinking::default()
        }));
    }
    if let Some(words) = &turn.say {
        parts.push(Part::text(words.render(&values)));
    }
    let prefix = if request.dialect == Dialect::Anthropic { "toolu" } else { "call" };
    let offered = Offered { chat: &request.chat, clients: &request.clients };
    for action in &turn.actions {
        let call = call_for(action, offered, &values)?;
        parts.push(Part::ToolCall(ToolCall {
            id: seeded.id(prefix),
            name: call.name,
            namespace: call.namespace,
            arguments: call.arguments,
            signature: None,
        }));
    }
    let natural = if turn.actions.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let usage = turn.usage.unwrap_or_else(|| Usage {
        input: INPUT_TOKENS,
        output: tokens(&parts),
        ..Usage::default()
    });
    let finish = turn.finish.clone().unwrap_or(natural);
    Ok(ChatResponse { id, model: request.chat.model.clone(), parts, finish, usage })
}

/// About four bytes are a token.
fn tokens(parts: &[Part]) -> u64 {
    let bytes: usize = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.text.len(),
            Part::Thinking(thinking) => thinking.text.len(),
            Part::ToolCall(call) => call.name.len() + call.arguments.as_str().len(),
            Part::Media(_) | Part::ToolResult(_) | Part::Opaque(_) => 0,
        })
        .sum();
    (bytes as u64).div_ceil(4)
}

/// An answer as the client wants it: in one piece or in frames.
pub(crate) fn answer(
    request: &Request,
    response: &ChatResponse,
    pace: Pace,
    fault: Option<Fault>,
    seeded: Seeded,
) -> Answer {
    let Some(framing) = request.framing else {
        let bytes = request.dialect.write_response(response);
        if pace == Pace::Instant && fault.is_none() {
            return Answer::json(StatusCode::OK, bytes);
        }
        let frames = Frames::new(steps(Framed::whole(bytes), pace, fault, seeded));
        return Answer::of_type(StatusCode::OK, "application/json", Body::Frames(frames));
    };
    let (bytes, ends) = request.dialect.write_stream(response, PIECE).finish();
    let framed = Framed { bytes: bytes.into(), ends };
    let (framed, kind) = match framing {
        Framing::Events => (framed, "text/event-stream"),
        Framing::List => (as_list(&framed), "application/json"),
    };
    let body = Body::Frames(Frames::new(steps(framed, pace, fault, seeded)));
    Answer::of_type(StatusCode::OK, kind, body).with("cache-control", "no-cache")
}

/// Events without their `data: `, as elements of a list.
fn as_list(events: &Framed) -> Framed {
    let (mut bytes, mut ends) =
        (Vec::with_capacity(events.bytes.len()), Vec::with_capacity(events.ends.len()));
    let mut start = 0;
    for (index, end) in events.ends.iter().enumerate() {
        let event = &events.bytes[start..*end];
        let data = event.strip_prefix(b"data: ").unwrap_or(event);
        bytes.extend_from_slice(if index == 0 { b"[" } else { b",\r\n" });
        bytes.extend_from_slice(data.trim_ascii_end());
        if index + 1 == events.ends.len() {
            bytes.push(b']');
        }
        ends.push(bytes.len());
        start = *end;
    }
    Framed { bytes: bytes.into(), ends }
}

/// An error as the vendor tells it.
pub(crate) fn error(dialect: Dialect, status: StatusCode, message: &str) -> Answer {
    Answer::json(status, dialect.write_error(status.as_u16(), message))
}

/// An error that is not to be tried again: the agent would get nothing else.
pub(crate) fn refusal(dialect: Dialect, message: &str) -> Answer {
    error(dialect, StatusCode::BAD_REQUEST, message).with("x-should-retry", "false")
}
