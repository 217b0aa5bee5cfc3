//! A command that runs in a sandbox.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::sandbox::Limit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fstatvfs, openat};
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::cgroup::{Group, Pool};
use crate::child::{self, KILL_ALL, Message};
use crate::layout::UPPER;
use crate::reap;
use crate::sys::{self, Forked};
use crate::written::{self, Written};

/// How long the kernel may take to end what was killed. Long only for processes that wait for a broken disk.
const KILL_TAKES: Duration = Duration::from_secs(10);

/// A command that runs in a sandbox. Dropping it kills all that it started.
#[derive(Debug)]
pub struct Confined {
    init: Pid,
    pidfd: OwnedFd,
    control: OwnedFd,
    /// The private file system.
    storage: Option<OwnedFd>,
    /// Where there is an overlay over it.
    project: Option<Utf8PathBuf>,
    group: Option<Group>,
    pool: Arc<Pool>,
    ended: Option<Ended>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// What it ended with.
    pub status: Status,
    /// Whether something in it was killed for want of memory.
    pub oom_killed: bool,
    /// Limits that it ran into.
    pub limits_hit: Vec<Limit>,
    /// CPU time of all that it started, in milliseconds.
    pub cpu_ms: u64,
    /// The most memory in bytes: of all together where a control group counts it, else of the largest process.
    pub peak_memory: u64,
    /// How many processes were still running when it had ended, and were killed.
    pub left_running: u32,
    /// Whether every process was seen to be gone.
    pub all_gone: bool,
}

impl Ended {
    /// Whether the command itself said that all is well.
    pub fn is_success(&self) -> bool {
        self.status == Status::Exited { code: 0 }
    }
}

/// What a command ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Status {
    /// It exited.
    Exited {
        /// With this.
        code: i32,
    },
    /// A signal ended it.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// It was killed in a way that left no word of how.
    Lost,
}

impl Confined {
    pub(crate) fn new(
        forked: Forked,
        control: OwnedFd,
        storage: Option<OwnedFd>,
        project: Option<Utf8PathBuf>,
        group: Group,
        pool: Arc<Pool>,
    ) -> Self {
        let Forked { pid, pidfd } = forked;
        Self { init: pid, pidfd, control, storage, project, group: Some(group), pool, ended: None }
    }

    /// The process that everything inside descends from.
    pub fn pid(&self) -> u32 {
        self.init.as_raw_nonzero().get().cast_unsigned()
    }

    /// Sends a signal to the command and its process group.
    pub fn signal(&self, signal: Signal) {
        if let Ok(number) = u8::try_from(signal.as_raw()) {
            self.order(number);
        }
    }

    /// Waits until the command has ended; what it left running is killed then. Can be dropped and called again.
    pub async fn wait(&mut self) -> Ended {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        // The init says so before it folds up the namespaces, which takes the kernel a moment more.
        if sys::readable(self.control.as_fd()).await.is_err() {
            return self.wait_blocking();
        }
        let word = self.last_word();
        if word.is_none() && sys::readable(self.pidfd.as_fd()).await.is_err() {
            return self.wait_blocking();
        }
        self.finish(word)
    }

    /// Ends it: each signal in turn with the time that it is given, then everything is killed and waited for.
    pub async fn end(&mut self, ladder: &[(Signal, Duration)]) -> Ended {
        for (signal, grace) in ladder {
            if self.ended.is_none() {
                self.signal(*signal);
            }
            if let Ok(ended) = tokio::time::timeout(*grace, self.wait()).await {
                return ended;
            }
        }
        self.order(KILL_ALL);
        if let Ok(ended) = tokio::time::timeout(KILL_TAKES, self.wait()).await {
            return ended;
        }
        let _already_gone = pidfd_send_signal(&self.pidfd, Signal::KILL);
        match tokio::time::timeout(KILL_TAKES, self.wait()).await {
            Ok(ended) => ended,
            Err(_) => self.give_up(),
        }
    }

