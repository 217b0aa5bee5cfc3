//! Cutting a stream of bytes into lines, in bounded memory.

use std::borrow::Cow;

use memchr::memchr;

/// A line longer than this is cut: its beginning is kept, the rest passes by.
const LONGEST_LINE: usize = 4 << 20;

/// The lines of one stream. Whole lines inside a piece are handed on without a copy.
#[derive(Debug)]
pub struct Lines {
    longest: usize,
    partial: Vec<u8>,
    cut: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self::up_to(LONGEST_LINE)
    }
}

/// One line, without its end.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// What it is made of.
    pub bytes: &'a [u8],
    /// Whether its end is missing, since it was too long.
    pub cut: bool,
}

impl<'a> Line<'a> {
    /// As text; what is no UTF-8 is replaced.
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }
}

impl Lines {
    /// Lines of which this many bytes are kept.
    pub(crate) fn up_to(longest: usize) -> Self {
        Self { longest, partial: Vec::new(), cut: false }
    }

    /// Takes more bytes and hands on each line that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if self.partial.is_empty() {
                each(complete(line, false, self.longest));
            } else {
                self.keep(line);
                each(complete(&self.partial, self.cut, self.longest));
                self.partial.clear();
                self.cut = false;
            }
            bytes = rest;
        }
        self.keep(bytes);
    }

    /// Hands on what stands after the last line end.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if !self.partial.is_empty() {
            each(complete(&self.partial, self.cut, self.longest));
        }
        *self = Self::up_to(self.longest);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.longest.saturating_sub(self.partial.len());
        self.cut |= bytes.len() > room;
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// A line of a file with Windows line ends is the same line.
fn complete(line: &[u8], cut: bool, longest: usize) -> Line<'_> {
    let too_long = line.len() > longest;
    let line = &line[..line.len().min(longest)];
    Line { bytes: line.strip_suffix(b"\r").unwrap_or(line), cut: cut || too_long }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines_of(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for piece in pieces {
            lines.feed(piece, |line| seen.push(line.bytes.to_vec()));
        }
        lines.finish(|line| seen.push(line.bytes.to_vec()));
        seen
    }

    #[test]
    fn a_line_ends_with_either_kind_of_line_end_or_with_the_stream() {
        assert_eq!(lines_of(&[b"a\r\n\nb"]), [b"a".to_vec(), b"".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn a_line_without_end_is_cut_and_what_follows_is_read() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for _ in 0..5 {
            lines.feed(&vec![b'x'; 1 << 20], |_| panic!("no line ended yet"));
        }
        assert!(lines.partial.capacity() <= 2 * LONGEST_LINE);
        lines.feed(b"\nnext\n", |line| seen.push((line.bytes.len(), line.cut)));
        assert_eq!(seen, [(LONGEST_LINE, true), (4, false)]);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[ab\r\n]{0,40}", at in 0usize..40) {
            let at = at.min(text.len());
            let (left, right) = text.as_bytes().split_at(at);
            prop_assert_eq!(lines_of(&[left, right]), lines_of(&[text.as_bytes()]));
        }
    }
}
