//! The shim: starts one agent, and lets nothing of it survive; then another, as often as it is told to.
//!
//! It holds no thread, no runtime and none of the agent's bytes: the agent's pipes come with the order and go
//! straight to the agent. All it does is wait, on its control socket and for signals.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use rehearsal_core::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use super::freeze::Freezer;
use super::sandboxed::Sandboxed;
use super::sweep::sweep;
use super::sys::{Signals, Told, confine};
use super::table;
use super::wire::{self, Command, EndReport, Escaped, Failure, HEADER, Order, Report};
use crate::policy::SWEEP_PAUSE;

/// Runs this process as the shim. For the binary to call, before anything else, when its first argument is
/// [`SHIM_ARGUMENT`](super::SHIM_ARGUMENT); returns its exit status. The order comes over standard input, which
/// is a socket, so the arguments say nothing.
pub fn shim_main(_args: impl IntoIterator<Item = OsString>) -> i32 {
    match supervise(rustix::stdio::stdin()) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn supervise(control: BorrowedFd<'_>) -> io::Result<()> {
    // Fails only for a group leader, which a child of ours is not.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let signals = Signals::take()?;
    // Whoever stopped us must not keep us from seeing that our parent is gone.
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    while let Some((order, pipes)) = receive_order(control)? {
        let (agent, sandboxed) = match start(&order, pipes) {
            Ok(started) => started,
            Err(failure) => return send(control, &Report::Failed(failure)),
        };
        drop(order);
        let sandbox = sandboxed.as_ref().map(|sandboxed| Box::new(sandboxed.report().clone()));
        // Should nobody listen any more, the closed socket ends the run below.
        let _ = send(control, &Report::Started { pid: agent.as_raw_nonzero().get(), sandbox });
        let (signals, exit, kill_at) = (&signals, None, None);
        let freezer = Freezer::new()?;
        let mut watch = Supervision { control, signals, agent, sandboxed, exit, kill_at, freezer };
        let end = watch.until_killed_or_over();
        let report = watch.clear(end);
        let serves_on = report.serves_on;
        send(control, &Report::Ended(report))?;
        if !serves_on {
            break;
        }
    }
    Ok(())
}

pub(super) struct Pipes {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// The order: its length with the pipes attached, then the rest. None when there is nobody who could give one.
fn receive_order(control: BorrowedFd<'_>) -> io::Result<Option<(Order, Pipes)>> {
    let mut header = [0_u8; HEADER];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        control,
        &mut [IoSliceMut::new(&mut header)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut fds = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let (Some(stdin), Some(stdout), Some(stderr)) = (fds.next(), fds.next(), fds.next()) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    if received.bytes != HEADER {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut body = vec![0; wire::body_length(header).map_err(io::Error::other)?];
    read_exact(control, &mut body)?;
    Ok(Some((serde_json::from_slice(&body)?, Pipes { stdin, stdout, stderr })))
}

fn read_exact(fd: BorrowedFd<'_>, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match rustix::io::read(fd, &mut *buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => buffer = &mut buffer[read..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn send(control: BorrowedFd<'_>, report: &Report) -> io::Result<()> {
    let frame = wire::encode(report).map_err(io::Error::other)?;
    let mut rest = frame.as_slice();
    while !rest.is_empty() {
        let sent = rustix::net::send(control, rest, SendFlags::NOSIGNAL)?;
        rest = &rest[sent..];
    }
    Ok(())
}

/// The process to watch: the agent, or the init of its sandbox.
fn start(order: &Order, pipes: Pipes) -> Result<(Pid, Option<Sandboxed>), Failure> {
    if !order.cwd.is_dir() {
        return Err(Failure::WorkingDirMissing);
    }
    let (pid, sandboxed) = match &order.sandbox {
        None => (start_plain(order, pipes)?, None),
        Some(policy) => {
            let sandboxed = Sandboxed::start(policy, order, pipes)?;
            (sandboxed.pid(), Some(sandboxed))
        }
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::Other { reason: "the process has no number".to_owned() })?;
    Ok((pid, sandboxed))
}

fn start_plain(order: &Order, pipes: Pipes) -> Result<u32, Failure> {
    let mut program = Program::new(&order.program);
    program
        .args(&order.args)
        .current_dir(&order.cwd)
        .env_clear()
        .envs(&order.env)
        .stdin(Stdio::from(pipes.stdin))
        .stdout(Stdio::from(pipes.stdout))
        .stderr(Stdio::from(pipes.stderr))
        .process_group(0);
    confine(&mut program);
    program.spawn().map(|child| child.id()).map_err(|error| failure(&error, order))
}

pub(super) fn failure(error: &io::Error, order: &Order) -> Failure {
    let reason = error.to_string();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) if !order.cwd.is_dir() => Failure::WorkingDirMissing,
        // A script whose `#!` line names what is not there gives the same error as no script at all.
        Some(libc::ENOENT) if order.program.is_file() => Failure::InterpreterMissing,
        Some(libc::ENOENT | libc::ENOTDIR) => Failure::ProgramMissing,
        Some(libc::EACCES | libc::EPERM | libc::ENOEXEC | libc::EISDIR) => Failure::NotExecutable,
        Some(libc::E2BIG) => Failure::TooLong,
        Some(libc::ENOMEM | libc::EAGAIN | libc::EMFILE | libc::ENFILE) => Failure::NoResources { reason },
        _ => Failure::Other { reason },
    }
}

/// What ended the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The agent ended, by itself or on our SIGTERM.
    Over,
    /// Everything must go, now.
    Killed,
}

/// One agent under watch.
struct Supervision<'a> {
    control: BorrowedFd<'a>,
    signals: &'a Signals,
    agent: Pid,
    sandboxed: Option<Sandboxed>,
    exit: Option<Exit>,
    kill_at: Option<Instant>,
    freezer: Freezer,
}

