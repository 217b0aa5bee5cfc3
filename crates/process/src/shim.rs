//! The shim: starts one agent, and lets nothing of it survive.
//!
//! It holds no thread, no runtime and none of the agent's bytes: the agent's pipes come with the order and go
//! straight to the agent. All it does is wait, on its control socket and for signals.
//!
//! An agent that runs under a lease outlives its worker: until the lease is over, the shim waits for another one that
//! adopts it (`adoption`).

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use rehearsal_core::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::adoption::{Known, Rendezvous};
use super::freeze::Freezer;
use super::sandboxed::Sandboxed;
use super::socket::{read_exact, receive_with, send_all};
use super::sweep::sweep;
use super::sys::{Signals, Told, confine};
use super::table;
use super::wire::{self, Adoption, Command, EndReport, Escaped, Failure, HEADER, Order, Report};
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
    let Some((mut order, Attached { pipes, rest })) = receive_order(control)? else { return Ok(()) };
    let rendezvous = match order.adoption.take() {
        Some(adoption) => Some(meet_at(adoption, rest)?),
        None => None,
    };
    let (agent, sandboxed) = match start(&order, pipes) {
        Ok(started) => started,
        Err(failure) => return send(control, &Report::Failed(failure)),
    };
    drop(order);
    let sandbox = sandboxed.as_ref().map(|sandboxed| Box::new(sandboxed.report().clone()));
    // Should nobody listen any more, the closed socket ends the run below.
    let _ = send(control, &Report::Started { pid: agent.as_raw_nonzero().get(), sandbox });
    let mut watch = Supervision {
        master: Master::Parent(control),
        rendezvous,
        signals,
        agent,
        sandboxed,
        exit: None,
        is_over: false,
        kill_at: None,
        freezer: Freezer::new()?,
    };
    let end = watch.until_killed_or_over();
    let report = watch.clear(end);
    watch.hand_over(&report)
}

/// What comes with an order.
struct Attached {
    pipes: Pipes,
    /// For an adoption: the socket, and what is kept for the adopter.
    rest: Vec<OwnedFd>,
}

pub(super) struct Pipes {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

fn meet_at(adoption: Adoption, mut rest: Vec<OwnedFd>) -> io::Result<Rendezvous> {
    if rest.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Rendezvous::open(rest.remove(0), adoption, rest)
}

/// The order: its length with all descriptors attached, then the rest. None when there is nobody who could give one.
fn receive_order(control: BorrowedFd<'_>) -> io::Result<Option<(Order, Attached)>> {
    let mut header = [0_u8; HEADER];
    let Some(fds) = receive_with(control, &mut header)? else { return Ok(None) };
    let mut fds = fds.into_iter();
    let (Some(stdin), Some(stdout), Some(stderr)) = (fds.next(), fds.next(), fds.next()) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let mut body = vec![0; wire::body_length(header).map_err(io::Error::other)?];
    read_exact(control, &mut body)?;
    let attached = Attached { pipes: Pipes { stdin, stdout, stderr }, rest: fds.collect() };
    Ok(Some((serde_json::from_slice(&body)?, attached)))
}

fn send(control: BorrowedFd<'_>, report: &Report) -> io::Result<()> {
    send_all(control, &wire::encode(report).map_err(io::Error::other)?)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The agent ended, by itself or on our SIGTERM.
    Over,
    /// Everything must go, now.
    Killed,
}

/// Whose word counts.
enum Master<'a> {
    /// The worker that started us.
    Parent(BorrowedFd<'a>),
    /// The one that came after it.
    Adopter(OwnedFd),
    /// They died. Someone may come until the lease is over.
    Nobody,
}

impl Master<'_> {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Parent(socket) => Some(*socket),
            Self::Adopter(socket) => Some(socket.as_fd()),
            Self::Nobody => None,
        }
    }
}

/// One agent under watch.
struct Supervision<'a> {
    master: Master<'a>,
    /// None: the agent ends with our parent.
    rendezvous: Option<Rendezvous>,
    signals: Signals,
    agent: Pid,
    sandboxed: Option<Sandboxed>,
    exit: Option<Exit>,
    /// Whether the agent has ended, and all that it left.
    is_over: bool,
    kill_at: Option<Instant>,
    freezer: Freezer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    Some,
    None,
}

