//! What went wrong, in words: first what, then where, then what to do. Made once, here, from typed errors.

mod crew;
mod evals;
mod outlet;
mod project;
mod recording;
mod work;

use std::fmt::Write as _;

use rehearsal_app::command_line::quote;
use rehearsal_core::{IdError, SourceError};
use rehearsal_engine::prompt::PromptError;
use rehearsal_engine::{LockError, TesterError, WorkError};
use rehearsal_git::GitError;
use rehearsal_store::{CommitError, FindError, OpenError, StoreError};
use serde::Serialize;

use crate::exit::Exit;
use crate::ui::harmless;

/// An error on its way to a person.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    place: Option<String>,
    causes: Vec<String>,
    hints: Vec<String>,
}

/// An error as a document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ErrorDocument {
    error: ErrorBody,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ErrorBody {
    /// The exit code.
    code: u8,
    /// What happened.
    message: String,
    /// `file:line:column`, if there is one.
    place: Option<String>,
    /// What led to it.
    causes: Vec<String>,
    /// What to do.
    hints: Vec<String>,
}

impl CliError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), place: None, causes: Vec::new(), hints: Vec::new() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// From any error, with its whole chain of causes.
    pub(crate) fn of(exit: Exit, error: &dyn std::error::Error) -> Self {
        let mut this = Self::new(exit, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !std::iter::once(&this.message).chain(&this.causes).any(|said| said.contains(&text)) {
                this.causes.push(text);
            }
            source = cause.source();
        }
        this
    }

    /// The same with another exit code.
    pub(crate) fn exiting(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// Where it is.
    pub(crate) fn at(mut self, place: &str) -> Self {
        self.place = Some(place.to_owned());
        self
    }

    /// Where it is, unless that is known better.
    pub(crate) fn or_at(mut self, place: &str) -> Self {
        self.place.get_or_insert_with(|| place.to_owned());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What was meant, if that can be guessed.
    pub(crate) fn did_you_mean(self, near: Option<String>, otherwise: impl FnOnce() -> String) -> Self {
        self.hint(near.map_or_else(otherwise, |near| format!("did you mean `{near}`?")))
    }

    /// An error in a file that a person wrote.
    pub(crate) fn in_file(error: SourceError, file: &str) -> Self {
        let place = error.place.map_or_else(|| file.to_owned(), |place| format!("{file}:{place}"));
        let mut this = Self::usage(error.message);
        this.place = Some(place);
        this.hints.extend(error.hint);
        this
    }

    /// An error in a template that a person wrote.
    pub(crate) fn in_template(error: &PromptError, file: &str) -> Self {
        let line = error.line.map_or_else(String::new, |line| format!(":{line}"));
        Self::usage(error.to_string()).at(&format!("{file}{line}"))
    }

    /// Several mistakes at once, each with its place and its advice. One alone is told as it is.
    pub(crate) fn together(message: impl Into<String>, mut mistakes: Vec<Self>) -> Self {
        if mistakes.len() == 1 {
            return mistakes.swap_remove(0);
        }
        let mut this = Self::usage(message);
        this.causes.extend(mistakes.iter().map(|mistake| match mistake.first_hint() {
            Some(hint) => format!("{} ({hint})", mistake.in_a_line()),
            None => mistake.in_a_line(),
        }));
        this
    }

    /// As people read it, on standard error.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        // Writing to a string cannot fail.
        if let Some(place) = &self.place {
            let _ = writeln!(text, "  --> {place}");
        }
        for cause in &self.causes {
            let _ = writeln!(text, "  because: {cause}");
        }
        for hint in &self.hints {
            let _ = writeln!(text, "hint: {hint}");
        }
        // Names of files and ids come from anywhere.
        harmless(&text)
    }

    /// What to do first.
    pub(crate) fn first_hint(&self) -> Option<&str> {
        self.hints.first().map(String::as_str)
    }

    /// What is wrong and where, without what to do about it.
    pub(crate) fn in_a_line(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn document(self) -> ErrorDocument {
        ErrorDocument {
            error: ErrorBody {
                code: self.exit as u8,
                message: self.message,
                place: self.place,
                causes: self.causes,
                hints: self.hints,
            },
        }
    }
}

/// Where nothing can be written.
const READ_ONLY: &str =
    "nothing was written; see how its file system is mounted and what its mode is, and run the command again";

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        let this = Self::of(Exit::Internal, &error);
        match error.kind() {
            std::io::ErrorKind::StorageFull => {
                this.hint("free some space and run the command again; nothing is lost")
            }
            std::io::ErrorKind::PermissionDenied => {
                Self { exit: Exit::Usage, ..this }.hint("check who owns the file and what its mode is")
            }
            std::io::ErrorKind::ReadOnlyFilesystem => Self { exit: Exit::Usage, ..this }.hint(READ_ONLY),
            _ => this,
        }
    }
}

impl From<GitError> for CliError {
    fn from(error: GitError) -> Self {
        let this = Self::of(Exit::Git, &error);
        if matches!(error, GitError::Missing) { this.hint("install git") } else { this }
    }
}

