//! Texts are kept in bounds: an agent may write more than anyone wants to hold.

use std::borrow::Cow;

/// The longest text of an activity: what a screen can show.
pub(crate) const ACTIVITY_TEXT: usize = 4 << 10;

/// The longest description of a tool call.
pub(crate) const DETAIL: usize = 200;

/// The longest message of an error.
pub(crate) const MESSAGE: usize = 2 << 10;

/// Kept of each end of a final text: a signal at the end of a 5 MB answer must be found.
pub(crate) const END_OF_FINAL_TEXT: usize = 512 << 10;

const GAP: &str = "\n…\n";

/// The beginning of a text, within `limit` bytes.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(limit)])
}

/// The beginning of a text as one line.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    if text.len() <= limit && is_one_plain_line(text) {
        return text.to_owned();
    }
    // What is cut off below is not worth looking at, and may be megabytes.
    let start = &text[..text.floor_char_boundary(4 * limit)];
    let mut line = String::with_capacity(start.len().min(limit));
    for word in start.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if start.len() < text.len() && line.len() <= limit {
        line.push('…');
    }
    cut(&line, limit)
}

/// Names and paths nearly always are; looking for words in them is dear.
fn is_one_plain_line(text: &str) -> bool {
    let mut after_space = true;
    let plain = text.bytes().all(|byte| {
        let is_space = byte == b' ';
        let fits = (b' '..0x7f).contains(&byte) && !(is_space && after_space);
        after_space = is_space;
        fits
    });
    plain && !after_space
}

/// The beginning and the end of a text, each within `end` bytes.
pub(crate) fn keep_ends(text: Cow<'_, str>, end: usize) -> String {
    if text.len() <= 2 * end {
        return text.into_owned();
    }
    let head = &text[..text.floor_char_boundary(end)];
    let tail = &text[text.ceil_char_boundary(text.len() - end)..];
    [head, GAP, tail].concat()
}

/// Keeps the beginning and the end of a stream of bytes.
#[derive(Debug)]
pub(crate) struct Ends {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    /// Holds up to twice its limit, so that bytes are moved rarely.
    tail: Vec<u8>,
    dropped: bool,
}

impl Ends {
    pub(crate) fn new(head_limit: usize, tail_limit: usize) -> Self {
        Self { head_limit, tail_limit, head: Vec::new(), tail: Vec::new(), dropped: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = (self.head_limit - self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let newest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        self.dropped |= newest.len() < rest.len();
        self.tail.extend_from_slice(newest);
        if self.tail.len() > 2 * self.tail_limit {
            self.drop_oldest();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.head_limit, self.tail_limit);
    }

    /// The text, with a mark where something is missing.
    pub(crate) fn into_text(mut self) -> String {
        if self.tail.len() > self.tail_limit {
            self.drop_oldest();
        }
        if !self.dropped {
            self.head.append(&mut self.tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let gap = if self.head.is_empty() { "" } else { GAP };
        [&String::from_utf8_lossy(&self.head), gap, &String::from_utf8_lossy(&self.tail)].concat()
    }

    fn drop_oldest(&mut self) {
        self.tail.drain(..self.tail.len() - self.tail_limit);
        self.dropped = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "ä…");
        assert_eq!(cut("äöü", 6), "äöü");
        assert_eq!(one_line("  two\n\twords  ", 20), "two words");
        assert_eq!(one_line("two  words ", 20), "two words");
        assert_eq!(one_line("two words", 20), "two words");
        assert_eq!(one_line("", 20), "");
        assert_eq!(one_line(&"word ".repeat(100), 9), "word word…");
    }

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        let text = format!("{}<promise>COMPLETE</promise>", "ä".repeat(3 << 20));
        let kept = keep_ends(text.into(), END_OF_FINAL_TEXT);
        assert!(kept.len() <= 2 * END_OF_FINAL_TEXT + GAP.len());
        assert!(kept.ends_with("<promise>COMPLETE</promise>"));
    }

    #[test]
    fn a_stream_keeps_both_ends_in_any_chunking() {
        let bytes: Vec<u8> = (0..200u8).map(|n| b'a' + n % 26).collect();
        let kept = |size: usize| {
            let mut ends = Ends::new(5, 5);
            bytes.chunks(size).for_each(|chunk| ends.push(chunk));
            ends.into_text()
        };
        assert_eq!(kept(200), "abcde\n…\nnopqr");
        for size in 1..50 {
            assert_eq!(kept(size), kept(200), "chunks of {size}");
        }
        let mut short = Ends::new(5, 5);
        short.push(b"1234567890");
        assert_eq!(short.into_text(), "1234567890");
    }
}
