//! Where the runs of evals are kept: `.rehearsal/state/evals/RUN/`.

use camino::{Utf8Path, Utf8PathBuf};
use jiff::tz::TimeZone;
use rehearsal_app::project::Project;
use rehearsal_core::Timestamp;
use rehearsal_eval::report::html;
use rehearsal_eval::summary::{Record, Summary};

use crate::error::CliError;
use crate::ui::Document;

/// The copy of the eval in a run.
const EVAL_FILE: &str = "eval.yaml";
/// How the names of directories begin that are no run yet.
const UNFINISHED: &str = ".new-";

/// All runs of a project.
pub(super) struct Runs {
    directory: Utf8PathBuf,
}

/// One run of an eval.
#[derive(Debug, Clone)]
pub(super) struct EvalRun {
    directory: Utf8PathBuf,
}

impl Runs {
    pub(super) fn of(project: &Project) -> Self {
        Self { directory: project.state_dir().join("evals") }
    }

    /// The names, the oldest first: they begin with the time.
    pub(super) fn names(&self) -> Result<Vec<String>, CliError> {
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

    /// A run with this name or a unique part of it; without a name the last one.
    pub(super) fn find(&self, name: Option<&str>) -> Result<EvalRun, CliError> {
        let names = self.names()?;
        let none = || CliError::usage("no eval was run yet").hint("`rehearsal eval run` runs them");
        let Some(name) = name else {
            return Ok(self.run(names.last().ok_or_else(none)?));
        };
        let exact = names.iter().find(|known| *known == name);
        let mut parts = names.iter().filter(|known| known.contains(name));
        match (exact, parts.next(), parts.next()) {
            (Some(known), _, _) | (None, Some(known), None) => Ok(self.run(known)),
            (None, Some(_), Some(_)) => {
                Err(CliError::usage(format!("`{name}` is in the name of several runs"))
                    .hint("`rehearsal eval list` shows them"))
            }
            (None, None, _) => {
                Err(CliError::usage(format!("there is no run `{name}`"))
                    .hint("`rehearsal eval list` shows them"))
            }
        }
    }

    /// The last run of an eval.
    pub(super) fn last_of(&self, eval: &str) -> Result<Option<EvalRun>, CliError> {
        // A date, a time, and the eval, whose name may have dashes too.
        let is_of = |name: &&String| name.splitn(3, '-').nth(2) == Some(eval);
        Ok(self.names()?.iter().rev().find(is_of).map(|name| self.run(name)))
    }

    /// A new one, with a copy of the eval as it is now.
    pub(super) fn create(&self, eval: &str, text: &str, now: Timestamp) -> Result<EvalRun, CliError> {
        let at = jiff::Timestamp::from_millisecond(now.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let time = at.to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S").to_string();
        fs_err::create_dir_all(&self.directory)?;
        // It gets its name when it is whole: a kill leaves no run without its eval.
        let new = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.directory)?;
        fs_err::write(new.path().join(EVAL_FILE), text)?;
        for number in 1..1000 {
            let more = if number == 1 { String::new() } else { format!(".{number}") };
            let run = self.run(&format!("{time}{more}-{eval}"));
            match std::fs::rename(new.path(), &run.directory) {
                Ok(()) => return Ok(run),
                Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(CliError::usage("a thousand runs began in this second"))
    }

    fn run(&self, name: &str) -> EvalRun {
        EvalRun { directory: self.directory.join(name) }
    }
}

impl EvalRun {
    pub(super) fn name(&self) -> &str {
        self.directory.file_name().unwrap_or_default()
    }

    pub(super) fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// The eval as it was.
    pub(super) fn eval_file(&self) -> Utf8PathBuf {
        self.directory.join(EVAL_FILE)
    }

    pub(super) fn trials(&self) -> Utf8PathBuf {
        self.directory.join("trials.jsonl")
    }

    /// Writes what it came to: here, and as the last report of all.
    pub(super) fn write_results(&self, summary: &Summary, records: &[Record]) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(&Document::new(summary)).unwrap_or_default();
        fs_err::write(self.directory.join("results.json"), &text)?;
        fs_err::write(self.directory.join("report.html"), html(summary, records))?;
        if let Some(all) = self.directory.parent() {
            fs_err::write(all.join("last-report.json"), &text)?;
        }
        Ok(())
    }
}
