//! Keeps what a model is asked and answers.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use futures_core::Stream;
use rehearsal_core::{Clock, Timestamp};

use crate::assembly::Assembly;
use crate::cassette::{Recorder, Take, WriteError, Written};
use crate::chat::{ChatRequest, ChatResponse, Delta};
use crate::model::{ChatModel, ChatStream, ModelError};
use crate::taped::{Question, Taped, TapedBody};
use crate::wire::Dialect;

/// Passes everything on to a model, and records it in a vendor's format.
///
/// **Invariant:** what is on the cassette comes back as it was given. What would not (an answer with something that the format cannot
/// say, a failure that has no form there) makes [`RecordingModel::finish`] fail.
pub struct RecordingModel<M> {
    model: M,
    tape: Tape,
}

/// Why there is no cassette.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// An exchange cannot be played back.
    #[error("request {number} cannot be played back: {why}")]
    Lost {
        /// The number of the request.
        number: u32,
        /// Why.
        why: String,
    },
    /// A stream is still there that may go on.
    #[error("an answer is still being recorded")]
    Open,
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

#[derive(Clone)]
struct Tape {
    dialect: Dialect,
    recorder: Arc<Recorder>,
    first_failure: Arc<Mutex<Option<RecordingError>>>,
    clock: Arc<dyn Clock>,
}

impl<M: ChatModel> RecordingModel<M> {
    /// Records a model in this vendor's format.
    pub fn new(model: M, dialect: Dialect, recorder: Recorder, clock: Arc<dyn Clock>) -> Self {
        let tape = Tape { dialect, recorder: Arc::new(recorder), first_failure: Arc::default(), clock };
        Self { model, tape }
    }

    /// Ends the cassette and gives it its name.
    pub fn finish(self) -> Result<Written, RecordingError> {
        let failed = self.tape.first_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(failed) = failed {
            return Err(failed);
        }
        let recorder = Arc::into_inner(self.tape.recorder).ok_or(RecordingError::Open)?;
        Ok(recorder.finish()?)
    }
}

impl<M: std::fmt::Debug> std::fmt::Debug for RecordingModel<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingModel").field("model", &self.model).finish_non_exhaustive()
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for RecordingModel<M> {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        let exchange = self.tape.ask(request, false);
        let answered = self.model.chat(request).await;
        exchange.keep(&answered);
        answered
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        let exchange = self.tape.ask(request, true);
        match self.model.chat_stream(request).await {
            Ok(stream) => Ok(Box::pin(Overheard {
                stream,
                exchange: Some(exchange),
                assembly: Assembly::default(),
                is_finished: false,
            })),
            Err(error) => {
                exchange.keep(&Err(error.clone()));
                Err(error)
            }
        }
    }
}

impl Tape {
    fn ask(&self, request: &ChatRequest, stream: bool) -> Exchange {
        let asked_at = self.clock.now();
        let take = self.recorder.ask(&Question::new(self.dialect, request, stream).asked());
        Exchange { tape: self.clone(), take, stream, asked_at }
    }

    fn failed(&self, failure: RecordingError) {
        let mut first = self.first_failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(failure);
    }
}

/// One request and its answer.
struct Exchange {
    tape: Tape,
    take: Take,
    stream: bool,
    asked_at: Timestamp,
}

impl Exchange {
    fn keep(mut self, answered: &Result<ChatResponse, ModelError>) {
        let (dialect, now) = (self.tape.dialect, self.tape.clock.now());
        let number = self.take.number();
        let lost = |why| RecordingError::Lost { number, why };
        let Some(taped) = Taped::write(dialect, answered, self.stream, now) else {
            let why = answered.as_ref().err().map(ToString::to_string).unwrap_or_default();
            return self.tape.failed(lost(why));
        };
        if let Err(why) = comes_back(&taped, answered, dialect, now) {
            return self.tape.failed(lost(why));
        }
        let after = now.since(self.asked_at);
        let headers: Vec<(String, String)> = taped.headers.into_iter().collect();
        self.take.answered(taped.status, &headers, after);
        let (TapedBody::Whole(body) | TapedBody::Stream(body)) = &taped.body;
        self.take.bytes(body, after);
        if let Err(error) = self.tape.recorder.keep(self.take, taped.ended) {
            self.tape.failed(error.into());
        }
    }
}

/// Whether a player would give what was given now.
fn comes_back(
    taped: &Taped,
    answered: &Result<ChatResponse, ModelError>,
    dialect: Dialect,
    now: Timestamp,
) -> Result<(), String> {
    match (answered, taped.read(dialect, now)) {
        (Ok(given), Ok(again)) if *given == again => Ok(()),
        (Err(given), Err(again)) if given.outcome().name() == again.outcome().name() => Ok(()),
        (Ok(_), Ok(_)) => Err("the format cannot say all that the answer says".to_owned()),
        (_, Err(error)) => Err(error.to_string()),
        (Err(error), Ok(_)) => Err(error.to_string()),
    }
}

/// A stream that is listened to.
struct Overheard {
    stream: ChatStream,
    exchange: Option<Exchange>,
    assembly: Assembly,
    is_finished: bool,
}

impl Overheard {
    fn hear(&mut self, delta: &Delta) {
        self.is_finished |= matches!(delta, Delta::Finished(_));
        if let Err(error) = self.assembly.push(delta.clone()) {
            self.close(Some(error.into()));
        }
    }

    fn close(&mut self, failed: Option<ModelError>) {
        let Some(exchange) = self.exchange.take() else { return };
        let assembly = std::mem::take(&mut self.assembly);
        let answered = match failed {
            None => assembly.finish().map_err(ModelError::from),
            Some(cut @ ModelError::Cut { .. }) => Err(cut),
            // In the middle of an answer no failure has the form that it has at its beginning.
            Some(error) => Err(ModelError::Malformed { message: error.to_string() }),
        };
        exchange.keep(&answered);
    }
}

impl Stream for Overheard {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.stream.as_mut().poll_next(context));
        match &next {
            Some(Ok(delta)) => self.hear(delta),
            Some(Err(error)) => self.close(Some(error.clone())),
            None => self.close(None),
        }
        Poll::Ready(next)
    }
}

/// Who has heard the end need not wait for the silence after it. Who hangs up before leaves an answer that has not ended.
impl Drop for Overheard {
    fn drop(&mut self) {
        if self.is_finished {
            self.close(None);
        }
    }
}
