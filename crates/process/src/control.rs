//! Our end of the socket to a shim.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::adopt::SocketFile;
use super::socket::send_with;
use super::wire::{self, Command, FrameError, HEADER, Order, Report};

/// Our ends of an agent's pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
}

#[derive(Debug)]
pub(super) struct Control {
    socket: UnixStream,
    received: Vec<u8>,
    /// Where the shim would wait for an adopter if we just went away: it has to be told when we are done, and only our
    /// death leaves it waiting.
    pub(super) rendezvous: Option<SocketFile>,
}

impl Control {
    pub(super) fn new(socket: UnixStream, received: Vec<u8>) -> Self {
        Self { socket, received, rendezvous: None }
    }

    /// Sends the order with one end of each pipe; returns the other ends. What is to be adopted brings the socket where
    /// that happens, and what else its adopter gets: beside it, the shim has duplicates of those ends that we read
    /// from, so that they do not break when we die.
    pub(super) async fn send_order(&mut self, order: &Order, for_adopter: &[OwnedFd]) -> io::Result<Pipes> {
        let (stdin_theirs, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, stdout_theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, stderr_theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let frame = wire::encode(order).map_err(io::Error::other)?;
        let (header, body) = frame.split_at(HEADER);
        let mut fds = vec![stdin_theirs.as_fd(), stdout_theirs.as_fd(), stderr_theirs.as_fd()];
        if let Some((listener, rest)) = for_adopter.split_first() {
            fds.extend([listener.as_fd(), stdout.as_fd(), stderr.as_fd()]);
            fds.extend(rest.iter().map(AsFd::as_fd));
        }
        send_with(&self.socket, header, &fds)?;
        self.socket.write_all(body).await?;
        Ok(Pipes {
            stdin: Some(pipe::Sender::from_owned_fd(stdin)?),
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        })
    }

    /// A shim that cannot be told anything is gone, which `report` finds out.
    pub(super) async fn tell(&mut self, command: Command) {
        let _ = self.socket.write_all(&command.encode()).await;
    }

    /// The next report. Nothing is lost when it is dropped half-way.
    pub(super) async fn report(&mut self) -> io::Result<Report> {
        loop {
            if let Some(report) = wire::take_frame(&mut self.received).map_err(invalid)? {
                return Ok(report);
            }
            self.socket.ready(Interest::READABLE).await?;
            match self.socket.try_read_buf(&mut self.received) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without a report"));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.rendezvous.is_some() {
            // A socket whose reader takes every command at once has room for another.
            let _ = self.socket.try_write(&Command::Kill.encode());
        }
    }
}

fn invalid(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
