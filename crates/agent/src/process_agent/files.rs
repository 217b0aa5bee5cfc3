//! The files of one run: the prompt, the output, what happened, the outcome. None holds a secret.
//!
//! Written directly, not through the runtime's thread pool: these are appends to the page cache, of microseconds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Activity, ActivityLine, Notice, Timestamp};
use serde::{Deserialize, Serialize};

use super::hindrance::{Hindrance, is_disk_full};
use super::spool::Spool;
use crate::policy::{MAX_LOG_BYTES, READ_CHUNK, STDERR_TAIL};
use crate::redact::{RedactedStream, Redactor};
use crate::result_file::{REPORT_FILE, RESULT_FILE};

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
        for stale in [RESULT_FILE, REPORT_FILE, PROMPT_FILE] {
            let path = run_dir.join(stale);
            remove(&path).map_err(hindered(&path))?;
        }
        let path = run_dir.join(PROMPT_FILE);
        let write = |mut file: File| file.write_all(redactor.redact(prompt).as_bytes());
        File::create_new(&path).and_then(write).map_err(hindered(&path))?;
        Self::open(run_dir, redactor)
    }

    fn open(run_dir: &Utf8Path, redactor: &Redactor) -> Result<Self, Hindrance> {
        let open = |name: &str| {
            let path = run_dir.join(name);
            LogFile::open(&path).map_err(|error| Hindrance::of_file(&path, &error))
        };
        Ok(Self {
            stdout: OutputLog::new(open(STDOUT_LOG)?, redactor),
            stderr: OutputLog::new(open(STDERR_LOG)?, redactor),
            activity: open(ACTIVITY_LOG)?,
        })
    }

    /// How long the logs are.
    pub(super) fn lengths(&self) -> LogLengths {
        let Self { stdout, stderr, activity } = self;
        LogLengths { stdout: stdout.log.length, stderr: stderr.log.length, activity: activity.length }
    }

    /// The files of a run whose worker died, and what it had heard: all that stands in them since the run began. The
    /// beginning of a line that is still in the spool is cut off.
    pub(super) fn found(
        run_dir: &Utf8Path,
        redactor: &Redactor,
        began: LogLengths,
        spool: Spool,
    ) -> Result<(Self, Heard), Hindrance> {
        let mut files = Self::open(run_dir, redactor)?;
        let LogLengths { stdout, stderr, activity } = files.lengths();
        let mark = spool.mark();
        files.stdout.log.cut_at(mark.log.max(began.stdout));
        files.stdout.is_in_cut_line = mark.is_within_line;
        files.stdout.spool = Some(spool);
        for (log, began) in [
            (&mut files.stdout.log, began.stdout),
            (&mut files.stderr.log, began.stderr),
            (&mut files.activity, began.activity),
        ] {
            log.room = MAX_LOG_BYTES.saturating_sub(log.length.saturating_sub(began));
        }
        let tail = began.stderr.max(stderr.saturating_sub(STDERR_TAIL as u64));
        let heard = Heard {
            stdout: Reread::open(&run_dir.join(STDOUT_LOG), began.stdout, stdout.min(mark.log)),
            stderr: Reread::open(&run_dir.join(STDERR_LOG), tail, stderr),
            activities: Reread::open(&run_dir.join(ACTIVITY_LOG), began.activity, activity).lines(),
        };
        Ok((files, heard))
    }
}

pub(super) const STDOUT_LOG: &str = "stdout.log";
const STDERR_LOG: &str = "stderr.log";
const ACTIVITY_LOG: &str = "activity.jsonl";

/// How long the logs of a run were at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogLengths {
    stdout: u64,
    stderr: u64,
    activity: u64,
}

impl LogLengths {
    pub(super) fn stdout(self) -> u64 {
        self.stdout
    }
}

/// What a worker had heard of an agent before it died.
pub(super) struct Heard {
    pub(super) stdout: Reread,
    /// The end of it.
    pub(super) stderr: Reread,
    /// How many activities were told.
    pub(super) activities: u64,
}

/// A part of a log, read again piece by piece. The agent can write there too: whatever it made of its own words, they
/// are nobody else's.
pub(super) struct Reread {
    file: Option<File>,
    left: u64,
}

