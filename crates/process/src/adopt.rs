//! Our side of an adoption: how a run is made to be found, and how one is found whose worker died.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream as StdUnixStream;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::RunId;
use rustix::fs::{Mode, OFlags, fchmod, open};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::control::{Control, Pipes};
use super::socket::receive_with;
use super::spawn::Supervised;
use super::sys::Peer;
use super::table::ProcessId;
use super::wire::{self, Greeting, HEADER, HELLO};
use crate::policy::{ADOPTION_PAUSE, GREETING_LIMIT, MAX_MEMO};

/// What makes a process one that can be adopted.
#[derive(Debug)]
pub struct Adoptable {
    pub(super) file: SocketFile,
    pub(super) memo: String,
    /// The socket, and what the adopter gets beside the agent's output.
    pub(super) fds: Vec<OwnedFd>,
}

/// The place of a socket, removed with this.
#[derive(Debug)]
pub(super) struct SocketFile(pub(super) Utf8PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Adoptable {
    /// Makes the socket for it. `kept` is what the adopter gets beside the agent's output.
    pub fn new(socket: &Utf8Path, memo: String, kept: Vec<OwnedFd>) -> io::Result<Self> {
        if memo.len() > MAX_MEMO {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "there is too much to be kept for it"));
        }
        // The shim stands elsewhere: a relative path would mean another place to it.
        let socket = camino::absolute_utf8(socket)?;
        let mut fds = vec![bound(&socket)?];
        fds.extend(kept);
        Ok(Self { file: SocketFile(socket), memo, fds })
    }
}

/// A socket at a path of any length, in a directory that is nobody else's.
fn bound(path: &Utf8Path) -> io::Result<OwnedFd> {
    let dir = directory_of(path)?;
    fchmod(&dir, Mode::RWXU)?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(short_path(&dir, path).as_std_path())?)?;
    Ok(socket)
}

fn directory_of(path: &Utf8Path) -> io::Result<OwnedFd> {
    let dir = path.parent().unwrap_or_else(|| Utf8Path::new("/"));
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    match open(dir.as_std_path(), flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            Ok(open(dir.as_std_path(), flags, Mode::empty())?)
        }
        opened => Ok(opened?),
    }
}

/// A socket's address has room for a hundred bytes, and state directories are deeper than that.
fn short_path(dir: &OwnedFd, path: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd()))
        .join(path.file_name().unwrap_or_default())
}

/// Why a process cannot be adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// Nothing is there: it has ended.
    #[error("there is nothing to adopt")]
    Gone,
    /// Its worker lives, or another one was faster.
    #[error("it has a worker")]
    HasWorker,
    /// What its shim says is not understood.
    #[error("its supervisor is not understood: {reason}")]
    NotUnderstood {
        /// Why.
        reason: String,
    },
}

/// What a shim hands over.
pub(super) struct Adopted {
    pub(super) greeting: Greeting,
    pub(super) shim: Option<ProcessId>,
    pub(super) pipes: Pipes,
    pub(super) control: Control,
}

/// A process that a dead worker had started, and what is needed to go on with it. Dropping it ends the process.
#[derive(Debug)]
pub struct Foundling {
    /// The process.
    pub process: Supervised,
    /// As it was given with the order.
    pub memo: String,
    /// What was kept beside its output.
    pub kept: Vec<OwnedFd>,
}

impl Foundling {
    /// Calls at a socket, again if it is turned away. The process goes on as it is until it is told otherwise.
    pub async fn find(socket: &Utf8Path, run: &RunId, mut tries: u32) -> Result<Self, AdoptError> {
        loop {
            tries = tries.saturating_sub(1);
            let called = tokio::time::timeout(GREETING_LIMIT, call(socket)).await;
            match called.unwrap_or(Err(AdoptError::HasWorker)) {
                Err(AdoptError::HasWorker) if tries > 0 => tokio::time::sleep(ADOPTION_PAUSE).await,
                Err(error) => return Err(error),
                Ok((mut adopted, kept)) => {
                    let memo = std::mem::take(&mut adopted.greeting.memo);
                    let process = Supervised::adopted(adopted, Some(run.clone()));
                    return Ok(Self { process, memo, kept });
                }
            }
        }
    }
}

