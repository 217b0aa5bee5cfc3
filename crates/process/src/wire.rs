//! What we and the shim say to each other, over one socket.
//!
//! First comes the order, with the agent's three pipes attached to its header; then single commands. The shim
//! answers with reports. Order and reports are JSON behind their length.
//!
//! Whoever adopts an agent says [`HELLO`] to its shim, and is answered with a greeting to which our ends of the
//! agent's pipes are attached. From then on the two speak as above.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::Exit;
use rehearsal_sandbox::{Limit, Policy, SandboxReport};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::policy::MAX_FRAME;

/// What the shim is to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: Utf8PathBuf,
    pub(super) args: Vec<String>,
    pub(super) cwd: Utf8PathBuf,
    pub(super) env: BTreeMap<String, String>,
    /// What confines it.
    pub(super) sandbox: Option<Policy>,
    /// What is to be kept for whoever adopts it should we die; none: it ends with us. Three more descriptors come
    /// with the order then: our ends of its output, and a bound socket.
    pub(super) adoption: Option<Adoption>,
}

/// What an adopter needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Adoption {
    /// Where the socket is, to be removed by a shim that ends alone.
    pub(super) socket: Utf8PathBuf,
    /// Ours, and nothing that the shim understands.
    pub(super) memo: String,
}

/// What a shim tells its adopter first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub(super) pid: i32,
    pub(super) sandbox: Option<Box<SandboxReport>>,
    pub(super) memo: String,
}

/// What an adopter says first. The last byte is the version of this language: the shim may be an older program.
pub(super) const HELLO: [u8; 8] = *b"adopt\0\0\x01";

/// What the shim has to say.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Started { pid: i32, sandbox: Option<Box<SandboxReport>> },
    Failed(Failure),
    Ended(EndReport),
}

/// How the run ended, as the shim saw it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EndReport {
    pub(super) exit: Option<Exit>,
    pub(super) escaped: Escaped,
    /// Processes that not even SIGKILL ended in time.
    pub(super) left: u32,
    /// Limits of its sandbox that it ran into.
    pub(super) limits: Vec<Limit>,
}

/// Why the agent could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Failure {
    ProgramMissing,
    InterpreterMissing,
    NotExecutable,
    WorkingDirMissing,
    TooLong,
    NoResources { reason: String },
    Sandbox { reason: String },
    Other { reason: String },
}

/// Processes that outlived their agent and were ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Escaped {
    /// How many.
    pub count: u32,
    /// The names of the first of them.
    pub names: Vec<String>,
}

impl Escaped {
    pub(super) fn add(&mut self, name: &str) {
        self.count += 1;
        if self.names.len() < crate::policy::MAX_NAMED_ESCAPED {
            self.names.push(name.to_owned());
        }
    }
}

impl fmt::Display for Escaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() {
            return write!(f, "{}", self.count);
        }
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        write!(f, "{} ({}", self.count, names.join(", "))?;
        if self.names.len() < self.count as usize {
            f.write_str(", …")?;
        }
        f.write_str(")")
    }
}

/// What the shim is told while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Terminate {
        grace: Duration,
    },
    Kill,
    /// The agent may go on for so long; then it is frozen until the next one of these, or the end of its lease if
    /// nobody is left to send one.
    GoOn {
        freeze_in: Duration,
        ends_in: Duration,
    },
    /// The agent has all of its input: it could do without us.
    Fed,
}

const TERMINATE: u8 = b'T';
const KILL: u8 = b'K';
const GO_ON: u8 = b'G';
const FED: u8 = b'F';

impl Command {
    pub(super) const LENGTH: usize = 9;

