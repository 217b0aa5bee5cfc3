//! The files of one run: the prompt, the output, what happened, the outcome. None holds a secret.
//!
//! Written directly, not through the runtime's thread pool: these are appends to the page cache, of microseconds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Activity;
use serde::Serialize;

use super::hindrance::{Hindrance, is_disk_full};
use crate::policy::MAX_LOG_BYTES;
use crate::redact::{RedactedStream, Redactor};
use crate::result_file::{REPORT_FILE, RESULT_FILE};

const OUTCOME_FILE: &str = "outcome.json";
/// Written before the agent starts, and not again: it also shows when a run began.
pub(super) const PROMPT_FILE: &str = "prompt.md";

/// The open files of a run.
pub(super) struct RunFiles {
    pub(super) stdout: OutputLog,
    pub(super) stderr: OutputLog,
    pub(super) activity: LogFile,
}

impl RunFiles {
    /// Makes the run's directory ready. What an earlier try left as its result must not be taken for this one's;
    /// the logs of all tries are kept, one after the other.
    pub(super) fn create(run_dir: &Utf8Path, prompt: &str, redactor: &Redactor) -> Result<Self, Hindrance> {
        let hindered = |path: &Utf8Path| {
            let path = path.to_owned();
            move |error: io::Error| Hindrance::of_file(&path, &error)
        };
        fs::create_dir_all(run_dir).map_err(hindered(run_dir))?;
        for stale in [RESULT_FILE, REPORT_FILE, OUTCOME_FILE, PROMPT_FILE] {
            let path = run_dir.join(stale);
            remove(&path).map_err(hindered(&path))?;
        }
        let path = run_dir.join(PROMPT_FILE);
        let write = |mut file: File| file.write_all(redactor.redact(prompt).as_bytes());
        File::create_new(&path).and_then(write).map_err(hindered(&path))?;
        let open = |name: &str| {
            let path = run_dir.join(name);
            LogFile::open(&path).map_err(hindered(&path))
        };
        let output = |name: &str| -> Result<OutputLog, Hindrance> {
            Ok(OutputLog { log: open(name)?, stream: redactor.stream(), clean: Vec::new() })
        };
        Ok(Self {
            stdout: output("stdout.log")?,
            stderr: output("stderr.log")?,
            activity: open("activity.jsonl")?,
        })
    }
}

/// Whatever an agent of an earlier try put there.
fn remove(path: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir_all(path),
        removed => removed,
    }
}

/// A log of what came through a pipe.
pub(super) struct OutputLog {
    log: LogFile,
    stream: RedactedStream,
    clean: Vec<u8>,
}

/// What happened to a log.
#[derive(Debug)]
pub(super) enum LogTrouble {
    /// There is no room: the run cannot go on.
    DiskFull(Hindrance),
    /// The log is incomplete; the run goes on.
    Incomplete(String),
}

impl OutputLog {
    /// Writes bytes to the log; what of them is clear of secrets and can be shown to others now.
    pub(super) fn write(&mut self, bytes: &[u8]) -> (&[u8], Result<(), LogTrouble>) {
        self.clean.clear();
        self.stream.push(bytes, &mut self.clean);
        let written = self.log.write(&self.clean);
        (&self.clean, written)
    }

    /// The same for what was held back, when nothing more comes.
    pub(super) fn finish(&mut self) -> (&[u8], Result<(), LogTrouble>) {
        self.clean.clear();
        self.stream.finish(&mut self.clean);
        let written = self.log.write(&self.clean);
        (&self.clean, written)
    }
}

#[cfg(test)]
impl OutputLog {
    /// A log on a disk that is full.
    pub(super) fn on_full_disk(redactor: &Redactor) -> Self {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let log = LogFile { path: "/dev/full".into(), file: Some(file), room: 100 };
        Self { log, stream: redactor.stream(), clean: Vec::new() }
    }
}

/// A file that only grows, up to a limit.
pub(super) struct LogFile {
    path: Utf8PathBuf,
    /// None once it is full or broken.
    file: Option<File>,
    room: u64,
}

