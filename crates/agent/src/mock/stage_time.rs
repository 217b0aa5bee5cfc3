//! The time of a rehearsal, asked over a socket: an agent that sleeps there takes no time here.
//!
//! One line each way: `RUN now`, `RUN sleep MILLISECONDS` or `RUN hang`; the answer is the time, in milliseconds since 1970,
//! once it has come. To a `hang` there is none.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rehearsal_core::{Timestamp, seed};

use super::MockEnv;
use super::error::MockError;

/// Names the socket.
pub const CLOCK_VARIABLE: &str = "REHEARSAL_CLOCK";

/// The clock of the rehearsal that this process is part of.
#[derive(Debug, Clone)]
pub(super) struct StageTime {
    socket: String,
    run: String,
}

impl StageTime {
    /// None: it is not part of one.
    pub(super) fn of(env: &MockEnv) -> Option<Self> {
        let run = env.var(rehearsal_process::RUN_ID_VARIABLE)?.to_owned();
        Some(Self { socket: env.var(CLOCK_VARIABLE)?.to_owned(), run })
    }

    pub(super) fn now(&self) -> Result<Timestamp, MockError> {
        self.ask("now")
    }

    pub(super) fn sleep(&self, span: Duration) -> Result<Timestamp, MockError> {
        self.ask(&format!("sleep {}", span.as_millis()))
    }

    pub(super) fn hang(&self) -> Result<Timestamp, MockError> {
        self.ask("hang")
    }

    /// The run, as a number to draw from.
    pub(super) fn seed(&self) -> u64 {
        seed::of_text(&self.run)
    }

    fn ask(&self, what: &str) -> Result<Timestamp, MockError> {
        let failed = |source| MockError::Io { what: format!("ask the clock at `{}`", self.socket), source };
        let mut stream = UnixStream::connect(&self.socket).map_err(failed)?;
        stream.write_all(format!("{} {what}\n", self.run).as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).map_err(failed)?;
        let millis = answer.trim().parse().map_err(|_| MockError::Value {
            name: CLOCK_VARIABLE,
            value: answer.trim().to_owned(),
            expected: "a clock that answers with milliseconds",
        })?;
        Ok(Timestamp(millis))
    }
}
