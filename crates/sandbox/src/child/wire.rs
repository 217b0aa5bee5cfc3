//! The messages on the control socket: a packet each, from the child a [`Message`], from the parent one byte.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::Failure;
use crate::error::Stage;
use crate::sys;

/// From the parent: end everything now. Other bytes are numbers of signals for the target and its group.
pub(crate) const KILL_ALL: u8 = 255;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Message {
    /// The set-up failed; nothing runs.
    Failed(Failure),
    /// The command was executed. The private file system, where there is one, comes with it.
    Started,
    /// The target ended, and so did everything else.
    Ended(Ending),
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ending {
    /// What it exited with, or the number of the signal.
    pub(crate) code: i32,
    pub(crate) by_signal: bool,
    /// Of all that ran.
    pub(crate) cpu_micros: u64,
    /// Of the largest process.
    pub(crate) resident_bytes: u64,
    /// How many processes were still there when the target had ended.
    pub(crate) left_running: u32,
}

const SIZE: usize = 32;

pub(super) fn send(control: BorrowedFd<'_>, message: Message) {
    send_with(control, message, None);
}

/// Sends a message, and a descriptor with it. Nobody to receive it means that nobody wants to know.
pub(super) fn send_with(control: BorrowedFd<'_>, message: Message, descriptor: Option<BorrowedFd<'_>>) {
    let bytes = message.encode();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.map(|descriptor| [descriptor]);
    if let Some(descriptors) = &descriptors {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let _nobody_listens = sendmsg(control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL);
}

/// The next message; `None` when the child is gone.
pub(crate) fn receive(control: BorrowedFd<'_>) -> Result<Option<(Message, Option<OwnedFd>)>, Errno> {
    let mut bytes = [0_u8; SIZE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(control, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes != SIZE {
        return Ok(None);
    }
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(Message::decode(bytes).map(|message| (message, descriptor)))
}

impl Message {
    fn encode(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let (kind, first, code, ending) = match self {
            Self::Failed(failure) => {
                (1, failure.stage as u8, failure.errno.raw_os_error(), Ending::default())
            }
            Self::Started => (2, 0, 0, Ending::default()),
            Self::Ended(ending) => (3, u8::from(ending.by_signal), ending.code, ending),
        };
        bytes[0] = kind;
        bytes[1] = first;
        bytes[4..8].copy_from_slice(&code.to_le_bytes());
        bytes[8..16].copy_from_slice(&ending.cpu_micros.to_le_bytes());
        bytes[16..24].copy_from_slice(&ending.resident_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&ending.left_running.to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; SIZE]) -> Option<Self> {
        let [kind, first, _, _, c0, c1, c2, c3, rest @ ..] = bytes;
        let code = i32::from_le_bytes([c0, c1, c2, c3]);
        let (numbers, _) = rest.as_chunks::<8>();
        let number = |index: usize| numbers.get(index).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        match kind {
            1 => Some(Self::Failed(Failure { stage: Stage::from_wire(first)?, errno: sys::errno(code) })),
            2 => Some(Self::Started),
            3 => Some(Self::Ended(Ending {
                code,
                by_signal: first == 1,
                cpu_micros: number(0),
                resident_bytes: number(1),
                left_running: u32::try_from(number(2)).unwrap_or(u32::MAX),
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::os::fd::AsFd;

    #[test]
    fn an_ending_arrives_as_it_was_sent() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let sent = Ending {
            code: 9,
            by_signal: true,
            cpu_micros: u64::MAX,
            resident_bytes: 1 << 40,
            left_running: 3,
        };
        send(theirs.as_fd(), Message::Ended(sent));
        let Some((Message::Ended(got), None)) = receive(ours.as_fd()).unwrap() else {
            panic!("not an ending")
        };
        assert_eq!(format!("{got:?}"), format!("{sent:?}"));
        drop(theirs);
        assert!(receive(ours.as_fd()).unwrap().is_none());
    }

    #[test]
    fn a_failure_arrives_with_its_stage_and_error() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        send(theirs.as_fd(), Message::Failed(Failure { stage: Stage::Execute, errno: Errno::NOENT }));
        let Some((Message::Failed(got), None)) = receive(ours.as_fd()).unwrap() else {
            panic!("not a failure")
        };
        assert_eq!((got.stage, got.errno), (Stage::Execute, Errno::NOENT));
    }
}
