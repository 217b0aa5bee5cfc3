//! Which call this is: a number in a file, counted up under a lock.

use std::io::{Read, Seek, Write};

use camino::Utf8Path;

use super::error::MockError;

/// Counts this call, and returns its number: the first is 1.
pub(super) fn advance(path: &Utf8Path) -> Result<u64, MockError> {
    let mut file = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(MockError::file)?;
    file.file().lock().map_err(|source| MockError::Io { what: format!("lock `{path}`"), source })?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(MockError::file)?;
    let calls: u64 = match text.trim() {
        "" => 0,
        number => {
            number.parse().map_err(|_| MockError::State { path: path.to_owned(), text: number.to_owned() })?
        }
    };
    let call = calls + 1;
    file.rewind().map_err(MockError::file)?;
    writeln!(file, "{call}").map_err(MockError::file)?;
    Ok(call)
}
