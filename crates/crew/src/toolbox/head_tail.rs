//! The beginning and the end of a text of any length, in memory that does not grow with it.

use std::collections::VecDeque;

/// Takes bytes as they come, and keeps the first and the last of them.
#[derive(Debug)]
pub(crate) struct HeadTail {
    most_head: usize,
    most_tail: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl HeadTail {
    pub(crate) fn new(most_head: usize, most_tail: usize) -> Self {
        Self { most_head, most_tail, head: Vec::new(), tail: VecDeque::new(), left_out: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (to_head, rest) = bytes.split_at(bytes.len().min(self.most_head - self.head.len()));
        self.head.extend_from_slice(to_head);
        let too_many = (self.tail.len() + rest.len()).saturating_sub(self.most_tail);
        let of_old = too_many.min(self.tail.len());
        self.tail.drain(..of_old);
        self.tail.extend(&rest[too_many - of_old..]);
        self.left_out += too_many as u64;
    }

    /// The text, with a mark where something is missing that says how much, and how to see it.
    pub(crate) fn finish(self, how_to_see: &str) -> String {
        let tail = Vec::from(self.tail);
        if self.left_out == 0 {
            let mut whole = self.head;
            whole.extend(tail);
            return String::from_utf8_lossy(&whole).into_owned();
        }
        // Cut at lines where there are any near, so that no half line misleads.
        let head = cut_after_last_line(&self.head);
        let tail_at = first_line_begin(&tail);
        let left_out = self.left_out + (self.head.len() - head.len()) as u64 + tail_at as u64;
        format!(
            "{}\n[… {left_out} bytes left out; {how_to_see} …]\n{}",
            String::from_utf8_lossy(head).trim_end_matches('\n'),
            String::from_utf8_lossy(&tail[tail_at..]),
        )
    }
}

/// A text that is whole already, cut to what a model gets to read.
pub(crate) fn capped(text: String, head: usize, tail: usize, how_to_see: &str) -> String {
    if text.len() <= head + tail {
        return text;
    }
    let mut kept = HeadTail::new(head, tail);
    kept.push(text.as_bytes());
    kept.finish(how_to_see)
}

fn cut_after_last_line(head: &[u8]) -> &[u8] {
    let near = head.len().saturating_sub(head.len() / 4);
    match head[near..].iter().rposition(|byte| *byte == b'\n') {
        Some(at) => &head[..=near + at],
        None => head,
    }
}

fn first_line_begin(tail: &[u8]) -> usize {
    let near = tail.len() / 4;
    tail[..near].iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_whole_and_what_does_not_says_how_much_is_missing() {
        assert_eq!(capped("one\ntwo\n".into(), 4, 4, "x"), "one\ntwo\n");
        let text: String = (1..=100).map(|line| format!("line {line}\n")).collect();
        assert_snapshot!(capped(text, 40, 40, "use `offset`"), @"
        line 1
        line 2
        line 3
        line 4
        line 5
        [… 724 bytes left out; use `offset` …]
        line 97
        line 98
        line 99
        line 100
        ");
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter_and_nothing_is_lost_unsaid(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            head in 0usize..60,
            tail in 0usize..60,
        ) {
            let all = pieces.concat();
            let (mut by_piece, mut at_once) = (HeadTail::new(head, tail), HeadTail::new(head, tail));
            for piece in &pieces {
                by_piece.push(piece);
            }
            at_once.push(&all);
            let text = by_piece.finish("x");
            prop_assert_eq!(&text, &at_once.finish("x"));
            prop_assert_eq!(text.contains("bytes left out"), all.len() > head + tail);
        }
    }
}
