//! The few system calls that have no safe wrapper.
#![expect(unsafe_code, reason = "signal masks, signalfd, pre_exec and peers out of sight have no safe form")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal};

/// What the shim is told by signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// A child changed.
    ChildChanged,
    /// Someone wants the shim to end.
    End,
}

/// The signals that the shim waits for, as something to poll.
pub(super) struct Signals {
    pub(super) fd: OwnedFd,
}

impl Signals {
    /// Blocks the signals for this process and delivers them here instead.
    pub(super) fn take() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set; the other calls only read it and change this thread's mask.
        // The descriptor that `signalfd` returns is new and ours.
        unsafe {
            // Inherited as ignored, it would make the kernel reap our children before we can.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let set = set.assume_init();
            if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { fd: OwnedFd::from_raw_fd(fd) })
        }
    }

    /// The next one, if any came.
    pub(super) fn next(&self) -> Option<Told> {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let read = rustix::io::read(&self.fd, &mut info).ok()?;
        let number = info.get(..4).filter(|_| read == info.len())?;
        let number = u32::from_ne_bytes(number.try_into().ok()?);
        Some(if i32::try_from(number) == Ok(libc::SIGCHLD) { Told::ChildChanged } else { Told::End })
    }
}

/// Who is at the other end of a socket.
pub(super) struct Peer {
    /// None for a process of another container, which cannot be seen from here.
    pub(super) pid: Option<i32>,
    /// Whether it is of the same user as we are.
    pub(super) is_ours: bool,
}

impl Peer {
    pub(super) fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).map_err(io::Error::other)?;
        let (fd, pointer) = (socket.as_fd().as_raw_fd(), (&raw mut found).cast());
        // SAFETY: the kernel writes at most `length` bytes, which is the size of what is pointed to; any bytes are
        // valid there, the number 0 for a process out of sight among them.
        let done =
            unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, pointer, &raw mut length) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        let is_ours = found.uid == rustix::process::geteuid().as_raw();
        Ok(Self { pid: Some(found.pid).filter(|pid| *pid > 0), is_ours })
    }
}

/// Makes the command's process one that dies with the shim, keeps none of its descriptors and starts with
/// ordinary signals.
pub(super) fn confine(command: &mut Command) {
    let shim = rustix::process::getpid();
    // SAFETY: `enter_agent` makes plain system calls only: it takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(move || enter_agent(shim));
    }
}

fn enter_agent(shim: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The shim may have died before the line above: then no signal would ever come.
    if rustix::process::getppid() != Some(shim) {
        return Err(io::Error::from_raw_os_error(libc::ECHILD));
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: as in `Signals::take`; `close_range` only marks descriptors to be closed by `exec`. Its failure
    // (kernels before 5.11) is harmless: every descriptor of ours is marked so already.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    Ok(())
}
