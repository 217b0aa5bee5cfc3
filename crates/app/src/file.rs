//! Text files that people write.

use std::io::Read;

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use rehearsal_core::{Place, SourceError};

const LONGEST_FILE: u64 = 4 << 20;

/// Why a text cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum FileError {
    #[error("there is no file `{0}`")]
    Missing(Utf8PathBuf),
    #[error("`{0}` is a directory")]
    Directory(Utf8PathBuf),
    /// A pipe would be waited for, and a device never ends.
    #[error("`{0}` is not a regular file")]
    NotRegular(Utf8PathBuf),
    #[error("`{name}` is too large: at most {} MiB are read", limit >> 20)]
    TooLarge { name: String, limit: u64 },
    #[error("{}: {}", located(file, error), error.message)]
    Wrong { file: String, error: SourceError },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl FileError {
    pub(crate) fn wrong(error: SourceError, file: impl Into<String>) -> Self {
        Self::Wrong { file: file.into(), error }
    }
}

fn located(file: &str, error: &SourceError) -> String {
    error.place.map_or_else(|| file.to_owned(), |place| format!("{file}:{place}"))
}

/// A text file that a person wrote; none if it is not there.
pub fn read_text(path: &Utf8Path) -> Result<Option<String>, FileError> {
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(FileError::Directory(path.to_owned())),
        Ok(metadata) if !metadata.is_file() => return Err(FileError::NotRegular(path.to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    read_all(fs_err::File::open(path)?, path.as_str(), LONGEST_FILE).map(Some)
}

/// Whether a file is YAML, by its name.
pub(crate) fn is_yaml(path: &Utf8Path) -> bool {
    matches!(path.extension(), Some("yaml" | "yml"))
}

/// The YAML files in a directory, in order; none if it is not there.
pub(crate) fn yaml_files(directory: &Utf8Path) -> std::io::Result<Vec<Utf8PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let paths = directory.read_dir_utf8()?.map(|entry| entry.map(Utf8DirEntry::into_path));
    let mut files = paths.collect::<Result<Vec<_>, _>>()?;
    files.retain(|path| is_yaml(path));
    files.sort();
    Ok(files)
}

/// All of a text that someone hands to us, like standard input.
pub fn read_input(from: impl Read, name: &str) -> Result<String, FileError> {
    read_all(from, name, LONGEST_FILE)
}

/// All of a text, up to a limit in bytes.
pub fn read_all(from: impl Read, name: &str, limit: u64) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge { name: name.to_owned(), limit });
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = 1 + before.matches('\n').count() as u64;
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
        let place = Some(Place { line, column });
        FileError::wrong(SourceError::at(place, "this is not text: it is not valid UTF-8"), name)
    })
}
