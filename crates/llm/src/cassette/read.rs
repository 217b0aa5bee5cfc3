//! Reading a cassette, line by line. Whoever wrote it is not trusted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::blob::{BlobName, Digest, Piece};
use super::exchange::Ended;
use super::key::{Key, Parts};
use super::lane::LaneName;
use super::line::{
    BlobLine, EndLine, FrameLine, Header, Line, Reference, RequestLine, ResponseLine, VERSION,
};
use super::normalise::PatternError;
use super::policy::{MAX_LINE, MAX_REFERENCES, MAX_TOTAL};
use super::response::{Body, Frame, Response};
use super::scan::{Scanner, Secret, Secrets};

/// A cassette that is whole.
#[derive(Debug, Clone)]
pub struct Cassette {
    /// Its first line.
    pub header: Header,
    /// Requests and their answers, by number.
    pub entries: Vec<Entry>,
    /// How many different secrets became placeholders when it was written.
    pub secrets: u32,
    /// Of its content, in hexadecimal: two recordings never have the same.
    pub sha256: String,
}

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Counted from 1, in the order in which the requests came.
    pub number: u32,
    /// Where it belongs.
    pub lane: LaneName,
    /// The request.
    pub key: Key,
    /// The answer.
    pub response: Response,
}

/// Why a cassette is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be opened or read.
    #[error("cannot read {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It cannot be read to the end.
    #[error("line {line} cannot be read")]
    Io {
        /// Counted from 1.
        line: usize,
        /// Why.
        source: std::io::Error,
    },
    /// It is no line of a cassette.
    #[error("line {line} is no line of a cassette")]
    Line {
        /// Counted from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// It is too large.
    #[error("line {line} makes it larger than a cassette may be")]
    TooLarge {
        /// Counted from 1.
        line: usize,
    },
    /// It contradicts what came before.
    #[error("line {line} {why}")]
    Broken {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The recording was not finished.
    #[error("the recording is incomplete: it has no end record")]
    Incomplete,
    /// It holds a secret that is known here.
    #[error("line {} holds {}", .0.line, .0.kind)]
    Secret(Secret),
    /// Secrets cannot be looked for.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl Cassette {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file =
            fs_err::File::open(path).map_err(|source| ReadError::Open { path: path.to_owned(), source })?;
        Self::read(std::io::BufReader::new(file))
    }

    /// Reads a file, and refuses it if one of these secrets is in it: whatever a replay tells would tell it on.
    pub fn open_without(secrets: &Secrets, path: &Path) -> Result<Self, ReadError> {
        let scanner = Scanner::new(secrets)?;
        let file =
            fs_err::File::open(path).map_err(|source| ReadError::Open { path: path.to_owned(), source })?;
        Self::read_lines(std::io::BufReader::new(file), |number, line| {
            let found = scanner.find(&String::from_utf8_lossy(line)).first().map(|kind| (*kind).to_owned());
            found.map_or(Ok(()), |kind| Err(ReadError::Secret(Secret { line: number, kind })))
        })
    }

    /// Reads what a file holds.
    pub fn read(from: impl BufRead) -> Result<Self, ReadError> {
        Self::read_lines(from, |_, _| Ok(()))
    }

    fn read_lines(
        mut from: impl BufRead,
        look: impl Fn(usize, &[u8]) -> Result<(), ReadError>,
    ) -> Result<Self, ReadError> {
        let mut reader = Reader::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            reader.line += 1;
            let limit = MAX_LINE as u64 + 1;
            let read = from.by_ref().take(limit).read_until(b'\n', &mut line);
            let length = read.map_err(|source| ReadError::Io { line: reader.line, source })?;
            if length == 0 {
                return reader.finish();
            }
            reader.total += length as u64;
            if line.len() > MAX_LINE || reader.total > MAX_TOTAL {
                return Err(ReadError::TooLarge { line: reader.line });
            }
            reader.take(&line)?;
            look(reader.line, &line)?;
        }
    }
}

