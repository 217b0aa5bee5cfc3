//! Why evals cannot be run or read, and what to do about it.

use rehearsal_app::command_line::quote;
use rehearsal_app::evals::{EvalsError, ImportError};
use rehearsal_eval::run::{FindRunError, Obstacle, TrialError};

use super::CliError;
use crate::commands::eval::HOW_TO_BEGIN;
use crate::exit::Exit;
use crate::words;

impl From<FindRunError> for CliError {
    fn from(error: FindRunError) -> Self {
        let this = Self::of(Exit::Usage, &error);
        match error {
            FindRunError::NoRuns => this.hint("`rehearsal eval run` runs them"),
            FindRunError::Unknown(_) | FindRunError::Ambiguous(_) => {
                this.hint("`rehearsal eval list` shows them")
            }
            FindRunError::Io(error) => error.into(),
        }
    }
}

impl From<EvalsError> for CliError {
    fn from(error: EvalsError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            EvalsError::NoEvals => this.hint(HOW_TO_BEGIN),
            EvalsError::Unknown { known, .. } => this.hint(format!("there are: {}", known.join(", "))),
            EvalsError::TwoMeanings => this.hint("give the agent `echo` another name"),
            EvalsError::Wrong(error) => {
                Self::from(error).hint("`rehearsal schema eval` has the form of the file")
            }
            EvalsError::Open(error) => Self::of(Exit::Usage, &error),
            EvalsError::Write(error) => Self::of(Exit::Internal, &error),
            EvalsError::SeveralAgents(_) => this.hint("name one: RUN:AGENT"),
            EvalsError::UnknownAgent(_) => this,
            EvalsError::NothingInCommon => this.hint("`rehearsal eval show RUN` lists them"),
            EvalsError::NoCommit(error) => Self::of(Exit::Git, &error).hint("commit something first"),
            EvalsError::NoRecording { name, .. } => this.hint(format!(
                "record it with `rehearsal eval record --name {} --task TEXT`; `rehearsal replay NAME -- COMMAND` plays a recording of any command",
                quote(name.as_str()),
            )),
            EvalsError::BrokenTask { file, error } => Self::of(Exit::Usage, &error).at(&file),
            EvalsError::Trial(TrialError::Skipped(reason)) => Self::usage(reason),
            EvalsError::Trial(TrialError::Obstacle(obstacle)) => {
                let exit = match obstacle {
                    Obstacle::HoldsSecrets { .. } => Exit::Agent,
                    _ => Exit::Usage,
                };
                Self::new(exit, obstacle.to_string()).hint(words::remedy(&obstacle))
            }
            EvalsError::Trial(TrialError::Failed(reason)) => Self::new(Exit::Agent, reason),
            EvalsError::Trial(TrialError::Cancelled) => Self::new(Exit::Interrupted, "interrupted"),
            EvalsError::Find(error) => error.into(),
            EvalsError::Cassette(error) => error.into(),
            EvalsError::Project(error) => error.into(),
        }
    }
}

impl From<ImportError> for CliError {
    fn from(error: ImportError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            ImportError::UnknownFormat { .. } => {
                this.hint("say what it is: --format promptfoo, or --format swe-bench")
            }
            ImportError::Name { .. } => {
                this.hint("up to 60 letters, digits, `-`, `_` and `.`; it names files")
            }
            ImportError::Exists { .. } => {
                this.hint("give it another name: --as NAME, or write it elsewhere: --output FILE")
            }
            ImportError::File(error) => error.into(),
            ImportError::Git(error) => Self::of(Exit::Git, &error),
            ImportError::Project(error) => error.into(),
            ImportError::Io(error) => error.into(),
        }
    }
}
