//! What a process took, with all that it started and waited for.

use std::process::{Command, Stdio};
use std::time::Duration;

/// What a process took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// User and system time.
    pub(super) cpu: Duration,
    peak_kib: u64,
}

impl Cost {
    /// Runs a command, which has to succeed.
    pub(super) fn of(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let (code, usage) = wait(i32::try_from(child.id()).unwrap());
        assert_eq!(code, Some(0), "{command:?}");
        let time = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec.unsigned_abs())
                + Duration::from_micros(time.tv_usec.unsigned_abs())
        };
        Self { cpu: time(usage.ru_utime) + time(usage.ru_stime), peak_kib: usage.ru_maxrss.unsigned_abs() }
    }

    /// Of the largest of its processes.
    #[expect(clippy::cast_precision_loss, reason = "it is for people")]
    pub(super) fn peak_mb(self) -> f64 {
        self.peak_kib as f64 * 1024.0 / 1e6
    }
}

/// The exit status, if it was not killed, and what was used.
#[expect(unsafe_code, reason = "nothing safe tells what a child has used")]
fn wait(child: libc::pid_t) -> (Option<i32>, libc::rusage) {
    let mut status = 0;
    // SAFETY: numbers all the way down, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to values that live until it returns.
    let waited = unsafe { libc::wait4(child, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, child);
    (libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)), usage)
}
