//! The stored runs of evals: one directory each, named after its start and its eval.

use camino::{Utf8Path, Utf8PathBuf};
use jiff::tz::TimeZone;
use rehearsal_core::Timestamp;

use super::{Journal, JournalError};
use crate::report::html;
use crate::summary::{Record, Summary};

/// The copy of the eval in a run's directory.
const EVAL_FILE: &str = "eval.yaml";
/// Prefix of directories that are not complete runs.
const UNFINISHED: &str = ".new-";

/// All runs of a project.
#[derive(Debug, Clone)]
pub struct Archive {
    directory: Utf8PathBuf,
}

/// One run of an eval.
#[derive(Debug, Clone)]
pub struct EvalRun {
    directory: Utf8PathBuf,
}

/// Why there is no such run.
#[derive(Debug, thiserror::Error)]
pub enum FindRunError {
    /// No eval has been run yet.
    #[error("no eval was run yet")]
    NoRuns,
    /// No run has this in its name.
    #[error("there is no run `{0}`")]
    Unknown(String),
    /// Several runs have this in their names.
    #[error("`{0}` is in the name of several runs")]
    Ambiguous(String),
    /// The directory cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Archive {
    /// The runs in a directory, which need not exist yet.
    pub fn at(directory: Utf8PathBuf) -> Self {
        Self { directory }
    }

    /// The names of all runs, oldest first.
    pub fn names(&self) -> std::io::Result<Vec<String>> {
        if !self.directory.is_dir() {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for entry in self.directory.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && !entry.file_name().starts_with(UNFINISHED) {
                names.push(entry.file_name().to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// The run with this name or a unique part of it; without a name, the last one.
    pub fn find(&self, name: Option<&str>) -> Result<EvalRun, FindRunError> {
        let names = self.names()?;
        let Some(name) = name else {
            return Ok(self.run(names.last().ok_or(FindRunError::NoRuns)?));
        };
        let exact = names.iter().find(|known| *known == name);
        let mut parts = names.iter().filter(|known| known.contains(name));
        match (exact, parts.next(), parts.next()) {
            (Some(known), _, _) | (None, Some(known), None) => Ok(self.run(known)),
            (None, Some(_), Some(_)) => Err(FindRunError::Ambiguous(name.to_owned())),
            (None, None, _) => Err(FindRunError::Unknown(name.to_owned())),
        }
    }

    /// The last run of an eval.
    pub fn last_of(&self, eval: &str) -> std::io::Result<Option<EvalRun>> {
        // A date, a time, and the eval, whose name may contain dashes too.
        let is_of = |name: &&String| name.splitn(3, '-').nth(2) == Some(eval);
        Ok(self.names()?.iter().rev().find(is_of).map(|name| self.run(name)))
    }

    /// Creates a run with a copy of the eval as it is now.
    pub fn create(&self, eval: &str, text: &str, now: Timestamp) -> std::io::Result<EvalRun> {
        let at = jiff::Timestamp::from_millisecond(now.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let time = at.to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S").to_string();
        fs_err::create_dir_all(&self.directory)?;
        // It gets its name when it is complete, so a kill leaves no run without its eval.
        let new = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.directory)?;
        fs_err::write(new.path().join(EVAL_FILE), text)?;
        for number in 1..1000 {
            let more = if number == 1 { String::new() } else { format!(".{number}") };
            let run = self.run(&format!("{time}{more}-{eval}"));
            match std::fs::rename(new.path(), &run.directory) {
                Ok(()) => return Ok(run),
                Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) => return Err(error),
            }
        }
        Err(std::io::Error::other("a thousand runs began in this second"))
    }

    fn run(&self, name: &str) -> EvalRun {
        EvalRun { directory: self.directory.join(name) }
    }
}

impl EvalRun {
    /// Its name.
    pub fn name(&self) -> &str {
        self.directory.file_name().unwrap_or_default()
    }

    /// Where its trials, results and report are.
    pub fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// The copy of the eval as it was.
    pub fn eval_file(&self) -> Utf8PathBuf {
        self.directory.join(EVAL_FILE)
    }

    /// Opens its journal of trials.
    pub fn journal(&self) -> Result<Journal, JournalError> {
        Journal::open(self.directory.join("trials.jsonl").as_std_path())
    }

    /// Writes the results: `document` is the summary as JSON. The parent directory gets a copy of the last results.
    pub fn write_results(
        &self,
        document: &str,
        summary: &Summary,
        records: &[Record],
    ) -> std::io::Result<()> {
        fs_err::write(self.directory.join("results.json"), document)?;
        fs_err::write(self.directory.join("report.html"), html(summary, records))?;
        if let Some(all) = self.directory.parent() {
            fs_err::write(all.join("last-report.json"), document)?;
        }
        Ok(())
    }
}
