//! An eval of what another tool has, or of the project's own history.

mod beside;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::SourceError;
use rehearsal_eval::import::{Format, Imported, Note, Wanted, history, promptfoo, safe_name, swe_bench};
use rehearsal_eval::mining::{MiningLimits, MiningStats, TriedCommit, mine};
use rehearsal_git::GitError;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Evals;
use crate::file::{FileError, read_all};
use crate::project::{Project, ProjectError};
use beside::{find_clone, read_below};

/// Data sets are larger than what people write.
const LONGEST_IMPORT: u64 = 64 << 20;
/// More YAML is not what a person wrote.
const LONGEST_YAML: u64 = 4 << 20;
/// As many cases as a first eval needs.
const MOST_CASES: usize = 20;

/// Where an imported eval goes, and how it is called.
#[derive(Debug, Clone)]
pub struct ImportTo {
    /// Its name; none: as what it comes from.
    pub name: Option<String>,
    /// Where it is written.
    pub output: ImportOutput,
}

/// Where an imported eval is written.
#[derive(Debug, Clone)]
pub enum ImportOutput {
    /// To `.rehearsal/evals/NAME.yaml`.
    Usual,
    /// To this file.
    File(Utf8PathBuf),
    /// Nowhere: it is in the document.
    Document,
}

/// A file of another tool.
#[derive(Debug, Clone)]
pub struct ImportFile {
    /// Its text, if it does not come from a file.
    pub text: Option<String>,
    /// The file, or what the text is called.
    pub path: Utf8PathBuf,
    /// What it is; none: its content tells.
    pub format: Option<Format>,
    /// Who judges, if the file does not say it.
    pub judge: Option<String>,
    /// Where the clones of repositories are; none: beside the eval.
    pub repository: Option<Utf8PathBuf>,
    /// At most this many cases.
    pub most: Option<usize>,
}

/// Which commits of the project's history become cases.
#[derive(Debug, Clone)]
pub struct ImportHistory {
    /// How many commits are looked at, the newest first.
    pub commits: usize,
    /// At most this many cases.
    pub most: Option<usize>,
    /// The longest that trying one commit may take.
    pub timeout: Duration,
}

/// `eval import --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportDocument {
    /// The name of the eval.
    pub eval: String,
    /// The file that was written; none if it went to standard output.
    pub file: Option<String>,
    /// The eval itself, if it went to standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many cases it has.
    pub cases: usize,
    /// What was left out, or is another now.
    pub notes: Vec<Note>,
    /// What was looked at, of a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<MiningStats>,
}

/// What a history came to.
#[derive(Debug)]
pub enum Mined {
    /// Cases were found.
    Eval(ImportDocument),
    /// None were found.
    Nothing(MiningStats),
}

