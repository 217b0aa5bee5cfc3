//! What an agent writes into its run directory: `result.json`, and through the report commands `report.jsonl`.
//!
//! The agent owns these files and may put anything there: a pipe, a link to a secret, a gigabyte. So they are
//! opened without following links and without blocking, and read up to a limit.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use camino::Utf8Path;
use rehearsal_core::{Notice, ReportedTask, ResultFile, ResultFileError};
use serde::{Deserialize, Serialize};

use crate::policy::{MAX_REPORT_BYTES, MAX_RESULT_BYTES};
use crate::redact::Redactor;

/// The name of the result file in a run directory.
pub const RESULT_FILE: &str = "result.json";

/// The name of the report in a run directory.
pub const REPORT_FILE: &str = "report.jsonl";

/// Reads the `result.json` of a run; none if it wrote none.
pub fn read_result(run_dir: &Utf8Path) -> Option<Result<ResultFile, ResultFileError>> {
    let content = read_bounded(&run_dir.join(RESULT_FILE), MAX_RESULT_BYTES).transpose()?;
    Some(content.and_then(|content| parse_result(&content)).map_err(|reason| ResultFileError { reason }))
}

fn parse_result(content: &[u8]) -> Result<ResultFile, String> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    if content.trim_ascii().is_empty() {
        return Err("it is empty".to_owned());
    }
    serde_json::from_slice(content).map_err(|error| error.to_string())
}

/// One line of a run's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReportLine {
    /// `rehearsal task done ID`.
    TaskDone {
        /// The id, or a unique prefix.
        id: String,
        /// Why nothing had to change for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// `rehearsal task block ID --reason …`.
    TaskBlocked {
        /// The id, or a unique prefix.
        id: String,
        /// What for.
        #[serde(default)]
        reason: String,
    },
    /// `rehearsal session progress TEXT`.
    Progress {
        /// The text.
        text: String,
    },
}

/// A run's report, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunReportFile {
    /// Tasks it reports on, in order.
    pub tasks: Vec<ReportedTask>,
    /// Lines for the journal, in order.
    pub progress: Vec<String>,
    /// What could not be read.
    pub unreadable: Vec<Notice>,
}

/// Adds a line to a run's report. One write, so that lines of commands side by side do not mix.
pub fn append_report(run_dir: &Utf8Path, line: &ReportLine) -> std::io::Result<()> {
    let path = run_dir.join(REPORT_FILE);
    // A link that an agent put there must not lead who reports in its name to a file that it could not write itself.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = std::fs::OpenOptions::new().append(true).create(true).custom_flags(flags).open(&path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.nlink() > 1 {
        return Err(std::io::Error::other(format!("`{path}` is not a regular file of its own")));
    }
    file.write_all(&json_line(line)?)
}

/// Puts the `result.json` of a run in place whole: a reader never sees half of it.
pub fn write_result(run_dir: &Utf8Path, result: &impl Serialize) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(run_dir)?;
    file.write_all(&json_line(result)?)?;
    file.persist(run_dir.join(RESULT_FILE)).map_err(|error| error.error)?;
    Ok(())
}

fn json_line(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a run's report. Lines that cannot be read are left out and told.
pub fn read_report(run_dir: &Utf8Path) -> RunReportFile {
    let mut report = RunReportFile::default();
    let content = match read_bounded(&run_dir.join(REPORT_FILE), MAX_REPORT_BYTES) {
        Ok(content) => content.unwrap_or_default(),
        Err(reason) => {
            report.unreadable.push(unreadable(None, reason));
            return report;
        }
    };
    for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(ReportLine::TaskDone { id, reason }) => report.tasks.push(ReportedTask::Done { id, reason }),
            Ok(ReportLine::TaskBlocked { id, reason }) => {
                report.tasks.push(ReportedTask::Blocked { id, reason });
            }
            Ok(ReportLine::Progress { text }) => report.progress.push(text),
            Err(error) => {
                report.unreadable.push(unreadable(Some(index + 1), error.to_string()));
            }
        }
    }
    report
}

fn unreadable(line: Option<usize>, error: String) -> Notice {
    Notice::FileUnreadable { file: REPORT_FILE.to_owned(), line, error }
}