    /// What was written over the project in overlay mode, at most so many files of it.
    pub fn written(&self, most: usize) -> Written {
        let (Some(project), Some(storage)) = (&self.project, &self.storage) else {
            return Written::default();
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(storage, UPPER, flags, Mode::empty()) {
            Ok(upper) => written::list(&upper, project, most),
            Err(_) => Written { truncated: true, ..Written::default() },
        }
    }

    /// [`wait`](Self::wait) for whoever has no runtime. Does not block when [`AsFd`] gives something readable.
    pub fn wait_blocking(&mut self) -> Ended {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        let word = self.last_word();
        if word.is_none() {
            let _until_it_ended = is_readable(&self.pidfd, None);
        }
        self.finish(word)
    }

    /// Kills everything for whoever has no runtime, and waits until it is gone, twice this long at most.
    pub fn kill_blocking(&mut self, patience: Duration) -> Ended {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        self.order(KILL_ALL);
        if !is_readable(&self.control, Some(patience)) {
            let _already_gone = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        if is_readable(&self.control, Some(patience)) { self.wait_blocking() } else { self.give_up() }
    }

    /// After the end: waits until the init has folded up its namespaces as well. Says whether it has.
    pub fn is_gone_within(&self, patience: Duration) -> bool {
        is_readable(&self.pidfd, Some(patience))
    }

    fn order(&self, byte: u8) {
        let _already_gone = send(&self.control, &[byte], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// With what the init said last: then every other process was gone. Without: it was killed, and the kernel has ended all that was
    /// in its pid namespace before it let it go.
    fn finish(&mut self, word: Option<child::Ending>) -> Ended {
        let all_gone = word.is_some() || self.storage.is_some();
        let ended = self.ended_with(word, all_gone);
        if let Some(group) = self.group.take().filter(|_| all_gone) {
            self.pool.give_back(group);
        }
        if let Ok(pidfd) = self.pidfd.try_clone() {
            reap::when_it_ends(pidfd);
        }
        self.ended = Some(ended.clone());
        ended
    }

    /// What the init says of the end, if it lives to say it. Waits for it.
    fn last_word(&self) -> Option<child::Ending> {
        while let Ok(Some((message, _))) = child::receive(self.control.as_fd()) {
            if let Message::Ended(ending) = message {
                return Some(ending);
            }
        }
        None
    }

    fn ended_with(&self, word: Option<child::Ending>, all_gone: bool) -> Ended {
        let counts = self.group.as_ref().map(Group::counts).unwrap_or_default();
        let mut limits_hit = Vec::new();
        limits_hit.extend((counts.memory_kills > 0).then_some(Limit::Memory));
        limits_hit.extend((counts.refused_forks > 0).then_some(Limit::Processes));
        limits_hit.extend(self.is_storage_full().then_some(Limit::Files));
        let status = match word {
            Some(ending) if ending.by_signal => Status::Signaled { signal: ending.code },
            Some(ending) => Status::Exited { code: ending.code },
            None => Status::Lost,
        };
        let word = word.unwrap_or_default();
        let peak_memory = self.group.as_ref().and_then(Group::peak_memory).unwrap_or(word.resident_bytes);
        let (oom_killed, left_running) = (counts.memory_kills > 0, word.left_running);
        Ended {
            status,
            oom_killed,
            limits_hit,
            cpu_ms: word.cpu_micros / 1000,
            peak_memory,
            left_running,
            all_gone,
        }
    }

    fn is_storage_full(&self) -> bool {
        let Some(Ok(storage)) = self.storage.as_ref().map(fstatvfs) else { return false };
        storage.f_bavail == 0 || storage.f_ffree == 0
    }

    /// The kernel does not let go of something. Its group cannot be used again.
    fn give_up(&mut self) -> Ended {
        let ended = self.ended_with(None, false);
        self.group = None;
        self.ended = Some(ended.clone());
        ended
    }
}

/// Readable when it has ended.
impl AsFd for Confined {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        self.kill_blocking(KILL_TAKES);
    }
}

/// Whether there is something to read within a time.
fn is_readable(descriptor: &OwnedFd, within: Option<Duration>) -> bool {
    let within = within.and_then(|within| Timespec::try_from(within).ok());
    let mut ready = [PollFd::new(descriptor, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut ready, within.as_ref())).is_ok_and(|count| count > 0)
}