#[derive(Debug, Default)]
struct Reader {
    line: usize,
    total: u64,
    hash: Sha256,
    header: Option<Header>,
    blobs: HashMap<BlobName, Piece>,
    entries: Vec<Entry>,
    /// A request without its answer, or an answer without all of its frames.
    open: Option<(Entry, Waiting)>,
    /// The last request of each lane: its place in `entries`.
    before: HashMap<LaneName, usize>,
    numbers: HashSet<u32>,
    frames: u32,
    references: usize,
    end: Option<EndLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Response,
    Frames(u32),
}

impl Reader {
    fn broken<T>(&self, why: impl Into<String>) -> Result<T, ReadError> {
        Err(ReadError::Broken { line: self.line, why: why.into() })
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        if self.end.is_some() {
            return self.broken("comes after the end record");
        }
        let line: Line<'_> =
            serde_json::from_slice(bytes).map_err(|source| ReadError::Line { line: self.line, source })?;
        let is_header = matches!(line, Line::Cassette(_));
        if is_header == self.header.is_some() {
            return self.broken(if is_header { "is a second header" } else { "comes before the header" });
        }
        match line {
            Line::Cassette(header) => self.header(header)?,
            Line::Blob(blob) => self.blob(&blob)?,
            Line::Request(request) => self.request(request)?,
            Line::Response(response) => self.response(response)?,
            Line::Frame(frame) => self.frame(frame)?,
            Line::End(end) => return self.end(end),
        }
        self.hash.update(bytes);
        Ok(())
    }

    fn header(&mut self, header: Header) -> Result<(), ReadError> {
        if header.version != VERSION {
            return self.broken(format!(
                "is of version {}, and this program reads version {VERSION}",
                header.version
            ));
        }
        self.header = Some(header);
        Ok(())
    }

    fn blob(&mut self, blob: &BlobLine<'_>) -> Result<(), ReadError> {
        let json = blob.json.get();
        let digest = Digest::of(json.as_bytes());
        if digest.short() != blob.id {
            return self.broken(format!("is called {} and holds {}", blob.id, digest.short()));
        }
        if self.blobs.insert(blob.id, Piece { digest, json: json.into() }).is_some() {
            return self.broken(format!("holds {} again", blob.id));
        }
        Ok(())
    }

    fn request(&mut self, line: RequestLine<'_>) -> Result<(), ReadError> {
        if self.open.is_some() {
            return self.broken("comes before the answer above it has ended");
        }
        if !self.numbers.insert(line.number) {
            return self.broken(format!("is a second request {}", line.number));
        }
        let mut blobs = BTreeMap::new();
        for (name, id) in line.blobs {
            blobs.insert(name, self.piece(id)?);
        }
        let mut lists = BTreeMap::new();
        for (name, references) in line.lists {
            let pieces = self.pieces(line.lane, &name, &references)?;
            lists.insert(name, pieces);
        }
        let key = Key::new(Parts {
            method: line.method,
            target: line.target,
            headers: line.headers,
            fields: line.fields.into_iter().map(|(name, json)| (name, Arc::from(json.get()))).collect(),
            blobs,
            lists,
            text: line.text,
        });
        let response = Response {
            status: 0,
            headers: super::exchange::Headers::new(),
            at_ms: 0,
            ended: Ended::Cut,
            body: Body::Whole(String::new()),
        };
        self.open = Some((Entry { number: line.number, lane: line.lane, key, response }, Waiting::Response));
        Ok(())
    }

    fn piece(&self, id: BlobName) -> Result<Piece, ReadError> {
        match self.blobs.get(&id) {
            Some(piece) => Ok(piece.clone()),
            None => self.broken(format!("refers to {id}, which did not come before")),
        }
    }

