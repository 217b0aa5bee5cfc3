//! Cutting XML into tokens as its bytes come, in bounded memory.
//!
//! Only what reports need: tags with their attributes, and text. Text of any length is handed on in pieces, a tag is
//! held until its end. Nothing is ever expanded but the five entities of XML and numbers: a document that declares
//! its own is told as such.

mod decode;

use memchr::{memchr, memchr3, memmem};

pub(super) use decode::{Attributes, Text, unescape};

/// A tag longer than this is cut: what follows in it passes by.
const LONGEST_TAG: usize = 1 << 20;
/// Enough to tell what begins with `<`.
const LEAD: &[u8] = b"<![CDATA[";
/// The longest entity that is resolved: `&#x10FFFF;`.
const LONGEST_ENTITY: usize = 12;

#[derive(Debug)]
pub(super) enum Token<'a> {
    /// A tag opens; an empty one is not followed by its end.
    Open { name: &'a str, attributes: Attributes<'a>, empty: bool },
    /// A tag ends.
    Close { name: &'a str },
    /// Text, whole or in pieces.
    Text(Text<'a>),
    /// The document brings entities of its own, as bombs do.
    Declares,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Text,
    /// After a `<` that has not yet told what it is.
    Lead,
    /// Inside a tag, perhaps inside quotes.
    Tag {
        quote: u8,
    },
    CData,
    /// Comments and instructions, up to their end.
    Until(&'static [u8]),
    /// A declaration: so many brackets deep, perhaps inside quotes.
    Declaration {
        depth: u32,
        quote: u8,
    },
}

/// Takes bytes, hands on tokens.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    mode: Mode,
    /// What of the current token came in earlier pieces.
    held: Vec<u8>,
}

impl Tokens {
    pub(super) fn feed(&mut self, mut bytes: &[u8], each: &mut impl FnMut(Token<'_>)) {
        while !bytes.is_empty() {
            bytes = match self.mode {
                Mode::Text => self.text(bytes, each),
                Mode::Lead => self.lead(bytes),
                Mode::Tag { quote } => self.tag(bytes, quote, each),
                Mode::CData => self.cdata(bytes, each),
                Mode::Until(end) => self.skip(bytes, end),
                Mode::Declaration { depth, quote } => self.declaration(bytes, depth, quote, each),
            };
        }
    }

    fn text<'a>(&mut self, bytes: &'a [u8], each: &mut impl FnMut(Token<'_>)) -> &'a [u8] {
        let end = memchr(b'<', bytes);
        if self.held.is_empty() {
            let text = &bytes[..end.unwrap_or(bytes.len())];
            let whole = if end.is_some() { text.len() } else { whole_text(text) };
            decode::escaped(&text[..whole], each);
            self.held.extend_from_slice(&text[whole..]);
        } else {
            // Only a few bytes are held; they need only a few more.
            let more = end.unwrap_or(bytes.len()).min(4 * LONGEST_ENTITY);
            self.held.extend_from_slice(&bytes[..more]);
            let whole = if end == Some(more) { self.held.len() } else { whole_text(&self.held) };
            decode::escaped(&self.held[..whole], each);
            self.held.drain(..whole);
            if end != Some(more) {
                return &bytes[more..];
            }
        }
        match end {
            Some(end) => {
                self.mode = Mode::Lead;
                &bytes[end..]
            }
            None => &[],
        }
    }

    fn lead<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.held.is_empty()
            && let Some(mode) = kind(bytes)
        {
            self.mode = mode;
            return &bytes[consumed(mode)..];
        }
        self.held.push(bytes[0]);
        let Some(mode) = kind(&self.held) else { return &bytes[1..] };
        self.mode = mode;
        if consumed(mode) > 0 {
            self.held.clear();
            &bytes[1..]
        } else {
            // What a tag or a declaration begins with is held, but for the byte that told which it is.
            self.held.pop();
            bytes
        }
    }

    fn tag<'a>(&mut self, bytes: &'a [u8], quote: u8, each: &mut impl FnMut(Token<'_>)) -> &'a [u8] {
        let mut quote = quote;
        let Some(end) = tag_end(bytes, &mut quote) else {
            self.mode = Mode::Tag { quote };
            self.hold(bytes);
            return &[];
        };
        if self.held.is_empty() {
            decode::tag(&bytes[..end], each);
        } else {
            self.hold(&bytes[..end]);
            decode::tag(&self.held, each);
            self.held.clear();
        }
        self.mode = Mode::Text;
        &bytes[end + 1..]
    }

    fn cdata<'a>(&mut self, bytes: &'a [u8], each: &mut impl FnMut(Token<'_>)) -> &'a [u8] {
        if !self.held.is_empty() {
            // At most a broken character or two brackets are held: go on byte by byte until that is settled.
            self.held.push(bytes[0]);
            if self.held.ends_with(b"]]>") {
                decode::plain(&self.held[..self.held.len() - 3], each);
                self.held.clear();
                self.mode = Mode::Text;
            } else {
                let whole = whole_cdata(&self.held);
                decode::plain(&self.held[..whole], each);
                self.held.drain(..whole);
            }
            return &bytes[1..];
        }
        if let Some(end) = memmem::find(bytes, b"]]>") {
            decode::plain(&bytes[..end], each);
            self.mode = Mode::Text;
            return &bytes[end + 3..];
        }
        let whole = whole_cdata(bytes);
        decode::plain(&bytes[..whole], each);
        self.held.extend_from_slice(&bytes[whole..]);
        &[]
    }

    fn skip<'a>(&mut self, bytes: &'a [u8], end: &'static [u8]) -> &'a [u8] {
        if self.held.is_empty()
            && let Some(at) = memmem::find(bytes, end)
        {
            self.mode = Mode::Text;
            return &bytes[at + end.len()..];
        }
        let step = if self.held.is_empty() { bytes.len() } else { 1 };
        self.held.extend_from_slice(&bytes[bytes.len().min(step).saturating_sub(end.len())..step]);
        if self.held.ends_with(end) {
            self.held.clear();
            self.mode = Mode::Text;
        } else {
            let kept = (0..end.len()).rev().find(|kept| self.held.ends_with(&end[..*kept])).unwrap_or(0);
            self.held.drain(..self.held.len() - kept);
        }
        &bytes[step..]
    }

    fn declaration<'a>(
        &mut self,
        bytes: &'a [u8],
        mut depth: u32,
        mut quote: u8,
        each: &mut impl FnMut(Token<'_>),
    ) -> &'a [u8] {
        let held = std::mem::take(&mut self.held);
        for (at, byte) in held.iter().chain(bytes).enumerate() {
            match byte {
                _ if quote != 0 => quote = if *byte == quote { 0 } else { quote },
                b'"' | b'\'' => quote = *byte,
                b'[' => {
                    depth += 1;
                    each(Token::Declares);
                }
                b']' => depth = depth.saturating_sub(1),
                // What is held never ends a declaration.
                b'>' if depth == 0 => {
                    self.mode = Mode::Text;
                    return &bytes[at + 1 - held.len()..];
                }
                _ => {}
            }
        }
        self.mode = Mode::Declaration { depth, quote };
        &[]
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = LONGEST_TAG.saturating_sub(self.held.len());
        self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// What begins here, if that can be told yet.
fn kind(lead: &[u8]) -> Option<Mode> {
    match lead {
        [_, b'?', ..] => Some(Mode::Until(b"?>")),
        [_, b'!', b'-', b'-', ..] => Some(Mode::Until(b"-->")),
        [_, b'!', ..] if lead.starts_with(LEAD) => Some(Mode::CData),
        [_, b'!', ..] if LEAD.starts_with(lead) || b"<!--".starts_with(lead) => None,
        [_, b'!', ..] => Some(Mode::Declaration { depth: 0, quote: 0 }),
        [_, _, ..] => Some(Mode::Tag { quote: 0 }),
        _ => None,
    }
}

/// How much of the beginning is no more than that.
fn consumed(mode: Mode) -> usize {
    match mode {
        Mode::Until(b"?>") => 2,
        Mode::Until(_) => 4,
        Mode::CData => LEAD.len(),
        _ => 0,
    }
}

fn tag_end(bytes: &[u8], quote: &mut u8) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        if *quote == 0 {
            let next = at + memchr3(b'>', b'"', b'\'', rest)?;
            match bytes[next] {
                b'>' => return Some(next),
                opened => *quote = opened,
            }
            at = next + 1;
        } else {
            at += memchr(*quote, rest)? + 1;
            *quote = 0;
        }
    }
}

/// How much of a text may be handed on: no character and no entity is cut.
fn whole_text(text: &[u8]) -> usize {
    let near = text.len().saturating_sub(LONGEST_ENTITY);
    let open = text[near..].iter().rposition(|byte| *byte == b'&');
    match open {
        Some(at) if memchr(b';', &text[near + at..]).is_none() => near + at,
        _ => whole_characters(text),
    }
}

fn whole_cdata(text: &[u8]) -> usize {
    let brackets = text.iter().rev().take_while(|byte| **byte == b']').take(2).count();
    if brackets > 0 { text.len() - brackets } else { whole_characters(text) }
}

/// Without the beginning of a character whose rest has not come.
fn whole_characters(text: &[u8]) -> usize {
    for back in 1..=text.len().min(3) {
        let at = text.len() - back;
        match text[at] {
            0x80..=0xBF => {}
            lead @ 0xC0..=0xFF => {
                let length = if lead >= 0xF0 {
                    4
                } else if lead >= 0xE0 {
                    3
                } else {
                    2
                };
                return if length > back { at } else { text.len() };
            }
            _ => return text.len(),
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