async fn call(path: &Utf8Path) -> Result<(Adopted, Vec<OwnedFd>), AdoptError> {
    let mut socket = connect(path)?;
    let peer = Peer::of(&socket).ok().filter(|peer| peer.is_ours).ok_or(AdoptError::Gone)?;
    let shim = peer.pid.and_then(ProcessId::of);
    // A shim that turns us away closes its end, whenever it sees us.
    socket.write_all(&HELLO).await.map_err(|_| AdoptError::HasWorker)?;
    let (header, mut fds) = attached(&socket).await?;
    if fds.len() < 2 {
        return Err(not_understood("it hands over too little"));
    }
    let rest = fds.split_off(2);
    let mut received = header.to_vec();
    let greeting = loop {
        match wire::take_frame(&mut received).map_err(|error| not_understood(error.to_string()))? {
            Some(greeting) => break greeting,
            None => more(&socket, &mut received).await?,
        }
    };
    let mut fds = fds.into_iter().map(pipe::Receiver::from_owned_fd);
    let (Some(Ok(stdout)), Some(Ok(stderr))) = (fds.next(), fds.next()) else {
        return Err(not_understood("what it hands over are no pipes"));
    };
    let pipes = Pipes { stdin: None, stdout, stderr };
    let mut control = Control::new(socket, received);
    control.rendezvous = Some(SocketFile(path.to_owned()));
    Ok((Adopted { greeting, shim, pipes, control }, rest))
}

/// Whether anybody is there. Who calls and says nothing is of no interest to a shim.
pub fn somebody_listens(path: &Utf8Path) -> bool {
    connected(path).is_ok()
}

fn connected(path: &Utf8Path) -> io::Result<StdUnixStream> {
    let dir = directory_of_socket(path)?;
    StdUnixStream::connect(short_path(&dir, path))
}

fn connect(path: &Utf8Path) -> Result<UnixStream, AdoptError> {
    let socket = connected(path).map_err(|_| AdoptError::Gone)?;
    socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket)).map_err(|error| broken(&error))
}

fn directory_of_socket(path: &Utf8Path) -> io::Result<OwnedFd> {
    let dir = path.parent().unwrap_or_else(|| Utf8Path::new("/"));
    Ok(open(dir.as_std_path(), OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::PATH, Mode::empty())?)
}

async fn attached(socket: &UnixStream) -> Result<([u8; HEADER], Vec<OwnedFd>), AdoptError> {
    let mut header = [0; HEADER];
    loop {
        socket.ready(Interest::READABLE).await.map_err(|error| broken(&error))?;
        let received = socket.try_io(Interest::READABLE, || Ok(receive_with(socket, &mut header)?));
        match received {
            Ok(Some(fds)) => return Ok((header, fds)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => return Err(AdoptError::HasWorker),
        }
    }
}

async fn more(socket: &UnixStream, received: &mut Vec<u8>) -> Result<(), AdoptError> {
    socket.ready(Interest::READABLE).await.map_err(|error| broken(&error))?;
    match socket.try_read_buf(received) {
        Ok(0) => Err(AdoptError::HasWorker),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(broken(&error)),
    }
}

fn not_understood(reason: impl Into<String>) -> AdoptError {
    AdoptError::NotUnderstood { reason: reason.into() }
}

fn broken(error: &io::Error) -> AdoptError {
    not_understood(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustix::net::listen;

    use super::*;

    #[test]
    fn a_socket_is_found_however_long_its_path_is_and_only_by_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        let path = root.join("a".repeat(120)).join("b".repeat(120)).join("shims/run1");
        let listener = bound(&path).unwrap();
        let mode = path.parent().unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(!somebody_listens(&path), "nobody does yet");
        listen(&listener, 1).unwrap();
        assert!(somebody_listens(&path));
        drop(listener);
        assert!(!somebody_listens(&path));
        bound(&path).unwrap();
    }
}
