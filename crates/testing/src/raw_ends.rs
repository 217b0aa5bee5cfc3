//! The output as it came, in short: its ends for the report.

use crate::HeadTail;

/// Of the printed output, this much at each end stands in the report.
const ROOM: usize = 8 << 10;

/// Takes all that was printed.
#[derive(Debug)]
pub(crate) struct RawEnds {
    ends: HeadTail,
    /// The beginning of a character whose rest has not come yet.
    partial: Vec<u8>,
}

impl RawEnds {
    pub(crate) const fn new() -> Self {
        Self { ends: HeadTail::new(ROOM), partial: Vec::new() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.partial) {
            // Only an end that could go on is held back.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.partial.len(),
        };
        self.ends.push(&String::from_utf8_lossy(&self.partial[..whole]));
        self.partial.drain(..whole);
    }

    pub(crate) fn into_text(mut self) -> String {
        self.ends.push(&String::from_utf8_lossy(&self.partial));
        self.ends.into_text()
    }
}
