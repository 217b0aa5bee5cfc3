//! The program while it runs: waited for, looked at, interrupted.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::env::{Output, TestEnv};

/// Longer than anything takes on the slowest machine; only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A program that was started and is ended with the test.
pub(crate) struct Running<'a> {
    env: &'a TestEnv,
    child: Child,
    stdout: Stream,
    stderr: Stream,
}

struct Stream {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl<'a> Running<'a> {
    pub(crate) fn start(env: &'a TestEnv, command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Stream::of(child.stdout.take().unwrap());
        let stderr = Stream::of(child.stderr.take().unwrap());
        Self { env, child, stdout, stderr }
    }

    /// Waits until it has said something, on either stream.
    #[track_caller]
    pub(crate) fn until_it_says(&self, text: &str) {
        wait_until(text, || self.stdout.so_far().contains(text) || self.stderr.so_far().contains(text));
    }

    /// What it has said so far on standard output.
    pub(crate) fn said(&self) -> String {
        self.stdout.so_far()
    }

    /// Sends a signal to the program alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Output {
        wait_until("the end of the program", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        let output = std::process::Output { status, stdout: self.stdout.all(), stderr: self.stderr.all() };
        Output::new(&output, &self.env.stable())
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // It may have ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stream {
    fn of(source: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let so_far = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            let mut line = Vec::new();
            while source.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                so_far.lock().unwrap().append(&mut line);
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    fn all(&mut self) -> Vec<u8> {
        self.reader.take().unwrap().join().unwrap();
        std::mem::take(&mut *self.text.lock().unwrap())
    }
}

/// Waits for a condition, which has to come true in the end.
#[track_caller]
pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    let mut condition = condition;
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}
