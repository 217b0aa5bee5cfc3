//! Between a cassette and a model: requests and answers as they would be over HTTP, so that what was recorded in process can
//! be played over HTTP and the other way round.

use std::collections::BTreeMap;

use rehearsal_core::Timestamp;

use crate::assembly::Assembly;
use crate::cassette::{Asked, Ended, PlayedBody};
use crate::chat::{ChatRequest, ChatResponse, Delta};
use crate::deltas::deltas_of;
use crate::failure::{Refusal, of_wire};
use crate::model::ModelError;
use crate::pieces::Pieces;
use crate::wire::Dialect;

/// A request as a client of ours sends it, without its key.
#[derive(Debug)]
pub(crate) struct Question {
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Question {
    pub(crate) fn new(dialect: Dialect, request: &ChatRequest, stream: bool) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            target: dialect.path(&request.model, stream),
            headers: dialect.request_headers().iter().map(owned).collect(),
            body: dialect.write_request(request, stream),
        }
    }

    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked { method: "POST", target: &self.target, headers: &self.headers, body: &self.body }
    }
}

/// An answer as it came over HTTP, or as it is written so.
#[derive(Debug, Clone)]
pub(crate) struct Taped {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) ended: Ended,
    pub(crate) body: TapedBody,
}

#[derive(Debug, Clone)]
pub(crate) enum TapedBody {
    Whole(Vec<u8>),
    Stream(Vec<u8>),
}

impl From<PlayedBody> for TapedBody {
    fn from(body: PlayedBody) -> Self {
        match body {
            PlayedBody::Whole(text) => Self::Whole(text.into_bytes()),
            PlayedBody::Frames(frames) => {
                Self::Stream(frames.iter().flat_map(|frame| frame.text.bytes()).collect())
            }
        }
    }
}

/// How long the pieces of a recorded stream are. When each of them came is not kept, so their number says nothing.
const PIECE: usize = 256;

impl Taped {
    /// As the vendor would have sent it; none if this error has no form there.
    pub(crate) fn write(
        dialect: Dialect,
        answered: &Result<ChatResponse, ModelError>,
        stream: bool,
        now: Timestamp,
    ) -> Option<Self> {
        let whole = |status, body| (status, "application/json", Ended::Whole, TapedBody::Whole(body));
        let refused = |status, message: &String| Some(whole(status, dialect.write_error(status, message)));
        let (status, kind, ended, body) = match answered {
            Ok(response) if stream => {
                let (bytes, _) = dialect.write_stream(response, PIECE).finish();
                (200, "text/event-stream", Ended::Whole, TapedBody::Stream(bytes))
            }
            Ok(response) => whole(200, dialect.write_response(response)),
            Err(ModelError::Cut { .. }) if stream => {
                (200, "text/event-stream", Ended::Cut, TapedBody::Stream(Vec::new()))
            }
            Err(ModelError::Cut { .. }) => {
                (200, "application/json", Ended::Cut, TapedBody::Whole(Vec::new()))
            }
            Err(ModelError::Unauthorized { message }) => refused(401, message)?,
            Err(ModelError::QuotaExhausted { message, .. }) => refused(402, message)?,
            Err(ModelError::TooLong { message }) => refused(413, message)?,
            Err(ModelError::RateLimited { message, .. }) => refused(429, message)?,
            Err(ModelError::Overloaded { status, message, .. } | ModelError::Refused { status, message }) => {
                refused(*status, message)?
            }
            Err(
                ModelError::Unreachable { .. }
                | ModelError::TimedOut { .. }
                | ModelError::Malformed { .. }
                | ModelError::Resting { .. }
                | ModelError::NotScripted { .. },
            ) => return None,
        };
        let mut headers = BTreeMap::from([("content-type".to_owned(), kind.to_owned())]);
        if let Some(until) = answered.as_ref().err().and_then(ModelError::until) {
            headers.insert("retry-after-ms".to_owned(), until.since(now).as_millis().to_string());
        }
        Some(Self { status, headers, ended, body })
    }

    /// The answer, or why there is none.
    pub(crate) fn read(&self, dialect: Dialect, now: Timestamp) -> Result<ChatResponse, ModelError> {
        match &self.body {
            TapedBody::Whole(body) => self.read_whole(dialect, body, now),
            TapedBody::Stream(_) => {
                let mut assembly = Assembly::default();
                for delta in self.deltas(dialect, now)? {
                    assembly.push(delta?)?;
                }
                Ok(assembly.finish()?)
            }
        }
    }

    /// The pieces of the answer, and how they end.
    pub(crate) fn deltas(
        &self,
        dialect: Dialect,
        now: Timestamp,
    ) -> Result<Vec<Result<Delta, ModelError>>, ModelError> {
        self.refusal(now)?;
        let bytes = match &self.body {
            TapedBody::Whole(body) => {
                let response = self.read_whole(dialect, body, now)?;
                return Ok(deltas_of(&response, PIECE).into_iter().map(Ok).collect());
            }
            TapedBody::Stream(bytes) => bytes,
        };
        let mut pieces = Pieces::new(dialect, None);
        let read = pieces.push(bytes).and_then(|()| pieces.end("it broke off when it was recorded"));
        let mut deltas: Vec<_> = std::iter::from_fn(|| pieces.next()).map(Ok).collect();
        deltas.extend(read.err().map(Err));
        Ok(deltas)
    }

    fn read_whole(&self, dialect: Dialect, body: &[u8], now: Timestamp) -> Result<ChatResponse, ModelError> {
        self.refusal(now)?;
        if self.ended == Ended::Cut {
            return Err(ModelError::Cut { message: "it broke off when it was recorded".to_owned() });
        }
        dialect.read_response(body).map_err(|error| of_wire(error, None))
    }

    fn refusal(&self, now: Timestamp) -> Result<(), ModelError> {
        if (200..300).contains(&self.status) {
            return Ok(());
        }
        let header = |name: &str| self.headers.get(name).map(String::as_str);
        let (TapedBody::Whole(body) | TapedBody::Stream(body)) = &self.body;
        let refusal = Refusal {
            status: self.status,
            retry_after: header("retry-after"),
            retry_after_ms: header("retry-after-ms"),
            body,
            key: None,
        };
        Err(refusal.error(now))
    }
}
