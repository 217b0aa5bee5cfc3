//! Cassettes: finding, showing, comparing, checking and redacting recordings.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_llm::cassette::{
    Body, Cassette, CassetteChange, Ended, Entry, Finding, Header, LintError, PatternError, ReadError,
    Secrets, Severity, WriteError, compare, redacted,
};
use serde::Serialize;

use crate::caller::Caller;
use crate::project::{Project, ProjectError};

/// `cassette show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowDocument {
    /// With what it was recorded.
    pub header: Header,
    /// In the order of the requests.
    pub exchanges: Vec<ExchangeView>,
}

/// A request and its answer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExchangeView {
    /// Which request.
    pub number: u32,
    /// Which thread of the agent asked.
    pub lane: String,
    /// The HTTP method.
    pub method: String,
    /// The path that was asked.
    pub target: String,
    /// The model that was asked.
    pub model: Option<String>,
    /// Elements of the conversation so far.
    pub messages: usize,
    /// The HTTP status.
    pub status: u16,
    /// How the answer ended.
    pub ended: Ended,
    /// Frames, if the answer was a stream.
    pub frames: Option<usize>,
    /// Milliseconds from the request to the end of the answer.
    pub took_ms: u64,
    /// The request's body, normalised; only with `--request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The answer; only with `--request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// `cassette diff --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffDocument {
    /// Whether nothing differs.
    pub same: bool,
    /// What differs.
    pub changes: Vec<CassetteChange>,
}

/// `cassette lint --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LintDocument {
    /// Whether no finding is an error.
    pub clean: bool,
    /// In the order in which they were named.
    pub cassettes: Vec<LintedView>,
}

/// A cassette that was checked.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LintedView {
    /// As it was named.
    pub cassette: String,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// `cassette redact --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedactDocument {
    /// Different secrets that were replaced now.
    pub replaced: u32,
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum CassetteError {
    /// It would lead out of the directory of cassettes.
    #[error("`{name}` is no name of a cassette")]
    Name { name: Utf8PathBuf },
    #[error("{error}")]
    Read { name: Utf8PathBuf, path: Utf8PathBuf, error: ReadError },
    #[error("the cassette has no request {number}")]
    NoRequest { number: u32, count: usize },
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Project(#[from] ProjectError),
}

/// Where a cassette is: a file by its path, or a name among those of the repository.
pub fn path_of(caller: &Caller, name: &Utf8Path) -> Result<Utf8PathBuf, CassetteError> {
    if name.extension() == Some("jsonl") {
        return Ok(caller.directory.join(name));
    }
    if name.as_str().split('/').any(|part| part.is_empty() || part == "..") {
        return Err(CassetteError::Name { name: name.to_owned() });
    }
    Ok(Project::open(caller)?.directory().join("cassettes").join(format!("{name}.jsonl")))
}

/// Opens a cassette.
pub fn open(caller: &Caller, name: &Utf8Path) -> Result<Cassette, CassetteError> {
    let path = path_of(caller, name)?;
    Cassette::open(path.as_std_path()).map_err(|error| refused(name, path, error))
}

/// Opens a cassette to play it. One that has a secret which is known here is refused: what differs from it is shown, and the
/// secret would be too.
pub fn open_to_play(caller: &Caller, name: &Utf8Path, secrets: &Secrets) -> Result<Cassette, CassetteError> {
    let path = path_of(caller, name)?;
    Cassette::open_without(secrets, path.as_std_path()).map_err(|error| refused(name, path, error))
}

fn refused(name: &Utf8Path, path: Utf8PathBuf, error: ReadError) -> CassetteError {
    CassetteError::Read { name: name.to_owned(), path, error }
}

/// The secrets that are known here.
pub fn secrets(caller: &Caller) -> Secrets {
    Secrets::of(caller.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// Shows a cassette: all exchanges in short, or one with what was said.
pub fn show(caller: &Caller, name: &Utf8Path, request: Option<u32>) -> Result<ShowDocument, CassetteError> {
    let cassette = open(caller, name)?;
    let exchanges = match request {
        None => cassette.entries.iter().map(|entry| view(entry, Detail::Row)).collect(),
        Some(number) => {
            let count = cassette.entries.len();
            let entry = cassette.entries.iter().find(|entry| entry.number == number);
            vec![view(entry.ok_or(CassetteError::NoRequest { number, count })?, Detail::All)]
        }
    };
    Ok(ShowDocument { header: cassette.header, exchanges })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Row,
    All,
}

fn view(entry: &Entry, detail: Detail) -> ExchangeView {
    let response = &entry.response;
    let (frames, took_ms, answer) = match &response.body {
        Body::Whole(text) => (None, response.at_ms, text.clone()),
        Body::Frames(frames) => {
            let text = frames.iter().map(|frame| frame.text.as_str()).collect();
            (Some(frames.len()), frames.last().map_or(response.at_ms, |frame| frame.at_ms), text)
        }
    };
    ExchangeView {
        number: entry.number,
        lane: entry.lane.to_string(),
        method: entry.key.method().to_owned(),
        target: entry.key.target().to_owned(),
        model: entry.key.model(),
        messages: entry.key.messages(),
        status: response.status,
        ended: response.ended,
        frames,
        took_ms,
        body: (detail == Detail::All).then(|| entry.key.body()),
        answer: (detail == Detail::All).then_some(answer),
    }
}

/// Compares two cassettes.
pub fn diff(caller: &Caller, first: &Utf8Path, second: &Utf8Path) -> Result<DiffDocument, CassetteError> {
    let changes = compare(&open(caller, first)?, &open(caller, second)?);
    Ok(DiffDocument { same: changes.is_empty(), changes })
}

/// Searches cassettes for secrets, for what is broken, and for what would not play elsewhere.
pub fn lint(caller: &Caller, names: &[Utf8PathBuf]) -> Result<LintDocument, CassetteError> {
    let secrets = secrets(caller);
    let mut cassettes = Vec::new();
    for name in names {
        let path = path_of(caller, name)?;
        let findings = rehearsal_llm::cassette::lint(path.as_std_path(), &secrets);
        let findings = findings.map_err(|error| match error {
            LintError::Read(error) => refused(name, path, error),
            LintError::Pattern(error) => error.into(),
        })?;
        cassettes.push(LintedView { cassette: name.to_string(), findings });
    }
    let mut findings = cassettes.iter().flat_map(|cassette| &cassette.findings);
    let clean = findings.all(|finding| finding.severity != Severity::Error);
    Ok(LintDocument { clean, cassettes })
}

/// Writes a cassette again without the secrets that are known here.
pub fn redact(caller: &Caller, name: &Utf8Path) -> Result<RedactDocument, CassetteError> {
    let cassette = open(caller, name)?;
    let written = redacted(&cassette, path_of(caller, name)?.as_std_path(), &secrets(caller))?;
    Ok(RedactDocument { replaced: written.secrets.saturating_sub(cassette.secrets) })
}