/// Why nothing can be imported.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum ImportError {
    #[error("`{place}` looks like nothing that can be imported")]
    UnknownFormat { place: Utf8PathBuf },
    #[error("`{name}` cannot be the name of an eval")]
    Name { name: String },
    #[error("`{file}` is already there")]
    Exists { file: String },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Git(GitError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Imports a file of another tool.
pub fn import(project: &Project, file: ImportFile, to: ImportTo) -> Result<ImportDocument, ImportError> {
    let directory = &project.caller.directory;
    let path = directory.join(&file.path);
    let text = match file.text {
        Some(text) => text,
        None => read(&path)?,
    };
    let target = Target::of(to, file.path.file_stem().unwrap_or("imported"), project)?;
    let beside = path.parent().unwrap_or(Utf8Path::new("."));
    let wanted = Wanted {
        name: &target.name,
        judge: file.judge.as_deref(),
        most: file.most,
        read: &|path| read_below(beside, path),
    };
    let unknown = || ImportError::UnknownFormat { place: file.path.clone() };
    let imported = match file.format.or_else(|| Format::of(&text)).ok_or_else(unknown)? {
        Format::Promptfoo if text.len() as u64 > LONGEST_YAML => {
            let name = file.path.to_string();
            return Err(FileError::TooLarge { name, limit: LONGEST_YAML }.into());
        }
        Format::Promptfoo => promptfoo(&text, &wanted),
        Format::SweBench => {
            let beside = || target.directory(&project.directory()).join("repositories");
            let clones = file.repository.as_ref().map_or_else(beside, |given| directory.join(given));
            let clones = clones.canonicalize_utf8().unwrap_or(clones);
            swe_bench(&text, &wanted, &|name| find_clone(&clones, name))
        }
    };
    let wrong = |error: SourceError| FileError::wrong(error, file.path.as_str());
    let Imported { text, cases, notes } = imported.map_err(wrong)?;
    target.write(&text)?;
    Ok(ImportDocument { notes, ..target.document(text, cases) })
}

/// Looks for commits of the project that make a case each: their tests fail before and pass after.
pub async fn import_history(
    evals: &Evals,
    wanted: ImportHistory,
    to: ImportTo,
    progress: impl Fn(TriedCommit),
    stop: &CancellationToken,
) -> Result<Mined, ImportError> {
    let target = Target::of(to, "history", &evals.project)?;
    let surroundings = evals.trial_context(BTreeMap::new(), false).await?;
    let root = &evals.project.root;
    let limits = MiningLimits {
        commits: wanted.commits,
        cases: wanted.most.unwrap_or(MOST_CASES),
        timeout: wanted.timeout,
    };
    let mined = mine(root, limits, &surroundings, progress, stop).await;
    let (mined, stats) = mined.map_err(ImportError::Git)?;
    if mined.is_empty() {
        return Ok(Mined::Nothing(stats));
    }
    // Where the eval is not in the repository, `.` would be another one.
    let directory = target.directory(root);
    let real = directory.canonicalize_utf8();
    let is_inside = real.as_deref().unwrap_or(directory).starts_with(root);
    let path = if is_inside { "." } else { root.as_str() };
    let text = history(&target.name, path, &mined);
    let text = text.map_err(|error| FileError::wrong(error, &*target.shown))?;
    target.write(&text)?;
    let history = Some(stats);
    Ok(Mined::Eval(ImportDocument { history, ..target.document(text, mined.len()) }))
}

fn read(path: &Utf8Path) -> Result<String, ImportError> {
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            Ok(read_all(fs_err::File::open(path)?, path.as_str(), LONGEST_IMPORT)?)
        }
        Ok(_) => Err(FileError::NotRegular(path.to_owned()).into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(FileError::Missing(path.to_owned()).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Where the eval goes, and how it is called.
struct Target {
    name: String,
    /// None is the document.
    path: Option<Utf8PathBuf>,
    shown: String,
}

impl Target {
    fn of(to: ImportTo, like: &str, project: &Project) -> Result<Self, ImportError> {
        let name = match to.name {
            Some(name) if safe_name(&name).as_ref() == Some(&name) => name,
            Some(name) => return Err(ImportError::Name { name }),
            None => safe_name(like).unwrap_or_else(|| "imported".to_owned()),
        };
        let path = match to.output {
            ImportOutput::Document => None,
            ImportOutput::File(path) => Some(project.caller.directory.join(path)),
            ImportOutput::Usual => Some(project.directory().join("evals").join(format!("{name}.yaml"))),
        };
        let shown = path.as_ref().map(|path| project.shown(path)).unwrap_or_default();
        if path.as_ref().is_some_and(|path| path.exists()) {
            return Err(ImportError::Exists { file: shown });
        }
        Ok(Self { name, path, shown })
    }

    /// The directory that paths in the eval are meant from.
    fn directory<'a>(&'a self, otherwise: &'a Utf8Path) -> &'a Utf8Path {
        self.path.as_deref().and_then(Utf8Path::parent).unwrap_or(otherwise)
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(path, text)
    }

    fn document(self, text: String, cases: usize) -> ImportDocument {
        let is_written = self.path.is_some();
        ImportDocument {
            eval: self.name,
            file: is_written.then_some(self.shown),
            text: (!is_written).then_some(text),
            cases,
            notes: Vec::new(),
            history: None,
        }
    }
}