impl LogFile {
    /// The agent can write here too: a link that it left in an earlier try must not lead us elsewhere.
    fn open(path: &Utf8Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            remove(path)?;
        }
        let file = OpenOptions::new().append(true).create(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        Ok(Self { path: path.to_owned(), file: Some(file), room: MAX_LOG_BYTES })
    }

    /// Appends an activity as a line. What a tool was called with stands in the agent's output already.
    pub(super) fn activity(&mut self, activity: &Activity) -> Result<(), LogTrouble> {
        let line = match activity {
            Activity::ToolCalled { tool, detail, arguments: Some(_) } => {
                let (tool, detail) = (tool.clone(), detail.clone());
                serde_json::to_vec(&Activity::ToolCalled { tool, detail, arguments: None })
            }
            activity => serde_json::to_vec(activity),
        };
        let Ok(mut line) = line else {
            return Ok(());
        };
        line.push(b'\n');
        self.write(&line)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LogTrouble> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let fits = bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        let (now, cut) = bytes.split_at(fits);
        self.room -= now.len() as u64;
        let written = file.write_all(now).and_then(|()| {
            if cut.is_empty() { Ok(()) } else { file.write_all(b"\n[cut here: the log is full]\n") }
        });
        match written {
            Ok(()) if cut.is_empty() => Ok(()),
            Ok(()) => {
                self.file = None;
                let size = MAX_LOG_BYTES >> 20;
                Err(LogTrouble::Incomplete(format!(
                    "`{}` was cut at {size} MiB: the agent wrote more",
                    self.path
                )))
            }
            Err(error) => {
                self.file = None;
                let hindrance = Hindrance::of_file(&self.path, &error);
                Err(if is_disk_full(&error) {
                    LogTrouble::DiskFull(hindrance)
                } else {
                    LogTrouble::Incomplete(hindrance.advice)
                })
            }
        }
    }
}

/// Writes `outcome.json`, whole or not at all.
pub(super) fn write_outcome(run_dir: &Utf8Path, record: &impl Serialize) -> Result<(), Hindrance> {
    let path = run_dir.join(OUTCOME_FILE);
    let write = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(run_dir)?;
        // At once: the writer would call the system for every comma.
        file.write_all(&serde_json::to_vec_pretty(record)?)?;
        file.write_all(b"\n")?;
        file.persist(&path)?;
        Ok(())
    };
    write().map_err(|error| Hindrance::of_file(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_cut_with_a_note_and_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("stdout.log")).unwrap();
        let mut log = LogFile::open(&path).unwrap();
        log.room = 5;
        log.write(b"1234").unwrap();
        let Err(LogTrouble::Incomplete(told)) = log.write(b"5678") else { panic!("it was not cut") };
        assert_eq!(told, format!("`{path}` was cut at 256 MiB: the agent wrote more"));
        log.write(b"more").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "12345\n[cut here: the log is full]\n");
    }

    #[test]
    fn what_an_earlier_try_left_does_not_mislead_us() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let run_dir = root.join("run");
        fs::create_dir_all(run_dir.join(RESULT_FILE).join("deep")).unwrap();
        let victim = root.join("victim");
        fs::write(&victim, "untouched").unwrap();
        for name in [PROMPT_FILE, "stdout.log", "activity.jsonl"] {
            std::os::unix::fs::symlink(&victim, run_dir.join(name)).unwrap();
        }
        let redactor = Redactor::new([]);
        let mut files = RunFiles::create(&run_dir, "prompt", &redactor).unwrap();
        files.stdout.write(b"out\n").1.unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(fs::read_to_string(run_dir.join("stdout.log")).unwrap(), "out\n");
        assert!(!run_dir.join(RESULT_FILE).exists());
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_trouble() {
        let mut log = OutputLog::on_full_disk(&Redactor::new([]));
        let (_, Err(LogTrouble::DiskFull(hindrance))) = log.write(b"x\n") else { panic!("it did not fail") };
        assert_eq!(hindrance.outcome.to_string(), "disk_full: no space left at `/dev/full`");
    }
}