/// Rewrites what an agent put into its run directory without the secrets that it wrote there. A file without any
/// stays as it is.
pub(crate) fn scrub(run_dir: &Utf8Path, redactor: &Redactor) -> Result<(), Notice> {
    for name in [RESULT_FILE, REPORT_FILE] {
        let path = run_dir.join(name);
        // What is no file of its own has no content that is ours to clear.
        if let Ok(Some(file)) = open_regular(&path) {
            clear(file, &path, redactor).map_err(|error| Notice::SecretsNotRemoved {
                file: name.to_owned(),
                error: error.to_string(),
            })?;
        }
    }
    Ok(())
}

fn clear(mut file: File, path: &Utf8Path, redactor: &Redactor) -> std::io::Result<()> {
    let mut is_clean = true;
    let (mut seen, mut expected) = (Vec::new(), Vec::new());
    each_redacted(&mut file, redactor, |read, out| {
        // What comes out lags behind what went in.
        expected.extend_from_slice(read);
        seen.extend_from_slice(out);
        let both = seen.len().min(expected.len());
        is_clean &= seen.drain(..both).eq(expected.drain(..both));
        Ok(is_clean)
    })?;
    if is_clean && seen.is_empty() && expected.is_empty() {
        return Ok(());
    }
    file.rewind()?;
    let clean = path.with_extension("clean");
    let mut to = fs_err::File::create(&clean)?;
    each_redacted(&mut file, redactor, |_, out| to.write_all(out).map(|()| true))?;
    fs_err::rename(&clean, path)
}

/// Tells of each piece what was read and what came out without secrets, until the end or until told to stop.
fn each_redacted(
    file: &mut File,
    redactor: &Redactor,
    mut tell: impl FnMut(&[u8], &[u8]) -> std::io::Result<bool>,
) -> std::io::Result<()> {
    let mut stream = redactor.stream();
    let mut chunk = vec![0; 64 << 10];
    let mut out = Vec::new();
    loop {
        let read = file.read(&mut chunk)?;
        match read {
            0 => stream.finish(&mut out),
            _ => stream.push(&chunk[..read], &mut out),
        }
        if !tell(&chunk[..read], &out)? || read == 0 {
            return Ok(());
        }
        out.clear();
    }
}

