//! The shim's side of an adoption: where it can be found, whom it lets in, and what it hands over.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rehearsal_sandbox::SandboxReport;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{SocketFlags, accept_with, listen};

use super::socket::{read_exact, send_all, send_with};
use super::sys::Peer;
use super::table;
use super::wire::{self, Adoption, Greeting, HEADER, HELLO};
use crate::policy::ADOPTER_PATIENCE;

/// All that a shim keeps for an adopter. None of it is in a file that the agent could change.
pub(super) struct Rendezvous {
    listener: OwnedFd,
    adoption: Adoption,
    /// Our ends of the agent's output, and what else the worker wants to be handed on.
    kept: Vec<OwnedFd>,
    /// Whether the agent can do without its worker.
    pub(super) is_open: bool,
}

/// What the adopter is told of the agent.
pub(super) struct Known<'a> {
    pub(super) pid: i32,
    pub(super) sandbox: Option<&'a SandboxReport>,
}

impl Rendezvous {
    /// The socket was bound by the worker. Whoever calls on it sees by its credentials who listens: us.
    pub(super) fn open(listener: OwnedFd, adoption: Adoption, kept: Vec<OwnedFd>) -> io::Result<Self> {
        listen(&listener, 4)?;
        Ok(Self { listener, adoption, kept, is_open: false })
    }

    pub(super) fn listener(&self) -> std::os::fd::BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Turns away whoever calls.
    pub(super) fn refuse(&self) {
        drop(self.accept());
    }

    /// Lets in whoever calls, if it is fit to adopt the agent; gives it all that it needs.
    pub(super) fn receive(&self, known: &Known<'_>) -> Option<OwnedFd> {
        let caller = self.accept().filter(is_welcome)?;
        // One that is slow to say what it wants must not keep us from freezing the agent in time.
        for timeout in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&caller, timeout, Some(ADOPTER_PATIENCE)).ok()?;
        }
        let mut said = [0; HELLO.len()];
        read_exact(caller.as_fd(), &mut said).ok()?;
        if said != HELLO {
            return None;
        }
        self.greet(&caller, known).ok()?;
        Some(caller)
    }

    fn greet(&self, caller: &OwnedFd, known: &Known<'_>) -> io::Result<()> {
        let sandbox = known.sandbox.map(|report| Box::new(report.clone()));
        let greeting = Greeting { pid: known.pid, sandbox, memo: self.adoption.memo.clone() };
        let frame = wire::encode(&greeting).map_err(io::Error::other)?;
        let (header, body) = frame.split_at(HEADER);
        let kept: Vec<_> = self.kept.iter().map(AsFd::as_fd).collect();
        send_with(caller, header, &kept)?;
        send_all(caller.as_fd(), body)
    }

    fn accept(&self) -> Option<OwnedFd> {
        accept_with(&self.listener, SocketFlags::CLOEXEC).ok()
    }

    /// Nobody will call any more.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(&self.adoption.socket);
    }
}

/// Another process of ours that the agent has not started: an agent cannot adopt itself.
fn is_welcome(caller: &OwnedFd) -> bool {
    let Ok(peer) = Peer::of(caller) else { return false };
    let me = HashSet::from([rustix::process::getpid().as_raw_nonzero().get()]);
    let mut own = table::descendants(&table::all(), &me).into_iter();
    peer.is_ours && !own.any(|entry| Some(entry.id.pid) == peer.pid)
}
