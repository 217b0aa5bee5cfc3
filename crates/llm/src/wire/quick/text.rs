//! Texts between quotes.

use std::borrow::Cow;

/// So many bytes are looked at in one step.
const STEP: usize = size_of::<u128>();

/// In so many steps a short text is over. Most texts are names.
const STEPS_OF_A_NAME: usize = 2;

/// A text and how many bytes it took, from after its first quote to after its last; none if it is not as it should be.
pub(super) fn read(rest: &str) -> Option<(Cow<'_, str>, usize)> {
    match first_special(rest.as_bytes()) {
        Some((end, b'"')) => Some((Cow::Borrowed(rest.get(..end)?), end + 1)),
        _ => read_long(rest),
    }
}

/// The first byte that is not simply a part of the text, if it comes soon.
fn first_special(bytes: &[u8]) -> Option<(usize, u8)> {
    for (index, step) in bytes.as_chunks::<STEP>().0.iter().take(STEPS_OF_A_NAME).enumerate() {
        let special = equal(*step, b'"') | equal(*step, b'\\') | below_space(*step);
        if special != 0 {
            let at = index * STEP + first(special);
            return Some((at, bytes[at]));
        }
    }
    None
}

fn read_long(rest: &str) -> Option<(Cow<'_, str>, usize)> {
    let end = end(rest.as_bytes())?;
    let raw = rest.get(..end)?;
    // To look at all of them is faster than to stop at the first.
    if raw.bytes().fold(u8::MAX, u8::min) < b' ' {
        return None;
    }
    let is_plain = memchr::memchr(b'\\', raw.as_bytes()).is_none();
    let text = if is_plain { Cow::Borrowed(raw) } else { Cow::Owned(unescape(raw.as_bytes())?) };
    Some((text, end + 1))
}

/// Where the quote is that no backslash is before, or only such as mean themselves.
fn end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'"', bytes).find(|end| {
        let before = bytes[..*end].iter().rev();
        before.take_while(|byte| **byte == b'\\').count() % 2 == 0
    })
}

fn unescape(mut rest: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(rest.len() + STEP);
    while !rest.is_empty() {
        let plain = copy_plain(rest, &mut text);
        rest = &rest[plain..];
        if let Some((b'\\', escape)) = rest.split_first() {
            rest = letter(escape, &mut text)?;
        }
    }
    String::from_utf8(text).ok()
}

/// Copies what is before a backslash, at most one step, and says how much that was.
fn copy_plain(rest: &[u8], text: &mut Vec<u8>) -> usize {
    let Some(step) = rest.first_chunk::<STEP>() else {
        let plain = rest.split(|byte| *byte == b'\\').next().unwrap_or_default();
        text.extend_from_slice(plain);
        return plain.len();
    };
    // All are copied, and what was too much is taken back: a copy of a fixed length is the fastest.
    text.extend_from_slice(step);
    let escape = equal(*step, b'\\');
    if escape == 0 {
        return STEP;
    }
    text.truncate(text.len() - STEP + first(escape));
    first(escape)
}

/// Adds the letter that is meant by what stands after a backslash, and gives what follows.
fn letter<'r>(escape: &'r [u8], text: &mut Vec<u8>) -> Option<&'r [u8]> {
    let (kind, rest) = escape.split_first()?;
    text.push(match kind {
        b'n' => b'\n',
        b'"' => b'"',
        b'\\' => b'\\',
        b't' => b'\t',
        b'r' => b'\r',
        b'/' => b'/',
        b'b' => 0x08,
        b'f' => 0x0c,
        b'u' => return by_number(rest, text),
        _ => return None,
    });
    Some(rest)
}

/// Four digits, or twice four for what UTF-16 says in two.
fn by_number<'r>(digits: &'r [u8], text: &mut Vec<u8>) -> Option<&'r [u8]> {
    let (first, mut rest) = number(digits)?;
    let letter = match char::from_u32(first.into()) {
        Some(letter) => letter,
        None => {
            let (second, more) = number(rest.strip_prefix(b"\\u")?)?;
            rest = more;
            char::decode_utf16([first, second]).next()?.ok()?
        }
    };
    text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    Some(rest)
}

fn number(digits: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = digits.split_first_chunk::<4>()?;
    let number = digits.iter().try_fold(0, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number << 4 | digit)
    })?;
    Some((u16::try_from(number).ok()?, rest))
}

const ONES: u128 = u128::MAX / 255;
const HIGHEST_BITS: u128 = ONES << 7;

/// The highest bit of each byte that is this one. Above the first, others may be marked too.
fn equal(step: [u8; STEP], byte: u8) -> u128 {
    let zero = u128::from_le_bytes(step) ^ (ONES * u128::from(byte));
    zero.wrapping_sub(ONES) & !zero & HIGHEST_BITS
}

/// The same for bytes that no text may have unescaped.
fn below_space(step: [u8; STEP]) -> u128 {
    let bytes = u128::from_le_bytes(step);
    bytes.wrapping_sub(ONES * u128::from(b' ')) & !bytes & HIGHEST_BITS
}

/// The place of the first that is marked.
fn first(marks: u128) -> usize {
    marks.trailing_zeros() as usize / 8
}