impl Supervision<'_> {
    fn until_killed_or_over(&mut self) -> End {
        loop {
            if self.kill_at.is_some_and(|at| at <= Instant::now()) || self.is_given_up() {
                return End::Killed;
            }
            let Some([master, signals, ending, lease, caller]) = self.wait() else { continue };
            if master && self.obey() == Some(End::Killed) {
                return End::Killed;
            }
            // Looked at after the commands: one of them may have prolonged the lease.
            if lease {
                self.freezer.freeze();
            }
            if caller {
                self.meet();
            }
            if signals {
                while let Some(told) = self.signals.next() {
                    if told == Told::End {
                        return End::Killed;
                    }
                }
                // Also orphans of a run that goes on are reaped, or a long run would pile up zombies.
                self.reap();
            }
            if self.exit.is_some() || (self.sandboxed.is_some() && ending) {
                return End::Over;
            }
        }
    }

    /// Waits until something happens: at our master, by a signal, at the sandbox, with the lease, at the rendezvous.
    fn wait(&self) -> Option<[bool; 5]> {
        let timeout = self.kill_at.map(|at| timespec(at.saturating_duration_since(Instant::now())));
        let signals = self.signals.fd.as_fd();
        // An end in the sandbox is told by its init; without one, by a signal.
        let ending = self.sandboxed.as_ref().filter(|_| !self.is_over).map(Sandboxed::ending);
        let (master, caller) = (self.master.socket(), self.rendezvous.as_ref().map(Rendezvous::listener));
        let fds = [master, Some(signals), ending, Some(self.freezer.timer.as_fd()), caller];
        // In place of what is not there, something is waited for that is.
        let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd.unwrap_or(signals), PollFlags::IN));
        poll(&mut polled, timeout.as_ref()).ok()?;
        let mut happened = polled.iter().zip(fds).map(|(it, fd)| fd.is_some() && !it.revents().is_empty());
        Some(fds.map(|_| happened.next().unwrap_or_default()))
    }

    /// Whether nobody is there any more, and nobody will come.
    fn is_given_up(&self) -> bool {
        matches!(self.master, Master::Nobody) && !self.freezer.lease_holds()
    }

    /// Someone calls; whether it is our master now. There is one seat.
    fn meet(&mut self) -> bool {
        let Some(rendezvous) = &self.rendezvous else { return false };
        if !matches!(self.master, Master::Nobody) {
            rendezvous.refuse();
            return false;
        }
        let sandbox = self.sandboxed.as_ref().map(Sandboxed::report);
        let known = Known { pid: self.agent.as_raw_nonzero().get(), sandbox };
        let Some(adopter) = rendezvous.receive(&known) else { return false };
        self.master = Master::Adopter(adopter);
        true
    }

    /// Reads one command.
    fn obey(&mut self) -> Option<End> {
        let mut bytes = [0; Command::LENGTH];
        let read = self.master.socket().map(|socket| read_exact(socket, &mut bytes));
        let command = read.and_then(Result::ok).map(|()| Command::decode(bytes));
        match command {
            Some(Some(Command::Terminate { grace })) => self.terminate(grace),
            Some(Some(Command::GoOn { freeze_in, ends_in })) => self.freezer.go_on_for(freeze_in, ends_in),
            Some(Some(Command::Fed)) => {
                if let Some(rendezvous) = &mut self.rendezvous {
                    rendezvous.is_open = true;
                }
            }
            Some(Some(Command::Kill)) => return Some(End::Killed),
            // Nobody of ours speaks like this.
            Some(None) if matches!(self.master, Master::Parent(_)) => return Some(End::Killed),
            Some(None) | None => return self.bereaved(),
        }
        None
    }

    /// The worker is gone without a word. An agent that can do without it goes on, unless it was about to be ended.
    fn bereaved(&mut self) -> Option<End> {
        let can_be_adopted = self.rendezvous.as_ref().is_some_and(|rendezvous| rendezvous.is_open);
        self.master = Master::Nobody;
        (!can_be_adopted || self.kill_at.is_some() || !self.freezer.lease_holds()).then_some(End::Killed)
    }

    fn terminate(&mut self, grace: Duration) {
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
    }

    /// Tells how the run ended. One that can be adopted is over only when its worker says so: what it wrote at last may
    /// still be in its pipes when the worker dies, and is kept for the next one.
    fn hand_over(&mut self, report: &EndReport) -> io::Result<()> {
        (self.kill_at, self.is_over) = (None, true);
        let told = self.tell_end(report);
        if self.rendezvous.as_ref().is_none_or(|rendezvous| !rendezvous.is_open) {
            self.leave();
            return told;
        }
        while !self.is_given_up() {
            let Some([master, signals, _, lease, caller]) = self.wait() else { continue };
            if master && self.obey() == Some(End::Killed) {
                break;
            }
            if lease {
                self.freezer.freeze();
            }
            if caller && self.meet() {
                let _ = self.tell_end(report);
            }
            if signals && std::iter::from_fn(|| self.signals.next()).any(|told| told == Told::End) {
                break;
            }
        }
        self.leave();
        Ok(())
    }

    fn tell_end(&self, report: &EndReport) -> io::Result<()> {
        self.master.socket().map_or(Ok(()), |socket| send(socket, &Report::Ended(report.clone())))
    }

    /// Whoever is our master removes the socket; without one, that is left to us.
    fn leave(&self) {
        if let (Master::Nobody, Some(rendezvous)) = (&self.master, &self.rendezvous) {
            rendezvous.remove();
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
        EndReport { exit: self.exit, escaped, left, limits }
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