impl Reread {
    fn open(path: &Utf8Path, from: u64, until: u64) -> Self {
        let open = || -> io::Result<File> {
            let mut options = OpenOptions::new();
            // What became a pipe meanwhile must not keep us waiting.
            let mut file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
            file.seek(SeekFrom::Start(from))?;
            Ok(file)
        };
        let left = until.saturating_sub(from).min(MAX_LOG_BYTES);
        Self { file: open().ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file())), left }
    }

    /// The next piece; none at the end.
    pub(super) fn next<'a>(&mut self, chunk: &'a mut [u8]) -> Option<&'a [u8]> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(chunk.len());
        let read = self.file.as_mut()?.read(&mut chunk[..most]).ok().filter(|read| *read > 0)?;
        self.left -= read as u64;
        Some(&chunk[..read])
    }

    fn lines(mut self) -> u64 {
        let (mut lines, mut chunk) = (0, vec![0; READ_CHUNK]);
        while let Some(piece) = self.next(&mut chunk) {
            lines += memchr::memchr_iter(b'\n', piece).count() as u64;
        }
        lines
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
    /// Where the bytes come from, if they are to survive us.
    pub(super) spool: Option<Spool>,
    /// The rest of a line of which the beginning is lost, which is passed over.
    is_in_cut_line: bool,
}

/// What happened to a log.
#[derive(Debug)]
pub(super) enum LogTrouble {
    /// There is no room: the run cannot go on.
    DiskFull(Hindrance),
    /// The log is incomplete; the run goes on.
    Incomplete(Notice),
}

impl OutputLog {
    fn new(log: LogFile, redactor: &Redactor) -> Self {
        Self { log, stream: redactor.stream(), clean: Vec::new(), spool: None, is_in_cut_line: false }
    }

    /// Writes bytes to the log; what of them is clear of secrets and can be shown to others now.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> (&[u8], Result<(), LogTrouble>) {
        self.clean.clear();
        if self.is_in_cut_line {
            let end = memchr::memchr(b'\n', bytes);
            self.is_in_cut_line = end.is_none();
            bytes = &bytes[end.unwrap_or(bytes.len())..];
        }
        let lines = self.spool.as_ref().and_then(|_| memchr::memrchr(b'\n', bytes)).map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(lines);
        let mut written = self.append(lines);
        if let Some(spool) = self.spool.as_mut().filter(|_| !lines.is_empty()) {
            // The memory for it is there since the beginning: it cannot fail.
            let _ = spool.written(rest.len(), self.log.length);
        }
        written = written.and(self.append(rest));
        if let Some(spool) = &mut self.spool {
            let _ = spool.written_in_part(self.log.length);
        }
        (&self.clean, written)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), LogTrouble> {
        let from = self.clean.len();
        self.stream.push(bytes, &mut self.clean);
        self.log.write(&self.clean[from..])
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
        Self::new(LogFile { path: "/dev/full".into(), file: Some(file), length: 0, room: 100 }, redactor)
    }
}

/// A file that only grows, up to a limit.
pub(super) struct LogFile {
    path: Utf8PathBuf,
    /// None once it is full or broken.
    file: Option<File>,
    length: u64,
    room: u64,
}

