//! Writing a cassette: elsewhere while it is recorded, and under its own name only when it is whole and clean.
//!
//! Agents look around: a file that grows in their repository would be in the recording, and in no replay.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::blob::{BlobName, Piece};
use super::key::Key;
use super::lane::LaneName;
use super::line::{BlobLine, EndLine, FrameLine, Header, Line, Reference, RequestLine, ResponseLine};
use super::normalise::PatternError;
use super::response::{Body, Response};
use super::scan::{Scanner, Secret, Secrets};

/// Why a cassette was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file system refused.
    #[error("cannot write {path}")]
    Io {
        /// The cassette.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line cannot be written as JSON.
    #[error("cannot write a line")]
    Line(#[from] serde_json::Error),
    /// A secret is in it.
    #[error("line {} holds {}", .0.line, .0.kind)]
    Secret(Secret),
    /// Not every request has its answer.
    #[error("{0} answers had not ended")]
    Unfinished(usize),
    /// An answer that a cassette cannot hold.
    #[error("the answer to request {number} {why}")]
    Answer {
        /// The number of the request.
        number: u32,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The rules cannot be used.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// How many requests.
    pub requests: u32,
    /// How many pieces of requests.
    pub blobs: u32,
    /// How many frames of streams.
    pub frames: u32,
    /// How many different secrets became placeholders.
    pub secrets: u32,
    /// How long the file is.
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    /// Without a name: whatever happens, nothing is left of it.
    file: BufWriter<File>,
    hash: Sha256,
    written: Written,
    blobs: HashSet<BlobName>,
    /// The last request of each lane.
    before: HashMap<LaneName, Key>,
}

impl Writer {
    pub(crate) fn create(path: &Path, header: &Header) -> Result<Self, WriteError> {
        let file = tempfile::tempfile().map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
        let written = Written { requests: 0, blobs: 0, frames: 0, secrets: 0, bytes: 0 };
        let mut this = Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            hash: Sha256::new(),
            written,
            blobs: HashSet::new(),
            before: HashMap::new(),
        };
        this.line(&Line::Cassette(header.clone()))?;
        Ok(this)
    }

    fn line(&mut self, line: &Line<'_>) -> Result<(), WriteError> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.hash.update(text.as_bytes());
        self.written.bytes += text.len() as u64;
        self.file
            .write_all(text.as_bytes())
            .map_err(|source| WriteError::Io { path: self.path.clone(), source })
    }

    /// A request and its answer, after the pieces that are new.
    pub(crate) fn exchange(
        &mut self,
        number: u32,
        lane: LaneName,
        key: Key,
        response: &Response,
    ) -> Result<(), WriteError> {
        for piece in key.blobs.values().chain(key.lists.values().flatten()) {
            self.piece(piece)?;
        }
        self.request(number, lane, &key)?;
        self.before.insert(lane, key);
        self.response(number, response)?;
        self.written.requests += 1;
        Ok(())
    }

    fn piece(&mut self, piece: &Piece) -> Result<(), WriteError> {
        let id = piece.digest.short();
        if !self.blobs.insert(id) {
            return Ok(());
        }
        let json: &RawValue = serde_json::from_str(&piece.json)?;
        self.written.blobs += 1;
        self.line(&Line::Blob(BlobLine { id, json }))
    }

    fn request(&mut self, number: u32, lane: LaneName, key: &Key) -> Result<(), WriteError> {
        let before = self.before.get(&lane).filter(|_| lane.is_ordered());
        let lists = key
            .lists
            .iter()
            .map(|(name, pieces)| {
                (name.clone(), references(before.and_then(|key| key.lists.get(name)), pieces))
            })
            .collect();
        let fields = key
            .fields
            .iter()
            .map(|(name, json)| Ok((name.clone(), serde_json::from_str(json)?)))
            .collect::<Result<_, serde_json::Error>>()?;
        let line = Line::Request(RequestLine {
            number,
            lane,
            method: key.method.clone(),
            target: key.target.clone(),
            headers: key.headers.clone(),
            fields,
            blobs: key.blobs.iter().map(|(name, piece)| (name.clone(), piece.digest.short())).collect(),
            lists,
            text: key.text.clone(),
        });
        self.line(&line)
    }

    fn response(&mut self, number: u32, response: &Response) -> Result<(), WriteError> {
        let Response { status, headers, at_ms, ended, body } = response;
        let mut line = ResponseLine {
            number,
            status: *status,
            headers: headers.clone(),
            at_ms: *at_ms,
            ended: *ended,
            frames: None,
            json: None,
            text: None,
        };
        match body {
            Body::Whole(text) => {
                // A line break inside of JSON is allowed, and would be one line too many here.
                line.json = serde_json::from_str(text).ok().filter(|_| stays_a_line(text));
                line.text = line.json.is_none().then(|| text.clone());
                self.line(&Line::Response(line))
            }
            Body::Frames(frames) => {
                line.frames = Some(u32::try_from(frames.len()).unwrap_or(u32::MAX));
                self.line(&Line::Response(line))?;
                for frame in frames {
                    self.written.frames += 1;
                    self.line(&Line::Frame(frame_line(frame)))?;
                }
                Ok(())
            }
        }
    }

    /// Adds the end, looks for secrets, and gives the file its name.
    pub(crate) fn finish(mut self, secrets: u32, scanner: &Scanner) -> Result<Written, WriteError> {
        self.written.secrets = secrets;
        let sha256 = self.hash.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let Written { requests, blobs, frames, secrets, .. } = self.written;
        self.line(&Line::End(EndLine { requests, blobs, frames, secrets, sha256 }))?;
        let path = self.path;
        let failed = |source| WriteError::Io { path: path.clone(), source };
        let mut recorded = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        recorded.rewind().map_err(failed)?;
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs_err::create_dir_all(directory).map_err(failed)?;
        let file = copied(recorded, directory, scanner).map_err(|problem| match problem {
            Problem::Io(source) => failed(source),
            Problem::Secret(secret) => WriteError::Secret(secret),
        })?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        fs_err::File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
        Ok(self.written)
    }
}

enum Problem {
    Io(std::io::Error),
    Secret(Secret),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// A copy in this directory that is safe on disk, line by line, if no line holds a secret.
fn copied(recorded: File, directory: &Path, scanner: &Scanner) -> Result<NamedTempFile, Problem> {
    let mut file =
        tempfile::Builder::new().prefix(".recording-").suffix(".partial").tempfile_in(directory)?;
    let mut out = BufWriter::new(file.as_file_mut());
    for (index, line) in BufReader::new(recorded).lines().enumerate() {
        let line = line?;
        if let Some(kind) = scanner.find(&line).first() {
            return Err(Problem::Secret(Secret { line: index + 1, kind: (*kind).to_owned() }));
        }
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    drop(out);
    readable_by_all(&file)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// A temporary file is its owner's alone; a cassette is a source file like any other.
fn readable_by_all(file: &NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))
}

fn stays_a_line(text: &str) -> bool {
    !text.contains(['\n', '\r']) && text == text.trim()
}

fn references(before: Option<&Vec<Piece>>, pieces: &[Piece]) -> Vec<Reference> {
    let same = before.map_or(0, |before| {
        before.iter().zip(pieces).take_while(|(old, new)| old.digest == new.digest).count()
    });
    let kept = (same > 0).then_some(Reference::AsBefore(same));
    let added = pieces[same..].iter().map(|piece| Reference::Blob(piece.digest.short()));
    kept.into_iter().chain(added).collect()
}

fn frame_line(frame: &super::response::Frame) -> FrameLine<'_> {
    let as_data = frame.parts().and_then(|(event, data)| {
        let raw: &RawValue = serde_json::from_str(data).ok().filter(|_| stays_a_line(data))?;
        Some((event.map(str::to_owned), raw))
    });
    match as_data {
        Some((event, data)) => FrameLine { at_ms: frame.at_ms, event, data: Some(data), text: None },
        None => FrameLine { at_ms: frame.at_ms, event: None, data: None, text: Some(frame.text.clone()) },
    }
}

/// Writes a cassette again without the secrets that are known now.
pub fn redacted(cassette: &super::Cassette, path: &Path, secrets: &Secrets) -> Result<Written, WriteError> {
    use super::normalise::{Named, Names, Normaliser, Place};
    let normaliser = Normaliser::new(&[], &Place::default(), secrets)?;
    let mut names = Names::default();
    let mut writer = Writer::create(path, &cassette.header)?;
    for entry in &cassette.entries {
        let key = entry.key.rewritten(|text| normaliser.text(&mut names, text).into_owned());
        let response = entry.response.clone().normalised(&normaliser, &mut names);
        writer.exchange(entry.number, entry.lane, key, &response)?;
    }
    let found = cassette.secrets.saturating_add(names.count(Named::Secret));
    writer.finish(found, &Scanner::new(secrets)?)
}
