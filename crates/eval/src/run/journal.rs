//! Where trials are written down: JSON lines, one write for each.
//!
//! **Invariant:** a trial is told as over only when its line is with the kernel. However this process ends then, the trial is not lost; when
//! the machine ends, the last ones may be, and they are missing as if they had not been made.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::summary::Record;

/// The trials of one run of an eval.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    records: Vec<Record>,
}

/// Why trials cannot be written down or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be used.
    #[error("cannot use `{}`", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Someone else writes to it.
    #[error("`{}` is in use by another run", path.display())]
    InUse {
        /// Which.
        path: PathBuf,
    },
    /// A line of it is not a trial.
    #[error("`{}` has a line that is no trial: line {line}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl Journal {
    /// Opens it, or makes it. What was being written when a run was killed is cut off: that trial is not over.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |source| JournalError::File { path: path.to_owned(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(JournalError::InUse { path: path.to_owned() });
            }
            Err(std::fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
        let (records, whole) = read(&mut file, path)?;
        file.set_len(whole).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, records })
    }

    /// What is in it, the oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Writes a trial down.
    pub fn add(&mut self, record: &Record) -> Result<(), JournalError> {
        let failed = |source| JournalError::File { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(record).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(failed)?;
        self.records.push(record.clone());
        Ok(())
    }
}

/// All whole lines, and how long they are together.
fn read(file: &mut File, path: &Path) -> Result<(Vec<Record>, u64), JournalError> {
    let failed = |source| JournalError::File { path: path.to_owned(), source };
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut reader = BufReader::new(file);
    let (mut records, mut whole, mut line) = (Vec::new(), 0, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(failed)?;
        if line.last() != Some(&b'\n') {
            return Ok((records, whole));
        }
        whole += read as u64;
        let record = serde_json::from_slice(&line).map_err(|source| JournalError::Damaged {
            path: path.to_owned(),
            line: records.len() + 1,
            source,
        })?;
        records.push(record);
    }
}