    fn pieces(
        &mut self,
        lane: LaneName,
        list: &str,
        references: &[Reference],
    ) -> Result<Vec<Piece>, ReadError> {
        let mut pieces = Vec::new();
        for (index, reference) in references.iter().enumerate() {
            match reference {
                Reference::Blob(id) => pieces.push(self.piece(*id)?),
                Reference::AsBefore(count) => {
                    let before = self.before.get(&lane).and_then(|index| self.entries.get(*index));
                    let before = before
                        .and_then(|entry| entry.key.lists.get(list))
                        .and_then(|list| list.get(..*count));
                    match before {
                        Some(before) if index == 0 && before.len() <= MAX_REFERENCES - self.references => {
                            pieces.extend_from_slice(before);
                        }
                        Some(_) if index == 0 => return Err(ReadError::TooLarge { line: self.line }),
                        _ => {
                            return self
                                .broken(format!("takes {count} elements of `{list}` that are not there"));
                        }
                    }
                }
            }
        }
        self.references += pieces.len();
        if self.references > MAX_REFERENCES {
            return Err(ReadError::TooLarge { line: self.line });
        }
        Ok(pieces)
    }

    fn response(&mut self, line: ResponseLine<'_>) -> Result<(), ReadError> {
        let Some((mut entry, Waiting::Response)) = self.open.take() else {
            return self.broken("is an answer to nothing");
        };
        if entry.number != line.number {
            return self.broken(format!("answers request {}, and not {}", line.number, entry.number));
        }
        let body = match (line.frames, line.json, line.text) {
            (Some(_), None, None) => Body::Frames(Vec::new()),
            (None, Some(json), None) => Body::Whole(json.get().to_owned()),
            (None, None, Some(text)) => Body::Whole(text),
            _ => return self.broken("is not one of frames, JSON and text"),
        };
        entry.response = Response {
            status: line.status,
            headers: line.headers,
            at_ms: line.at_ms,
            ended: line.ended,
            body,
        };
        match line.frames {
            Some(frames) if frames > 0 => self.open = Some((entry, Waiting::Frames(frames))),
            _ => self.close(entry),
        }
        Ok(())
    }

    fn frame(&mut self, line: FrameLine<'_>) -> Result<(), ReadError> {
        let Some((mut entry, Waiting::Frames(left))) = self.open.take() else {
            return self.broken("is a frame of nothing");
        };
        let frame = match (line.data, line.text) {
            (Some(data), None) => Frame::of_parts(line.at_ms, line.event.as_deref(), data.get()),
            (None, Some(text)) if line.event.is_none() => Frame { at_ms: line.at_ms, text },
            _ => return self.broken("is not one of data and text"),
        };
        if let Body::Frames(frames) = &mut entry.response.body {
            frames.push(frame);
        }
        self.frames = self.frames.saturating_add(1);
        if left > 1 {
            self.open = Some((entry, Waiting::Frames(left - 1)));
        } else {
            self.close(entry);
        }
        Ok(())
    }

    fn close(&mut self, entry: Entry) {
        self.before.insert(entry.lane, self.entries.len());
        self.entries.push(entry);
    }

    fn end(&mut self, end: EndLine) -> Result<(), ReadError> {
        if self.open.is_some() {
            return self.broken("comes before the answer above it has ended");
        }
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let sha256 = self.hash.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let seen = EndLine {
            requests: count(self.entries.len()),
            blobs: count(self.blobs.len()),
            frames: self.frames,
            secrets: end.secrets,
            sha256,
        };
        if end.sha256 != seen.sha256 {
            return self.broken("says that this is not the file that was written: it was changed afterwards");
        }
        if end != seen {
            return self.broken("counts other records than there are");
        }
        self.end = Some(end);
        Ok(())
    }

    fn finish(mut self) -> Result<Cassette, ReadError> {
        let (Some(header), Some(end)) = (self.header, self.end) else {
            return Err(ReadError::Incomplete);
        };
        self.entries.sort_by_key(|entry| entry.number);
        Ok(Cassette { header, entries: self.entries, secrets: end.secrets, sha256: end.sha256 })
    }
}
