//! An answer while it comes over HTTP.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep};

use super::attempt::causes;
use super::breaker::Pass;
use super::endpoint::Endpoint;
use super::policy::Limits;
use crate::chat::Delta;
use crate::key::{ApiKey, hidden};
use crate::model::{ModelError, Timeout};
use crate::pieces::Pieces;

/// The pieces of an answer, as they come.
pub(super) struct Live<S> {
    body: Pin<Box<S>>,
    pieces: Pieces,
    key: Option<ApiKey>,
    limits: Limits,
    idle: Pin<Box<Sleep>>,
    total: Pin<Box<Sleep>>,
    bytes: usize,
    /// What went wrong; told after the pieces that were whole before.
    failed: Option<ModelError>,
    is_done: bool,
    pass: Option<Pass>,
}

impl<S, B> Live<S>
where
    S: Stream<Item = reqwest::Result<B>>,
    B: AsRef<[u8]>,
{
    pub(super) fn new(body: S, endpoint: &Endpoint, limits: Limits, pass: Pass) -> Self {
        Self {
            body: Box::pin(body),
            pieces: Pieces::new(endpoint.dialect(), endpoint.key().cloned()),
            key: endpoint.key().cloned(),
            limits,
            idle: Box::pin(sleep(limits.idle)),
            total: Box::pin(sleep(limits.total)),
            bytes: 0,
            failed: None,
            is_done: false,
            pass: Some(pass),
        }
    }

    /// Waits for the first piece.
    pub(super) async fn begin(&mut self) -> Result<(), ModelError> {
        if let Some(first) = poll_fn(|context| self.poll_piece(context)).await {
            self.pieces.put_back(first?);
        }
        Ok(())
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        loop {
            if let Some(delta) = self.pieces.next() {
                if matches!(delta, Delta::Finished(_)) {
                    self.settle(None);
                }
                return Poll::Ready(Some(Ok(delta)));
            }
            if let Some(error) = self.failed.take() {
                self.finish(Some(&error));
                return Poll::Ready(Some(Err(error)));
            }
            if self.is_done {
                return Poll::Ready(None);
            }
            if self.pieces.is_over() {
                // The connection can be used again if its end has come as well; nobody waits for it.
                let _ = self.body.as_mut().poll_next(context);
                self.finish(None);
                return Poll::Ready(None);
            }
            self.failed = ready!(self.poll_bytes(context)).err();
        }
    }

    /// Takes the next bytes, or finds out that there are none.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        match self.body.as_mut().poll_next(context) {
            Poll::Ready(Some(Ok(bytes))) => Poll::Ready(self.take(bytes.as_ref())),
            Poll::Ready(Some(Err(error))) => {
                let how = causes(error);
                Poll::Ready(self.pieces.end(&hidden(self.key.as_ref(), &how)))
            }
            Poll::Ready(None) => Poll::Ready(self.pieces.end("the stream ended before its end")),
            Poll::Pending => {
                let limit = if self.total.as_mut().poll(context).is_ready() {
                    Timeout::Total
                } else {
                    ready!(self.idle.as_mut().poll(context));
                    Timeout::Idle
                };
                // Who has said all and does not hang up is not late.
                let is_whole = self.pieces.end("").is_ok();
                Poll::Ready(if is_whole { Ok(()) } else { Err(self.limits.expired(limit)) })
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.idle.as_mut().reset(Instant::now() + self.limits.idle);
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.limits.answer_bytes {
            let message = format!("the answer is longer than {} bytes", self.limits.answer_bytes);
            return Err(ModelError::Malformed { message });
        }
        self.pieces.push(bytes)
    }

    fn finish(&mut self, error: Option<&ModelError>) {
        self.is_done = true;
        self.settle(error);
    }

    fn settle(&mut self, error: Option<&ModelError>) {
        if let Some(pass) = self.pass.take() {
            pass.settle(error);
        }
    }
}

impl<S, B> Stream for Live<S>
where
    S: Stream<Item = reqwest::Result<B>>,
    B: AsRef<[u8]>,
{
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_piece(context)
    }
}