    pub(super) fn encode(self) -> [u8; Self::LENGTH] {
        let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let (tag, first, second) = match self {
            Self::Terminate { grace } => (TERMINATE, millis(grace), 0),
            Self::Kill => (KILL, 0, 0),
            Self::GoOn { freeze_in, ends_in } => (GO_ON, millis(freeze_in), millis(ends_in)),
            Self::Fed => (FED, 0, 0),
        };
        let mut bytes = [tag; Self::LENGTH];
        bytes[1..5].copy_from_slice(&first.to_le_bytes());
        bytes[5..].copy_from_slice(&second.to_le_bytes());
        bytes
    }

    /// None for anything that we never send: the shim takes that for a parent gone mad, and ends the run.
    pub(super) fn decode([tag, times @ ..]: [u8; Self::LENGTH]) -> Option<Self> {
        let ([first, second], []) = times.as_chunks() else { return None };
        let time = |millis: &[u8; 4]| Duration::from_millis(u32::from_le_bytes(*millis).into());
        match tag {
            TERMINATE => Some(Self::Terminate { grace: time(first) }),
            KILL => Some(Self::Kill),
            GO_ON => Some(Self::GoOn { freeze_in: time(first), ends_in: time(second) }),
            FED => Some(Self::Fed),
            _ => None,
        }
    }
}

/// Descriptors that come with one message: three pipes, a socket, and what is kept for an adopter.
pub(super) const MOST_ATTACHED: usize = 8;

/// The length of the number in front of each frame.
pub(super) const HEADER: usize = 4;

/// A frame: length, then JSON.
pub(super) fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let body = serde_json::to_vec(message)?;
    let length =
        u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_FRAME).ok_or(FrameError::TooLong)?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend_from_slice(&body);
    Ok(frame)
}

/// How long the body behind this header is.
pub(super) fn body_length(header: [u8; HEADER]) -> Result<usize, FrameError> {
    let length = u32::from_le_bytes(header) as usize;
    if length > MAX_FRAME { Err(FrameError::TooLong) } else { Ok(length) }
}

/// Takes the first whole frame out of what was received so far.
pub(super) fn take_frame<T: DeserializeOwned>(received: &mut Vec<u8>) -> Result<Option<T>, FrameError> {
    let Some((header, rest)) = received.split_first_chunk() else {
        return Ok(None);
    };
    let length = body_length(*header)?;
    let Some(body) = rest.get(..length) else {
        return Ok(None);
    };
    let message = serde_json::from_slice(body)?;
    received.drain(..HEADER + length);
    Ok(Some(message))
}

/// A frame that cannot be.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a message is longer than {MAX_FRAME} bytes")]
    TooLong,
    #[error("a message cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_the_way() {
        let (short, long) = (Duration::from_millis(1234), Duration::from_secs(90));
        let go_on = Command::GoOn { freeze_in: short, ends_in: long };
        for command in [Command::Kill, Command::Fed, Command::Terminate { grace: short }, go_on] {
            assert_eq!(Command::decode(command.encode()), Some(command));
        }
        assert_eq!(Command::decode(*b"xxxxxxxxx"), None);
    }

    #[test]
    fn a_report_is_read_only_when_it_is_whole() {
        let frame = encode(&Report::Started { pid: 7, sandbox: None }).unwrap();
        let mut received = Vec::new();
        for byte in &frame[..frame.len() - 1] {
            received.push(*byte);
            assert!(take_frame::<Report>(&mut received).unwrap().is_none());
        }
        received.extend_from_slice(&frame[frame.len() - 1..]);
        assert!(matches!(take_frame(&mut received), Ok(Some(Report::Started { pid: 7, .. }))));
        assert!(received.is_empty());
    }

    #[test]
    fn many_escaped_processes_are_counted_and_the_first_named() {
        let mut escaped = Escaped::default();
        escaped.add("node");
        escaped.add("sh");
        assert_eq!(escaped.to_string(), "2 (`node`, `sh`)");
        for _ in 0..20 {
            escaped.add("bomb");
        }
        assert_eq!(escaped.count, 22);
        assert!(escaped.to_string().ends_with("`bomb`, …)"));
    }
}
