//! Why a recording or a run cannot be used again, and what to do about it.

use rehearsal_app::cassettes::CassetteError;
use rehearsal_app::command_line::quote;
use rehearsal_app::scenarios::{PromoteError, RehearseError};
use rehearsal_app::stage::StageError;
use rehearsal_llm::cassette::ReadError;
use rehearsal_stage::RecordError;

use super::CliError;
use crate::exit::Exit;

impl From<CassetteError> for CliError {
    fn from(error: CassetteError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            CassetteError::Name { .. } => {
                this.hint("a name is like `greeting` or `agents/greeting`; a file ends in `.jsonl`")
            }
            CassetteError::Read { name, path, error } => {
                let this = Self::of(Exit::Usage, &error);
                match error {
                    ReadError::Open { .. } => this.hint("record it with `rehearsal record NAME -- COMMAND…`"),
                    ReadError::Secret(_) => this.at(path.as_str()).hint(format!(
                        "take it out with `rehearsal cassette redact {}`",
                        quote(name.as_str())
                    )),
                    ReadError::Incomplete => this
                        .at(path.as_str())
                        .hint("record it again; a recording that was broken off cannot be played"),
                    _ => this
                        .at(path.as_str())
                        .hint("record it again, or bring back the file as it was written"),
                }
            }
            CassetteError::NoRequest { count, .. } => {
                this.hint(format!("it has {count}: `rehearsal cassette show` lists them"))
            }
            CassetteError::Pattern(error) => Self::of(Exit::Internal, &error),
            CassetteError::Write(error) => Self::of(Exit::Internal, &error),
            CassetteError::Project(error) => error.into(),
        }
    }
}

impl From<PromoteError> for CliError {
    fn from(error: PromoteError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            PromoteError::Exists { .. } => this.hint("choose another `--name`"),
            PromoteError::Outcome { .. } => {
                this.hint("what it shows is the world around the agent, not the agent")
            }
            PromoteError::NotOver { .. } | PromoteError::NoTask { .. } | PromoteError::NotUtf8 { .. } => this,
            PromoteError::Git(error) => error.into(),
            PromoteError::Project(error) => error.into(),
        }
    }
}

impl From<RehearseError> for CliError {
    fn from(error: RehearseError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            RehearseError::NoScenarios(_) => {
                this.hint("`rehearsal rehearse --init` writes a few to begin with")
            }
            RehearseError::NoneFits { known, .. } => this.hint(format!("there are {}", known.join(", "))),
            RehearseError::Twice { .. } => this,
            RehearseError::Flow { place, error } => Self::from(*error).or_at(&place),
            RehearseError::NoScript { file, .. } => this.at(&file),
            RehearseError::Project(error) => error.into(),
        }
    }
}

impl From<StageError> for CliError {
    fn from(error: StageError) -> Self {
        match error {
            StageError::Record(RecordError::Upstream(why)) => {
                Self::new(Exit::Agent, format!("nothing was recorded: {why}"))
                    .hint("is the address after `--upstream` right, and can it be reached?")
            }
            StageError::Record(RecordError::Write(error)) => Self::of(Exit::Internal, &error),
            StageError::Record(RecordError::Client(_)) | StageError::Play(_) | StageError::Pattern(_) => {
                Self::of(Exit::Internal, &error)
            }
            StageError::Create(error) => Self::of(Exit::Usage, &error),
            StageError::Start(error) => Self::of(Exit::Usage, &error)
                .hint("the command stands after `--`: `… -- claude -p 'Say hello'`"),
            StageError::Cassette(error) => error.into(),
            StageError::Project(error) => error.into(),
        }
    }
}
