//! What a stage plays: a script, a vendor that is recorded, or a recording.

mod performance;

use camino::Utf8Path;
use rehearsal_agent::clis::KNOWN;
use rehearsal_llm::cassette::{
    Matching, Normaliser, PatternError, Place, PlayError, Player, Recorder, Rule, WriteError,
};
use rehearsal_process::SpawnError;
use rehearsal_stage::{
    RecordError, RecordingPlay, ReplaySpeed, ReplayingPlay, Script, ScriptedPlay, Upstreams,
};

use crate::caller::Caller;
use crate::cassettes::{CassetteError, open_to_play, secrets};
use crate::file::{FileError, read_text};
use crate::project::ProjectError;

pub use performance::{KeysOf, Performance};

/// Why nothing can be played or recorded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum StageError {
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    #[error(transparent)]
    Play(#[from] PlayError),
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(transparent)]
    Create(#[from] WriteError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Start(#[from] SpawnError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for StageError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// Plays a script.
pub fn scripted(caller: &Caller, script: &Utf8Path) -> Result<ScriptedPlay, FileError> {
    let text = read_text(&caller.directory.join(script))?;
    let text = text.ok_or_else(|| FileError::Missing(script.to_owned()))?;
    let script = Script::parse(&text).map_err(|error| FileError::wrong(error, script.as_str()))?;
    Ok(ScriptedPlay::new(script, &KNOWN.model_clients()))
}

/// Asks the vendor at `upstream` for an agent that works at `place`, and records it in the file `path`.
pub fn recording(
    caller: &Caller,
    path: &Utf8Path,
    (agent, version): (&str, Option<&str>),
    place: &Place,
    upstream: &str,
) -> Result<RecordingPlay, StageError> {
    let secrets = secrets(caller);
    let rules = Rule::for_client(KNOWN.of_program(agent).requests.as_ref());
    let normaliser = Normaliser::new(&rules, place, &secrets)?;
    let recorder = Recorder::create(path.as_std_path(), agent, version, normaliser, &secrets)?;
    Ok(RecordingPlay::new(recorder, Upstreams::one(upstream))?)
}

/// Plays a recording to an agent that works at `place`.
pub fn replaying(
    caller: &Caller,
    name: &Utf8Path,
    place: &Place,
    matching: Matching,
    speed: ReplaySpeed,
) -> Result<ReplayingPlay, StageError> {
    let secrets = secrets(caller);
    let cassette = open_to_play(caller, name, &secrets)?;
    let player = Player::new(cassette, matching, &KNOWN.model_clients(), place, &secrets)?;
    Ok(ReplayingPlay::new(player, speed))
}

/// Where an agent works that is started beside the caller.
pub fn place_of(caller: &Caller) -> Place {
    let named =
        |name: &str, otherwise: &'static str| caller.environment.get(name).map_or(otherwise, String::as_str);
    Place::resolved(caller.directory.as_str(), named("HOME", "/root"), named("TMPDIR", "/tmp"))
}
