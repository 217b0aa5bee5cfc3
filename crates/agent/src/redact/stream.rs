//! Redaction of bytes that come in pieces: a secret cut in two must not slip through.

use rehearsal_core::secret::KeyShape;

use super::{Found, Redactor};

/// Bytes go in, bytes without secrets come out, a little later: at most as much is held back as the longest
/// secret is long, and never a finished line.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    pub(super) held: Vec<u8>,
    /// The byte before `held`.
    previous: Option<u8>,
    /// A key was found that reached the end of what was known: the rest of it is still to come.
    inside: Option<&'static KeyShape>,
}

impl RedactedStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new(), previous: None, inside: None }
    }

    /// Takes the next bytes and appends to `out` what can be written.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        if let Some(shape) = self.inside {
            let swallowed = bytes.iter().take_while(|byte| shape.holds(**byte)).count();
            self.previous = bytes[..swallowed].last().copied().or(self.previous);
            bytes = &bytes[swallowed..];
            if bytes.is_empty() {
                return;
            }
            self.inside = None;
        }
        self.held.extend_from_slice(bytes);
        self.release(self.certain(), out);
    }

    /// Appends all that is left. Nothing may be pushed afterwards that continues it.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.release(self.held.len(), out);
        self.inside = None;
    }

    /// How much of what is held cannot be the beginning of something longer.
    fn certain(&self) -> usize {
        let lines = memchr::memrchr(b'\n', &self.held).map_or(0, |at| at + 1);
        lines.max(self.held.len().saturating_sub(self.redactor.inner.longest - 1))
    }

    /// Writes out everything that begins before `until`.
    fn release(&mut self, until: usize, out: &mut Vec<u8>) {
        let mut from = 0;
        while from < until {
            match self.redactor.find(&self.held, from, self.previous) {
                Some(Found { start, end, replacement, shape }) if start < until => {
                    out.extend_from_slice(&self.held[from..start]);
                    out.extend_from_slice(replacement.as_bytes());
                    from = end;
                    if end == self.held.len() {
                        self.inside = shape;
                    }
                }
                _ => {
                    out.extend_from_slice(&self.held[from..until]);
                    from = until;
                }
            }
        }
        if from > 0 {
            self.previous = self.held.get(from - 1).copied();
            self.held.drain(..from);
        }
    }
}
