//! Long texts made short, and coloured ones plain.

use std::borrow::Cow;
use std::collections::VecDeque;

/// The beginning and the end of a text of any length.
#[derive(Debug, Clone)]
pub struct HeadTail {
    head: String,
    tail: VecDeque<u8>,
    room: usize,
    left_out: u64,
}

impl HeadTail {
    /// Keeps at most `room` bytes at each end.
    pub const fn new(room: usize) -> Self {
        Self { head: String::new(), tail: VecDeque::new(), room, left_out: 0 }
    }

    /// Adds to the end.
    pub fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() && self.left_out == 0 {
            let fits = floor_char(text, self.room - self.head.len());
            self.head.push_str(&text[..fits]);
            text = &text[fits..];
        }
        if text.is_empty() {
            return;
        }
        if text.len() > self.room {
            let from = ceil_char(text, text.len() - self.room);
            self.left_out += from as u64;
            text = &text[from..];
        }
        let too_many = (self.tail.len() + text.len()).saturating_sub(self.room);
        self.left_out += too_many as u64;
        self.tail.drain(..too_many.min(self.tail.len()));
        self.tail.extend(text.as_bytes());
    }

    /// Adds a line, which it ends.
    pub(crate) fn push_line(&mut self, line: &str) {
        self.push(line);
        self.push("\n");
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }

    /// The text, with a word on what is missing between.
    pub fn into_text(mut self) -> String {
        let tail = self.tail.make_contiguous();
        if self.left_out == 0 {
            self.head.push_str(&String::from_utf8_lossy(tail));
            return self.head;
        }
        // The cut may have gone through a character.
        let whole = tail.iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(tail.len());
        let left_out = self.left_out + whole as u64;
        let tail = String::from_utf8_lossy(&tail[whole..]);
        format!("{}\n[… {left_out} bytes left out …]\n{tail}", self.head)
    }
}

/// A text cut to `room` bytes at each end.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    if text.len() <= 2 * room {
        return text.to_owned();
    }
    let mut short = HeadTail::new(room);
    short.push(text);
    short.into_text()
}

/// The last place at or before this one where the text may be cut.
pub(crate) fn floor_char(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil_char(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// The text without terminal colours, cursor movements and titles.
pub(crate) fn strip_ansi(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = after_escape(&rest[at + 1..]);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// What follows one escape sequence, of which the escape character itself is gone already.
fn after_escape(rest: &str) -> &str {
    let Some(kind) = rest.chars().next() else { return rest };
    let body = &rest[kind.len_utf8()..];
    match kind {
        '[' => {
            let end = body.find(|c: char| ('@'..='~').contains(&c)).map_or(body.len(), |end| end + 1);
            &body[end..]
        }
        ']' => {
            let end = body.find(['\x07', '\x1b']).unwrap_or(body.len());
            let body = &body[end..];
            body.strip_prefix('\x07').or_else(|| body.strip_prefix("\x1b\\")).unwrap_or(body)
        }
        // A set of characters is chosen: Rust's tests end their colours so.
        ' '..='/' => {
            let end = body.find(|c: char| !(' '..='/').contains(&c));
            end.and_then(|end| body[end..].chars().next().map(|last| &body[end + last.len_utf8()..]))
                .unwrap_or("")
        }
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_text_keeps_its_ends_and_says_what_is_missing() {
        let mut text = HeadTail::new(4);
        for piece in ["ab", "cdefgh", "ijkl"] {
            text.push(piece);
        }
        assert_eq!(text.into_text(), "abcd\n[… 4 bytes left out …]\nijkl");
        assert_eq!(shortened("abcdefgh", 4), "abcdefgh");
    }

    #[test]
    fn colours_and_titles_go_and_the_words_stay() {
        assert_eq!(
            strip_ansi("\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain \x1b(B\x1b[mend\x1b["),
            "red plain end"
        );
    }

    proptest! {
        #[test]
        fn any_text_in_any_pieces_stays_within_its_room(pieces in proptest::collection::vec("\\PC{0,9}", 0..9)) {
            let mut text = HeadTail::new(5);
            for piece in &pieces {
                text.push(piece);
            }
            let whole = pieces.concat();
            let short = text.into_text();
            if whole.len() <= 5 {
                prop_assert_eq!(short, whole);
            } else {
                prop_assert!(short.len() <= 5 + 5 + 40, "{}", short);
            }
        }
    }
}
