//! What may stand around a match, so that a part of a longer word is left alone.

/// The bytes that must not stand directly before and after a match, beside letters and digits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Edges {
    /// Anything may.
    Any,
    /// A word: no letter, digit or these before, no letter, digit or these after.
    Word(&'static [u8], &'static [u8]),
    /// The beginning of a word: no letter, digit or these before.
    Before(&'static [u8]),
    /// The end of a word: no letter, digit or these after.
    After(&'static [u8]),
    /// A path: `/tmp/work` is in `/tmp/work/a` and in `cd /tmp/work.`, and not in `/tmp/work-2` or `/tmp/work.bak`.
    Path,
    /// The first word of a line of `git log --oneline`, or the last in the brackets of `git commit`.
    ShortHash,
}

impl Edges {
    pub(crate) fn hold(self, text: &[u8], start: usize, end: usize) -> bool {
        let after = text.get(end).copied();
        let ends = match self {
            Self::Any | Self::Before(_) => true,
            Self::Word(_, refused) | Self::After(refused) => is_free(after, refused),
            Self::Path => {
                let goes_on = after == Some(b'.') && text.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
                is_free(after, b"_-") && !goes_on
            }
            Self::ShortHash => match before(text, start) {
                Some(b' ') => after == Some(b']'),
                _ => after == Some(b' '),
            },
        };
        ends && self.may_begin(text, start)
    }

    /// Whether a match may begin there, wherever it ends.
    pub(crate) fn may_begin(self, text: &[u8], start: usize) -> bool {
        match self {
            Self::Any | Self::After(_) => true,
            Self::Word(refused, _) | Self::Before(refused) => is_free(before(text, start), refused),
            Self::Path => is_free(before(text, start), b"_-."),
            Self::ShortHash => matches!(before(text, start), None | Some(b'\n' | b' ')),
        }
    }
}

fn is_free(byte: Option<u8>, refused: &[u8]) -> bool {
    byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !refused.contains(&byte))
}

/// The byte before; the letter of an escape (`\n` in JSON inside of a text) counts as the character that it stands for.
fn before(text: &[u8], start: usize) -> Option<u8> {
    let byte = *text.get(start.checked_sub(1)?)?;
    if !matches!(byte, b'n' | b'r' | b't' | b'b' | b'f') {
        return Some(byte);
    }
    let backslashes = text[..start - 1].iter().rev().take_while(|byte| **byte == b'\\').count();
    Some(if backslashes % 2 == 1 { b'\n' } else { byte })
}
