//! Recording: requests get their keys as they come, answers are kept when they have ended.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::exchange::{Asked, Ended, kept_response_headers};
use super::key::{Key, Keys};
use super::lane::LaneName;
use super::line::{Header, VERSION};
use super::normalise::{Named, Names, Normaliser};
use super::policy::MAX_ANSWER;
use super::response::{Body, Bytes, Response, said_its_end};
use super::scan::{self, Scanner, Secrets};
use super::write::{WriteError, Writer, Written};

/// Writes a cassette.
#[derive(Debug)]
pub struct Recorder {
    scanner: Scanner,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    keys: Keys,
    writer: Writer,
    asked: u32,
    kept: u32,
    /// Secrets of calls that belong to no conversation.
    secrets: u32,
}

/// One exchange while it lasts.
#[derive(Debug)]
pub struct Take {
    number: u32,
    lane: LaneName,
    conversation: Option<String>,
    names: Names,
    key: Key,
    path: String,
    status: u16,
    headers: Vec<(String, String)>,
    at_ms: u64,
    answer: Bytes,
    is_too_large: bool,
}

impl Recorder {
    /// Begins a cassette. It gets its name when it is finished.
    pub fn create(
        path: &Path,
        agent: &str,
        agent_version: Option<&str>,
        normaliser: Normaliser,
        secrets: &Secrets,
    ) -> Result<Self, WriteError> {
        let header = Header {
            version: VERSION,
            agent: agent.to_owned(),
            agent_version: agent_version.map(str::to_owned),
            normalisers: normaliser.rules().iter().copied().map(Into::into).collect(),
            redaction: format!("secrets@{}", scan::VERSION),
            seed: 0,
        };
        let writer = Writer::create(path, &header)?;
        let state = State { keys: Keys::new(normaliser), writer, asked: 0, kept: 0, secrets: 0 };
        Ok(Self { scanner: Scanner::new(secrets)?, state: Mutex::new(state) })
    }

    /// A request came.
    pub fn ask(&self, asked: &Asked<'_>) -> Take {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked = state.asked.saturating_add(1);
        let number = state.asked;
        let keyed = state.keys.keyed(asked);
        Take {
            number,
            lane: keyed.lane,
            conversation: keyed.conversation,
            names: keyed.names,
            key: keyed.key,
            path: asked.path().to_owned(),
            status: 0,
            headers: Vec::new(),
            at_ms: 0,
            answer: Bytes::default(),
            is_too_large: false,
        }
    }

    /// Keeps an exchange whose answer ended: as whole if the connection ended well or the stream said its end.
    pub fn keep(&self, mut take: Take, ended: Ended) -> Result<(), WriteError> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let response = take.response(ended)?;
        let normaliser = state.keys.normaliser().clone();
        let names = match &take.conversation {
            Some(conversation) => state.keys.names(conversation),
            None => None,
        };
        let own = &mut take.names;
        let response = response.normalised(&normaliser, names.unwrap_or(own));
        state.writer.exchange(take.number, take.lane, take.key, &response)?;
        state.secrets += take.names.count(Named::Secret);
        state.kept += 1;
        Ok(())
    }

    /// How many requests came.
    pub fn asked(&self) -> u32 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).asked
    }

    /// Ends the cassette and gives it its name.
    pub fn finish(self) -> Result<Written, WriteError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let open = state.asked.saturating_sub(state.kept);
        if open > 0 {
            return Err(WriteError::Unfinished(open as usize));
        }
        state.writer.finish(state.secrets + state.keys.secrets(), &self.scanner)
    }
}

impl Take {
    /// The beginning of the answer.
    pub fn answered(&mut self, status: u16, headers: &[(String, String)], after: Duration) {
        self.status = status;
        self.headers = headers.to_vec();
        self.at_ms = millis(after);
    }

    /// More of the answer, uncompressed, as it came.
    pub fn bytes(&mut self, bytes: &[u8], after: Duration) {
        self.is_too_large |= self.answer.bytes.len() + bytes.len() > MAX_ANSWER;
        if !self.is_too_large {
            self.answer.push(bytes, millis(after));
        }
    }

    /// The number of the request.
    pub fn number(&self) -> u32 {
        self.number
    }

    fn response(&self, ended: Ended) -> Result<Response, WriteError> {
        let failed = |why| WriteError::Answer { number: self.number, why };
        if self.is_too_large {
            return Err(failed("is too large to be kept"));
        }
        let headers = kept_response_headers(&self.headers);
        if self.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("content-encoding") && !value.eq_ignore_ascii_case("identity")
        }) {
            return Err(failed("came compressed although nobody asked for that"));
        }
        let text = std::str::from_utf8(&self.answer.bytes).map_err(|_| failed("is not UTF-8"))?;
        let is_stream = headers.get("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let (body, ended) = if is_stream {
            let (frames, rest) = self.answer.frames(text);
            let is_whole =
                rest.is_empty() && said_its_end(&self.path, &frames).unwrap_or(ended == Ended::Whole);
            (Body::Frames(frames), if is_whole { Ended::Whole } else { Ended::Cut })
        } else {
            (Body::Whole(text.to_owned()), ended)
        };
        Ok(Response { status: self.status, headers, at_ms: self.at_ms, ended, body })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
