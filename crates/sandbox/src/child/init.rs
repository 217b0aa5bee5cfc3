//! The init: waits for the target, passes signals on, and leaves nothing behind.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait};

use super::wire::{self, Ending, KILL_ALL, Message};
use crate::sys;

pub(super) fn supervise(
    control: BorrowedFd<'_>,
    handed_over: Option<&OwnedFd>,
    target: Pid,
    is_namespaced: bool,
) -> ! {
    let mut init = Init { control, target, is_namespaced, ended: None };
    wire::send_with(control, Message::Started, handed_over.map(AsFd::as_fd));
    close_all_but(control.as_raw_fd());
    init.wait();
    init.end_everything();
    if let Some(ending) = init.ended {
        let (cpu_micros, resident_bytes) = sys::usage_of_children();
        wire::send(control, Message::Ended(Ending { cpu_micros, resident_bytes, ..ending }));
    }
    sys::exit(0)
}

struct Init<'a> {
    control: BorrowedFd<'a>,
    target: Pid,
    is_namespaced: bool,
    ended: Option<Ending>,
}

impl Init<'_> {
    /// Until the target has ended, or all is to end.
    fn wait(&mut self) {
        let Ok(children) = sys::child_ended_descriptor() else { return };
        loop {
            self.reap(WaitOptions::NOHANG);
            if self.ended.is_some() {
                return;
            }
            let mut ready =
                [PollFd::new(&self.control, PollFlags::IN), PollFd::new(&children, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let [order, child] = &ready;
            if !child.revents().is_empty() {
                let _drained = rustix::io::read(&children, &mut [0_u8; 1024]);
            }
            if !order.revents().is_empty() && !self.obey() {
                return;
            }
        }
    }

    /// Does what the parent says; `false` when all is to end, also because there is no parent any more.
    fn obey(&self) -> bool {
        let mut byte = [0_u8; 1];
        match recv(self.control, &mut byte, RecvFlags::DONTWAIT) {
            Ok((_, 1)) if byte != [KILL_ALL] => {
                if let [number] = byte
                    && let Some(signal) = Signal::from_named_raw(i32::from(number))
                {
                    let _already_gone = kill_process_group(self.target, signal);
                }
                true
            }
            Err(Errno::INTR | Errno::AGAIN) => true,
            _ => false,
        }
    }

    /// Takes note of children that have ended; says whether some are left.
    fn reap(&mut self, how: WaitOptions) -> bool {
        loop {
            match wait(how) {
                Ok(Some((pid, status))) => self.note(pid, status),
                Ok(None) | Err(Errno::INTR) => return true,
                Err(_) => return false,
            }
        }
    }

    fn note(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.target {
            let by_signal = status.terminating_signal();
            let code = by_signal.or(status.exit_status()).unwrap_or_default();
            self.ended = Some(Ending { code, by_signal: by_signal.is_some(), ..Ending::default() });
        } else if let Some(ending) = &mut self.ended {
            ending.left_running = ending.left_running.saturating_add(1);
        }
    }

    /// Kills until no child is left. Whoever loses its parent becomes a child of the init.
    fn end_everything(&mut self) {
        let ended_by_itself = self.ended.is_some();
        while self.reap(WaitOptions::NOHANG) {
            if self.is_namespaced {
                let _nobody_left = sys::kill_namespace();
            } else {
                kill_children();
            }
            // Killed children end soon; a blocking wait for one keeps this from spinning.
            if let Ok(Some((pid, status))) = wait(WaitOptions::empty()) {
                self.note(pid, status);
            }
        }
        if !ended_by_itself && let Some(ending) = &mut self.ended {
            ending.left_running = 0;
        }
    }
}

/// Without a namespace: those that the kernel lists as our children, a buffer of them at a time.
fn kill_children() {
    let mut buffer = [0_u8; 4096];
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(list) = open(c"/proc/thread-self/children", flags, Mode::empty()) else { return };
    let Ok(length) = rustix::io::read(&list, &mut buffer) else { return };
    let mut listed = buffer.get(..length).unwrap_or_default();
    // Each number has a space behind it. One cut by the end of the buffer would mean another process.
    while let Some(end) = listed.iter().position(|byte| *byte == b' ') {
        let (digits, rest) = listed.split_at(end);
        listed = rest.get(1..).unwrap_or_default();
        let pid = digits.iter().try_fold(0_i32, |number, digit| {
            number.checked_mul(10)?.checked_add(i32::from(digit.wrapping_sub(b'0')))
        });
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _already_gone = kill_process(pid, Signal::KILL);
        }
    }
}

fn close_all_but(kept: RawFd) {
    let _none_open = sys::close_range(0, kept.saturating_sub(1), false);
    let _none_open = sys::close_range(kept.saturating_add(1), RawFd::MAX, false);
}
