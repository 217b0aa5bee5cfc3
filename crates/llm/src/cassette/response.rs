//! Answers: how they are kept, and how they are told apart from broken ones.

use std::borrow::Cow;

use super::delta;
use super::exchange::{Ended, Headers};
use super::normalise::{Names, Normaliser, Restorer};

/// An answer as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers that were kept.
    pub headers: Headers,
    /// Milliseconds from the request to the first byte.
    pub at_ms: u64,
    /// Whether all of it came.
    pub ended: Ended,
    /// What it says.
    pub body: Body,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// In one piece.
    Whole(String),
    /// A stream of events.
    Frames(Vec<Frame>),
}

/// One event of a stream, with the bytes that separate it from the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Milliseconds from the request on.
    pub at_ms: u64,
    /// `event: …`, `data: …`, an empty line.
    pub text: String,
}

impl Frame {
    /// Its event and data, if it consists of just these, in the plainest form.
    pub fn parts(&self) -> Option<(Option<&str>, &str)> {
        let body = self.text.strip_suffix("\n\n")?;
        let (event, data) = match body.strip_prefix("event: ") {
            Some(rest) => rest.split_once('\n').map(|(event, rest)| (Some(event), rest))?,
            None => (None, body),
        };
        let data = data.strip_prefix("data: ")?;
        (!data.contains(['\n', '\r']) && !event.is_some_and(|event| event.contains('\r')))
            .then_some((event, data))
    }

    pub(crate) fn of_parts(at_ms: u64, event: Option<&str>, data: &str) -> Self {
        let event = event.map(|event| format!("event: {event}\n")).unwrap_or_default();
        Self { at_ms, text: format!("{event}data: {data}\n\n") }
    }
}

/// The bytes of an answer as they came.
#[derive(Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    /// From which byte on what came when.
    arrivals: Vec<(usize, u64)>,
}

impl Bytes {
    pub(crate) fn push(&mut self, bytes: &[u8], at_ms: u64) {
        self.arrivals.push((self.bytes.len(), at_ms));
        self.bytes.extend_from_slice(bytes);
    }

    /// When the byte before `end` came.
    fn at(&self, end: usize) -> u64 {
        let next = self.arrivals.partition_point(|(from, _)| *from < end);
        next.checked_sub(1).and_then(|index| self.arrivals.get(index)).map_or(0, |(_, at)| *at)
    }

    /// The whole frames, and whether bytes are left that belong to none.
    pub(crate) fn frames<'a>(&self, text: &'a str) -> (Vec<Frame>, &'a str) {
        let mut frames = Vec::new();
        let (mut from, mut line) = (0, 0);
        while let Some(length) = text[line..].find('\n') {
            let end = line + length + 1;
            if matches!(&text[line..end], "\n" | "\r\n") && end > from {
                frames.push(Frame { at_ms: self.at(end), text: text[from..end].to_owned() });
                from = end;
            }
            line = end;
        }
        (frames, &text[from..])
    }
}

/// Whether a stream said itself that it is over. None if this vendor's way is not known.
pub(crate) fn said_its_end(path: &str, frames: &[Frame]) -> Option<bool> {
    let last = |wanted: &[&str]| {
        let tail = frames.iter().rev().take(3);
        tail.filter_map(Frame::parts).any(|(event, data)| {
            wanted.iter().any(|name| {
                event == Some(name)
                    || data.contains(&format!("\"type\":\"{name}\""))
                    || data.contains(&format!("\"type\": \"{name}\""))
            })
        })
    };
    if path.ends_with("/messages") {
        Some(last(&["message_stop", "error"]))
    } else if path.ends_with("/responses") {
        Some(last(&["response.completed", "response.failed", "response.incomplete", "error"]))
    } else if path.ends_with("/chat/completions") {
        Some(frames.iter().rev().take(3).any(|frame| frame.text.trim() == "data: [DONE]"))
    } else if path.ends_with(":streamGenerateContent") {
        Some(frames.iter().rev().take(3).any(|frame| frame.text.contains("\"finishReason\"")))
    } else {
        None
    }
}

impl Response {
    /// Replaces places and secrets, also where a stream cuts them in pieces.
    pub(crate) fn normalised(mut self, normaliser: &Normaliser, names: &mut Names) -> Self {
        let replace = |names: &mut Names, text: &mut String| {
            if let Cow::Owned(changed) = normaliser.answer(names, text) {
                *text = changed;
            }
        };
        for value in self.headers.values_mut() {
            replace(names, value);
        }
        match &mut self.body {
            Body::Whole(text) => replace(names, text),
            Body::Frames(frames) => {
                delta::join(normaliser, names, frames);
                for frame in frames {
                    replace(names, &mut frame.text);
                }
            }
        }
        self
    }

    pub(crate) fn restored(&self, restorer: &Restorer) -> Self {
        let restore = |text: &str| restorer.restore(text).into_owned();
        let body = match &self.body {
            Body::Whole(text) => Body::Whole(restore(text)),
            Body::Frames(frames) => Body::Frames(
                frames.iter().map(|frame| Frame { at_ms: frame.at_ms, text: restore(&frame.text) }).collect(),
            ),
        };
        Self { body, headers: self.headers.clone(), ..*self }
    }
}
