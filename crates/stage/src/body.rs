//! What an answer consists of, as it goes out.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use tokio::time::Sleep;

/// The body of an answer.
pub enum Body {
    /// All at once.
    Whole(Bytes),
    /// Step by step, as it is read.
    Frames(Frames),
    /// From elsewhere: what a proxy passes on. An error cuts the connection.
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, Cut>> + Send>>),
}

/// The connection ends in the middle of an answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer is cut here")]
pub struct Cut;

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Bytes go out.
    Send(Bytes),
    /// Time passes.
    Wait(Duration),
    /// The connection ends.
    Cut,
    /// Nothing, until the client gives up.
    Hang,
}

/// Steps, made as they are needed: a client that does not read costs nothing but what is on its way.
pub struct Frames {
    steps: Box<dyn Iterator<Item = Step> + Send>,
    now: Now,
}

enum Now {
    Next,
    Waiting(Pin<Box<Sleep>>),
    /// What was sent before must be out before the connection ends: the server flushes when a body is not ready.
    Cutting {
        yields: u8,
    },
    Hanging,
    Over,
}

/// How often a body says that it is not ready before it cuts.
const YIELDS: u8 = 3;

impl Frames {
    /// From steps.
    pub fn new(steps: impl Iterator<Item = Step> + Send + 'static) -> Self {
        Self { steps: Box::new(steps), now: Now::Next }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        loop {
            match &mut self.now {
                Now::Over => return Poll::Ready(None),
                Now::Hanging => return Poll::Pending,
                Now::Cutting { yields: 0 } => {
                    self.now = Now::Over;
                    return Poll::Ready(Some(Err(Cut)));
                }
                Now::Cutting { yields } => {
                    *yields -= 1;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Now::Waiting(sleep) => match sleep.as_mut().poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => self.now = Now::Next,
                },
                Now::Next => match self.steps.next() {
                    Some(Step::Send(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                    Some(Step::Wait(time)) => {
                        self.now = Now::Waiting(Box::pin(tokio::time::sleep(time)));
                    }
                    Some(Step::Cut) => self.now = Now::Cutting { yields: YIELDS },
                    Some(Step::Hang) => self.now = Now::Hanging,
                    None => self.now = Now::Over,
                },
            }
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Self::Frames(frames) => frames.poll(context),
            Self::Stream(stream) => stream.as_mut().poll_next(context),
        };
        next.map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Frames(_) | Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Frames(_) => "Frames",
            Self::Stream(_) => "Stream",
        })
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frames")
    }
}