/// What is left of our children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    Some,
    None,
}

impl Supervision<'_> {
    fn until_killed_or_over(&mut self) -> End {
        loop {
            if self.kill_at.is_some_and(|at| at <= Instant::now()) {
                return End::Killed;
            }
            let timeout = self.kill_at.map(|at| timespec(at.saturating_duration_since(Instant::now())));
            // An end in the sandbox is told by its init; without one, by a signal.
            let ending = self.sandboxed.as_ref().map_or(self.signals.fd.as_fd(), Sandboxed::ending);
            let mut fds = [self.control, self.signals.fd.as_fd(), ending, self.freezer.timer.as_fd()]
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let polled = poll(&mut fds, timeout.as_ref());
            let [control, signals, ending, lease] = fds.map(|fd| fd.revents());
            if polled.is_err() {
                continue;
            }
            if !control.is_empty() && self.obey() == Some(End::Killed) {
                return End::Killed;
            }
            // Looked at after the commands: one of them may have prolonged the lease.
            if !lease.is_empty() {
                self.freezer.freeze();
            }
            if !signals.is_empty() {
                while let Some(told) = self.signals.next() {
                    if told == Told::End {
                        return End::Killed;
                    }
                }
                // Also orphans of a run that goes on are reaped, or a long run would pile up zombies.
                self.reap();
            }
            if self.exit.is_some() || (self.sandboxed.is_some() && !ending.is_empty()) {
                return End::Over;
            }
        }
    }

    /// Reads one command. A closed socket means that our parent is gone.
    fn obey(&mut self) -> Option<End> {
        let mut bytes = [0; Command::LENGTH];
        let command = read_exact(self.control, &mut bytes).ok().and_then(|()| Command::decode(bytes));
        match command {
            Some(Command::Terminate { grace }) => {
                // Who is frozen cannot end in peace.
                self.freezer.thaw();
                match &self.sandboxed {
                    Some(sandboxed) => sandboxed.terminate(),
                    None => {
                        let _ = rustix::process::kill_process_group(self.agent, Signal::TERM);
                    }
                }
                let at = Instant::now() + grace;
                self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
                None
            }
            Some(Command::GoOn { time }) => {
                self.freezer.go_on_for(time);
                None
            }
            Some(Command::Kill) | None => Some(End::Killed),
        }
    }

    fn reap(&mut self) -> Children {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.agent && self.sandboxed.is_none() => {
                    self.exit = status
                        .exit_status()
                        .map(Exit::Code)
                        .or_else(|| status.terminating_signal().map(Exit::Signal));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return Children::Some,
                Err(_) => return Children::None,
            }
        }
    }

    /// Ends everything that is left, and tells what there was.
    fn clear(&mut self, end: End) -> EndReport {
        let mut escaped = Escaped::default();
        let mut left = 0;
        let mut limits = Vec::new();
        if let Some(sandboxed) = &mut self.sandboxed {
            let ended = match end {
                End::Over => sandboxed.wait(),
                End::Killed => sandboxed.kill(),
            };
            self.exit = ended.exit;
            escaped.count = ended.left_running;
            limits = ended.limits;
        } else if end == End::Killed {
            let _ = rustix::process::kill_process_group(self.agent, Signal::KILL);
        }
        if self.reap() == Children::Some {
            let me = HashSet::from([rustix::process::getpid().as_raw_nonzero().get()]);
            let agent = self.agent.as_raw_nonzero().get();
            let init = self.sandboxed.as_ref().map(|_| agent);
            left = sweep(
                || {
                    let mut found = table::descendants(&table::all(), &me);
                    found.retain(|entry| !entry.is_dead());
                    found
                },
                // Those killed together with the agent have not outlived it.
                |entry| {
                    if init != Some(entry.id.pid) && (end == End::Over || entry.group != agent) {
                        escaped.add(&entry.name);
                    }
                },
                |_| self.settle(),
            );
        }
        EndReport { exit: self.exit, escaped, left, limits, serves_on: end == End::Over && left == 0 }
    }

    /// Waits for deaths, but not for ever: whether no child is left. Only the kernel's answer to that is
    /// certain: a look at `/proc` can miss a process that forks and ends meanwhile.
    fn settle(&mut self) -> bool {
        if self.reap() == Children::None {
            return true;
        }
        let mut fds = [PollFd::from_borrowed_fd(self.signals.fd.as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, Some(&timespec(SWEEP_PAUSE)));
        while self.signals.next().is_some() {}
        self.reap() == Children::None
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
