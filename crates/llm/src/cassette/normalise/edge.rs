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
        let before = before(text, start);
        let after = text.get(end).copied();
        let is_free = |byte: Option<u8>, refused: &[u8]| {
            byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !refused.contains(&byte))
        };
        match self {
            Self::Any => true,
            Self::Word(refused_before, refused_after) => {
                is_free(before, refused_before) && is_free(after, refused_after)
            }
            Self::Before(refused) => is_free(before, refused),
            Self::After(refused) => is_free(after, refused),
            Self::Path => {
                let goes_on = after == Some(b'.') && text.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
                is_free(before, b"_-.") && is_free(after, b"_-") && !goes_on
            }
            Self::ShortHash => {
                let in_log = matches!(before, None | Some(b'\n')) && after == Some(b' ');
                let in_brackets = before == Some(b' ') && after == Some(b']');
                in_log || in_brackets
            }
        }
    }
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