/// The file's content; none if there is no file.
fn read_bounded(path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, String> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
    let too_large = || format!("it is larger than {} MiB", limit >> 20);
    let mut content = Vec::new();
    // One byte more than allowed: it may grow while we read.
    file.take(limit + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() as u64 > limit { Err(too_large()) } else { Ok(Some(content)) }
}

/// A file that is one; none if there is nothing.
fn open_regular(path: &Utf8Path) -> Result<Option<File>, String> {
    let open = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    let file = match open {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Err("it is a symbolic link".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;
    use rehearsal_core::ResultOutcome;

    use super::*;

    struct RunDir {
        _dir: tempfile::TempDir,
        path: Utf8PathBuf,
    }

    impl RunDir {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
            Self { _dir: dir, path }
        }

        fn refused(&self) -> String {
            read_result(&self.path).unwrap().unwrap_err().to_string()
        }

        fn refused_with(content: impl AsRef<[u8]>) -> String {
            let dir = Self::new();
            fs_err::write(dir.path.join(RESULT_FILE), content).unwrap();
            dir.refused()
        }
    }

    #[test]
    fn a_result_is_read_and_its_absence_is_no_error() {
        let dir = RunDir::new();
        assert_eq!(read_result(&dir.path), None);
        let content = r#"{"outcome": "blocked", "reason": "no key", "unknown": 1}"#;
        fs_err::write(dir.path.join(RESULT_FILE), content).unwrap();
        let result = read_result(&dir.path).unwrap().unwrap();
        assert_eq!(result.outcome, Some(ResultOutcome::Blocked));
        assert_eq!(result.reason.as_deref(), Some("no key"));
    }

    #[test]
    fn a_broken_result_says_where_it_breaks() {
        assert_eq!(RunDir::refused_with(""), "`result.json` cannot be used: it is empty");
        assert_eq!(
            RunDir::refused_with("{\"outcome\": \"great\"}"),
            "`result.json` cannot be used: unknown variant `great`, expected one of `success`, `failure`, \
             `needs_continuation`, `blocked` at line 1 column 19"
        );
        assert_eq!(
            RunDir::refused_with("{\"outcome\": \"succ"),
            "`result.json` cannot be used: EOF while parsing a string at line 1 column 17"
        );
        assert_eq!(
            RunDir::refused_with(vec![b' '; 1 << 21]),
            "`result.json` cannot be used: it is larger than 1 MiB"
        );
    }

    #[test]
    fn a_link_a_pipe_and_a_directory_are_refused() {
        let dir = RunDir::new();
        std::os::unix::fs::symlink("/etc/hostname", dir.path.join(RESULT_FILE)).unwrap();
        assert_eq!(dir.refused(), "`result.json` cannot be used: it is a symbolic link");
        let dir = RunDir::new();
        fs_err::create_dir(dir.path.join(RESULT_FILE)).unwrap();
        assert_eq!(dir.refused(), "`result.json` cannot be used: it is not a regular file");
        let dir = RunDir::new();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let (fifo, path) = (rustix::fs::FileType::Fifo, dir.path.join(RESULT_FILE));
        rustix::fs::mknodat(rustix::fs::CWD, path.as_std_path(), fifo, mode, 0).unwrap();
        assert_eq!(dir.refused(), "`result.json` cannot be used: it is not a regular file");
    }

    #[test]
    fn a_report_is_read_back_and_bad_lines_are_told() {
        let dir = RunDir::new();
        append_report(&dir.path, &ReportLine::TaskDone { id: "a1".into(), reason: None }).unwrap();
        append_report(&dir.path, &ReportLine::Progress { text: "half\nway".into() }).unwrap();
        let path = dir.path.join(REPORT_FILE);
        fs_err::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"type\":\"x\"}\n\n")
            .unwrap();
        append_report(&dir.path, &ReportLine::TaskBlocked { id: "b2".into(), reason: "why".into() }).unwrap();
        let report = read_report(&dir.path);
        assert_eq!(
            report.tasks,
            [
                ReportedTask::Done { id: "a1".into(), reason: None },
                ReportedTask::Blocked { id: "b2".into(), reason: "why".into() }
            ]
        );
        assert_eq!(report.progress, ["half\nway"]);
        assert_eq!(
            report.unreadable,
            [unreadable(
                Some(3),
                "unknown variant `x`, expected one of `task_done`, `task_blocked`, `progress` at line 1 column 11"
                    .into()
            )]
        );
    }

    #[test]
    fn a_report_does_not_follow_a_link_and_does_not_wait_for_a_pipe() {
        let line = ReportLine::Progress { text: "x".into() };
        let dir = RunDir::new();
        let (path, elsewhere) = (dir.path.join(REPORT_FILE), dir.path.join("elsewhere"));
        fs_err::write(&elsewhere, "theirs").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        append_report(&dir.path, &line).unwrap_err();
        fs_err::remove_file(&path).unwrap();
        fs_err::hard_link(&elsewhere, &path).unwrap();
        let refused = append_report(&dir.path, &line).unwrap_err().to_string();
        assert!(refused.ends_with("/report.jsonl` is not a regular file of its own"), "{refused}");
        assert_eq!(fs_err::read_to_string(elsewhere).unwrap(), "theirs");
        fs_err::remove_file(&path).unwrap();
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, path.as_std_path(), fifo, mode, 0).unwrap();
        append_report(&dir.path, &line).unwrap_err();
    }

    #[test]
    fn what_an_agent_wrote_is_kept_without_its_secrets() {
        let dir = RunDir::new();
        let secret = "hunter2-hunter2-hunter2".to_owned();
        append_report(&dir.path, &ReportLine::Progress { text: format!("I use {secret}") }).unwrap();
        let (path, elsewhere) = (dir.path.join(RESULT_FILE), dir.path.join("elsewhere"));
        fs_err::write(&elsewhere, &secret).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        scrub(&dir.path, &Redactor::new([(&"MY_API_KEY".to_owned(), &secret)])).unwrap();
        assert_eq!(read_report(&dir.path).progress, ["I use [redacted:MY_API_KEY]"]);
        assert_eq!(fs_err::read_to_string(elsewhere).unwrap(), secret, "a link is not followed");
    }

    #[test]
    fn a_file_without_secrets_is_left_alone() {
        let dir = RunDir::new();
        let path = dir.path.join(RESULT_FILE);
        // Of more than one piece, and with an end that might be the beginning of a secret.
        let content = format!("{}hunter2", "harmless words, ".repeat(10_000));
        fs_err::write(&path, &content).unwrap();
        let inode = || fs_err::metadata(&path).unwrap().ino();
        let before = inode();
        scrub(&dir.path, &Redactor::new([(&"MY_API_KEY".to_owned(), &"hunter2-hunter2".to_owned())]))
            .unwrap();
        assert_eq!((inode(), fs_err::read_to_string(&path).unwrap()), (before, content));
    }

    #[test]
    fn no_report_is_an_empty_report() {
        assert_eq!(read_report(&RunDir::new().path), RunReportFile::default());
    }
}
