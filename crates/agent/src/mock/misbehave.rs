//! What no good agent does, and every agent does some day.

use std::io::Write;
use std::time::Duration;

use super::actions::SignalName;
use super::error::MockError;

const MEGABYTE: usize = 1 << 20;
const LINE: usize = 128;
/// Takes the place of a replacement character: no text in any UTF-8.
const NOT_UTF8: &[u8] = b"\xff\xc3\x28";

/// Text without sense, in lines or in one.
pub(super) fn flood(megabytes: u32, newline: bool) -> Result<(), MockError> {
    let mut chunk = vec![b'x'; MEGABYTE];
    if newline {
        chunk.iter_mut().skip(LINE - 1).step_by(LINE).for_each(|byte| *byte = b'\n');
    }
    for _ in 0..megabytes {
        print(&chunk)?;
    }
    if newline { Ok(()) } else { print(b"\n") }
}

/// A line, cut in its middle.
pub(super) fn print_half(line: &str) -> Result<(), MockError> {
    print(&[&line.as_bytes()[..line.len() / 2], b"\n"].concat())
}

/// A line whose replacement character is no longer UTF-8.
pub(super) fn print_broken(line: &str) -> Result<(), MockError> {
    let (line, mark) = (line.as_bytes(), "\u{fffd}".as_bytes());
    let at = memchr::memmem::find(line, mark).unwrap_or(line.len());
    let rest = line.get(at + mark.len()..).unwrap_or_default();
    print(&[&line[..at], NOT_UTF8, rest].concat())
}

/// Raw bytes to standard output, at once.
pub(super) fn print(bytes: &[u8]) -> Result<(), MockError> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(MockError::output)
}

pub(super) fn print_error(text: &str) -> Result<(), MockError> {
    std::io::stderr().write_all(text.as_bytes()).map_err(MockError::output)
}

pub(super) fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_hours(1));
    }
}

/// Ends this process by a signal.
pub(super) fn die(signal: SignalName) -> Result<(), MockError> {
    use rustix::process::{Signal, getpid, kill_process};
    let signal = match signal {
        SignalName::Abrt => Signal::ABORT,
        SignalName::Hup => Signal::HUP,
        SignalName::Int => Signal::INT,
        SignalName::Kill => Signal::KILL,
        SignalName::Segv => Signal::SEGV,
        SignalName::Term => Signal::TERM,
    };
    // The runtime takes the first SIGSEGV for a stack overflow, finds none, and restores the default.
    for _ in 0..2 {
        kill_process(getpid(), signal)
            .map_err(|error| MockError::Io { what: "end by a signal".into(), source: error.into() })?;
    }
    hang()
}

/// From now on SIGTERM is caught and forgotten.
pub(super) fn ignore_sigterm() -> Result<(), MockError> {
    let failed = |source| MockError::Io { what: "ignore SIGTERM".into(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let caught = {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map_err(failed)?
    };
    // The handler stays for the life of the process; nobody listens to what it tells.
    std::mem::forget((runtime, caught));
    Ok(())
}