impl From<IdError> for CliError {
    fn from(error: IdError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let this = Self::of(Exit::Internal, &error);
        match error {
            StoreError::Busy => this.hint("another `rehearsal` writes at this moment; run the command again"),
            StoreError::DiskFull => this.hint("free some space and run the command again; nothing is lost"),
            StoreError::ReadOnly => Self { exit: Exit::Usage, ..this }.hint(READ_ONLY),
            StoreError::Contended => {
                this.hint("others write to the same at this moment; run the command again")
            }
            StoreError::Unreachable { .. } | StoreError::Unanswered => {
                this.hint("see whether the server runs and can be reached from here; nothing was written")
            }
            StoreError::Denied { .. } => this.hint("see whether the user may log in and make tables there"),
            StoreError::Corrupt { .. } => {
                this.hint("nothing was changed; `rehearsal doctor` says what is wrong and what to do")
            }
            StoreError::Other(_) => this,
        }
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::Directory { ref source, .. } => {
                let hints = Self::from(std::io::Error::from(source.kind())).hints;
                Self { hints, ..Self::of(Exit::Usage, &error) }
            }
            OpenError::NotOurs { .. } => {
                Self::of(Exit::Usage, &error).hint("nothing was changed; `rehearsal doctor` says what to do")
            }
            error => Self::of(Exit::Usage, &error),
        }
    }
}

impl From<FindError> for CliError {
    fn from(error: FindError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            FindError::NotFound { near: Some(near), .. } => this.hint(format!("did you mean `{near}`?")),
            FindError::NotFound { what, .. } => {
                this.hint(format!("`rehearsal {} list` shows what there is", listing(what)))
            }
            FindError::Ambiguous { .. } => this.hint("give more characters of the id"),
            FindError::Store(error) => error.into(),
        }
    }
}

fn listing(what: &str) -> &str {
    if what == "run" { "runs" } else { what }
}

impl From<CommitError> for CliError {
    fn from(error: CommitError) -> Self {
        use rehearsal_core::transition::Refusal;
        let this = Self::usage(error.to_string());
        match error {
            CommitError::Store(error) => error.into(),
            CommitError::OutcomeUnknown => Self::of(Exit::Internal, &error)
                .hint("look with `rehearsal status` whether it is there before you run the command again"),
            CommitError::UnknownSession { near: Some(near), .. } => {
                this.hint(format!("did you mean `{near}`?"))
            }
            CommitError::UnknownSession { name, .. } => {
                this.hint(format!("make it with `rehearsal session new {}`", quote(name.as_str())))
            }
            CommitError::SessionExists { name } => {
                this.hint(format!("look at it with `rehearsal session show {}`", quote(name.as_str())))
            }
            CommitError::Refused { refusal: Refusal::Ended { task, .. }, .. } => {
                this.hint(format!("`rehearsal task retry {task}` begins it anew"))
            }
            CommitError::Refused { refusal: Refusal::Claimed { run, .. }, .. } => {
                this.hint(format!("`rehearsal logs {run} --follow` shows what it does"))
            }
            CommitError::Refused { refusal: Refusal::NoDecision { task, .. }, .. } => {
                this.hint(format!("`rehearsal why {task}` says what it waits for"))
            }
            _ => this,
        }
    }
}

impl From<WorkError> for CliError {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::Commit(error) => error.into(),
            WorkError::Read(error) => error.into(),
            WorkError::Io(error) => error.into(),
            WorkError::Session(error) => error.into(),
            WorkError::Prompt(error) => error.into(),
            WorkError::OtherFlow { .. } => Self::usage(error.to_string())
                .hint("`rehearsal work` takes tasks of any flow; `--session NAME` keeps it to one session"),
            WorkError::Died => Self::of(Exit::Internal, &error),
        }
    }
}

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        Self::in_template(&error, ".rehearsal/prompts/loop.md")
            .hint("`rehearsal run SESSION --dry-run` renders it and runs nothing")
    }
}

impl From<TesterError> for CliError {
    fn from(error: TesterError) -> Self {
        match error {
            TesterError::UnknownFramework { name, place } => {
                let names = rehearsal_testing::Framework::ALL.map(rehearsal_testing::Framework::name);
                let near = rehearsal_core::nearest(&name, names);
                let mut this = Self::usage(format!("unknown test framework `{name}`"));
                this.place = place;
                this.hint(near.map_or_else(
                    || format!("there are {}", names.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                ))
            }
            TesterError::Store(error) => error.into(),
            TesterError::Io(error) => error.into(),
            error @ (TesterError::Changes(_) | TesterError::Baseline { .. }) => Self::of(Exit::Git, &error),
        }
    }
}

impl From<LockError> for CliError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::usage(error.to_string())
                .hint("`rehearsal status` shows what it does; wait for it, or stop it with Ctrl-C"),
            LockError::Io(error) => error.into(),
        }
    }
}