impl LogFile {
    /// The agent can write here too: a link that it left in an earlier try must not lead us elsewhere.
    fn open(path: &Utf8Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            remove(path)?;
        }
        let file = OpenOptions::new().append(true).create(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file: Some(file), length, room: MAX_LOG_BYTES })
    }

    fn cut_at(&mut self, length: u64) {
        if let Some(file) = self.file.as_ref().filter(|_| length < self.length)
            && file.set_len(length).is_ok()
        {
            self.length = length;
        }
    }

    /// Appends an activity as a line. What a tool was called with stands in the agent's output already.
    pub(super) fn activity(&mut self, activity: &Activity, at: Timestamp) -> Result<(), LogTrouble> {
        let mut activity = activity.clone();
        if let Activity::ToolCalled { arguments, .. } = &mut activity {
            *arguments = None;
        }
        let Ok(mut line) = serde_json::to_vec(&ActivityLine { at: Some(at), activity }) else {
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
        self.length += now.len() as u64;
        let written = file.write_all(now).and_then(|()| {
            if cut.is_empty() { Ok(()) } else { file.write_all(b"\n[cut here: the log is full]\n") }
        });
        match written {
            Ok(()) if cut.is_empty() => Ok(()),
            Ok(()) => {
                self.file = None;
                let (path, limit_mib) = (self.path.to_string(), MAX_LOG_BYTES >> 20);
                Err(LogTrouble::Incomplete(Notice::LogCut { path, limit_mib }))
            }
            Err(error) => {
                self.file = None;
                let hindrance = Hindrance::of_file(&self.path, &error);
                Err(if is_disk_full(&error) {
                    LogTrouble::DiskFull(hindrance)
                } else {
                    LogTrouble::Incomplete(*hindrance.notice)
                })
            }
        }
    }
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
        assert_eq!(told, Notice::LogCut { path: path.to_string(), limit_mib: 256 });
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

    /// Lets an agent's words go through the spool into the log.
    fn hear(files: &mut RunFiles, agent: &mut (io::PipeReader, io::PipeWriter), words: &[u8]) {
        agent.1.write_all(words).unwrap();
        let mut chunk = vec![0; READ_CHUNK];
        let count = files.stdout.spool.as_mut().unwrap().fill_from(&agent.0, &mut chunk).unwrap();
        assert_eq!(count, words.len());
        files.stdout.write(&chunk[..count]).1.unwrap();
    }

    fn reread(mut part: Reread) -> String {
        let (mut all, mut chunk) = (Vec::new(), [0; 64]);
        while let Some(piece) = part.next(&mut chunk) {
            all.extend_from_slice(piece);
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn what_a_worker_left_is_read_again_up_to_its_last_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = Utf8Path::from_path(dir.path()).unwrap();
        fs::write(run_dir.join(STDOUT_LOG), "of another time\n").unwrap();
        let redactor = Redactor::new([]);
        let mut files = RunFiles::create(run_dir, "", &redactor).unwrap();
        let began = files.lengths();
        let spool = Spool::new(began.stdout()).unwrap();
        let kept = spool.duplicates().unwrap();
        files.stdout.spool = Some(spool);
        let mut agent = io::pipe().unwrap();
        let long = "x".repeat(1000);
        hear(&mut files, &mut agent, format!("one\ntwo {long}").as_bytes());
        drop(files);
        assert!(fs::read_to_string(run_dir.join(STDOUT_LOG)).unwrap().contains("one\ntwo xxx"));

        let spool = Spool::found(kept).unwrap();
        let (mut files, heard) = RunFiles::found(run_dir, &redactor, began, spool).unwrap();
        assert_eq!(reread(heard.stdout), "one\n");
        let mut chunk = vec![0; READ_CHUNK];
        let count = files.stdout.spool.as_mut().unwrap().next(&mut chunk).unwrap();
        files.stdout.write(&chunk[..count]).1.unwrap();
        hear(&mut files, &mut agent, b"\nthree\n");
        let log = fs::read_to_string(run_dir.join(STDOUT_LOG)).unwrap();
        assert_eq!(log, format!("of another time\none\ntwo {long}\nthree\n"));
    }

    #[test]
    fn of_a_line_that_is_too_long_to_be_kept_the_rest_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = Utf8Path::from_path(dir.path()).unwrap();
        let redactor = Redactor::new([]);
        let mut files = RunFiles::create(run_dir, "", &redactor).unwrap();
        let (began, spool) = (files.lengths(), Spool::new(0).unwrap());
        let kept = spool.duplicates().unwrap();
        files.stdout.spool = Some(spool);
        let mut agent = io::pipe().unwrap();
        let part = "x".repeat(1 << 15);
        for _ in 0..=(crate::policy::MAX_SPOOLED >> 15) {
            hear(&mut files, &mut agent, part.as_bytes());
        }
        drop(files);
        let spool = Spool::found(kept).unwrap();
        let (mut files, _) = RunFiles::found(run_dir, &redactor, began, spool).unwrap();
        for words in [b"the rest of a secret".as_slice(), b", and its end\nnext\n"] {
            hear(&mut files, &mut agent, words);
        }
        let log = fs::read_to_string(run_dir.join(STDOUT_LOG)).unwrap();
        assert!(log.ends_with("xxx\nnext\n"), "{}", &log[log.len() - 80..]);
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_trouble() {
        let mut log = OutputLog::on_full_disk(&Redactor::new([]));
        let (_, Err(LogTrouble::DiskFull(hindrance))) = log.write(b"x\n") else { panic!("it did not fail") };
        assert_eq!(hindrance.outcome.to_string(), "disk_full: no space left at `/dev/full`");
    }
}
