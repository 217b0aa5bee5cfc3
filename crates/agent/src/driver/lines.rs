//! Splits a stream of bytes into lines, in bounded memory.

/// A longer line is not kept: no event of any agent comes near it (the longest seen are 5 MB).
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// What is kept of a line that is too long, so that a person can tell what it was.
const HEAD_OF_OVERSIZED: usize = 64 << 10;

/// A buffer that one long line has blown up is given back when it is larger than this.
const BUFFER_TO_KEEP: usize = 1 << 20;

/// One line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The bytes; only the first of them when it is oversized.
    pub(crate) bytes: &'a [u8],
    /// How long it really was, if it was too long to be kept.
    pub(crate) oversized: Option<u64>,
}

/// Takes chunks, gives lines. A line that lies whole within a chunk is not copied.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    limit: usize,
    /// The beginning of a line whose end has not come.
    pending: Vec<u8>,
    /// Bytes of the pending line that were not kept.
    skipped: u64,
}

impl LineSplitter {
    pub(crate) fn new() -> Self {
        Self::with_limit(LONGEST_LINE)
    }

    fn with_limit(limit: usize) -> Self {
        Self { limit, pending: Vec::new(), skipped: 0 }
    }

    /// Takes the next bytes; `each` is called for every line that they complete.
    pub(crate) fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            if self.pending.is_empty() && line.len() <= self.limit {
                each(Line { bytes: without_return(line), oversized: None });
            } else {
                self.keep(line);
                self.give_pending(&mut each);
            }
            chunk = rest;
        }
        self.keep(chunk);
    }

    /// The last line, if the stream does not end with a line end.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if !self.pending.is_empty() {
            self.give_pending(&mut each);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.skipped > 0 {
            self.skipped += bytes.len() as u64;
            return;
        }
        if self.pending.len() + bytes.len() <= self.limit {
            self.pending.extend_from_slice(bytes);
            return;
        }
        let whole = (self.pending.len() + bytes.len()) as u64;
        let head = HEAD_OF_OVERSIZED.min(self.limit);
        let missing = head.saturating_sub(self.pending.len()).min(bytes.len());
        self.pending.extend_from_slice(&bytes[..missing]);
        self.pending.truncate(head);
        self.pending.shrink_to_fit();
        self.skipped = whole - self.pending.len() as u64;
    }

    fn give_pending(&mut self, each: &mut impl FnMut(Line<'_>)) {
        let oversized = (self.skipped > 0).then(|| self.skipped + self.pending.len() as u64);
        let bytes = if oversized.is_some() { &self.pending } else { without_return(&self.pending) };
        each(Line { bytes, oversized });
        self.skipped = 0;
        self.pending.clear();
        if self.pending.capacity() > BUFFER_TO_KEEP {
            self.pending.shrink_to(BUFFER_TO_KEEP);
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines_of(splitter: &mut LineSplitter, chunks: &[&[u8]]) -> Vec<(Vec<u8>, Option<u64>)> {
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, |line| {
                lines.push((line.bytes.to_vec(), line.oversized));
            });
        }
        splitter.finish(|line| lines.push((line.bytes.to_vec(), line.oversized)));
        lines
    }

    #[test]
    fn lines_come_whole_however_they_were_cut() {
        let lines = lines_of(&mut LineSplitter::new(), &[b"on", b"e\r\ntwo\n\nth", b"r", b"ee"]);
        let expected: Vec<_> = [&b"one"[..], b"two", b"", b"three"].map(|line| (line.to_vec(), None)).into();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_flagged_and_the_next_is_whole() {
        let mut splitter = LineSplitter::with_limit(8);
        let lines = lines_of(&mut splitter, &[b"0123456", b"789", b"abc\nnext\n"]);
        assert_eq!(lines, vec![(b"01234567".to_vec(), Some(13)), (b"next".to_vec(), None)]);
    }

    #[test]
    fn a_gigabyte_without_a_line_end_takes_no_memory() {
        let mut splitter = LineSplitter::new();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..1024 {
            splitter.push(&chunk, |_| panic!("there is no line"));
            assert!(splitter.pending.capacity() <= 2 * LONGEST_LINE);
        }
        let mut seen = None;
        splitter.push(b"\n", |line| {
            seen = Some((line.bytes.len(), line.oversized));
        });
        assert_eq!(seen, Some((HEAD_OF_OVERSIZED, Some(1 << 30))));
        assert!(splitter.pending.capacity() <= BUFFER_TO_KEEP);
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_lines(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(1usize..20, 1..40),
        ) {
            let whole = lines_of(&mut LineSplitter::with_limit(16), &[&bytes]);
            let mut chunks = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (chunk, after) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            prop_assert_eq!(lines_of(&mut LineSplitter::with_limit(16), &chunks), whole);
        }
    }
}
