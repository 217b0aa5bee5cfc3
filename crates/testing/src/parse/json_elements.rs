//! Cuts JSON of any size into the elements that a parser asks for, as it streams: memory holds one element at a time.
//!
//! What stands before, between and after documents is passed over, so a report can be found in what was printed.
//! Long strings are cut, and half surrogates (Python writes them for bytes that are no UTF-8) are replaced, so that
//! neither of them costs the whole element.

use memchr::{memchr, memchr3};

/// A string longer than this is cut: its beginning is kept.
const LONGEST_STRING: usize = 64 << 10;
/// An element larger than this, its strings cut, is none that a runner wrote.
const LARGEST_ELEMENT: usize = 4 << 20;
/// No name of a field that we look for is longer.
const LONGEST_KEY: usize = 64;

/// How documents stand in their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A document may go over many lines.
    Document,
    /// One document a line; a line that breaks off is given up, and the next one is read.
    Lines,
}

/// The cutter. Elements are named by paths: `""` is the whole document, `a.b` a field, `a[]` each element of an array.
/// An element that holds others which are asked for comes after them and without them.
#[derive(Debug)]
pub(crate) struct JsonElements {
    layout: Layout,
    paths: Vec<Path>,
    state: State,
    /// The containers on the way to an element that is asked for, from the outside in.
    open: Vec<Node>,
    /// How many containers are open below those.
    deep: u64,
    captures: Vec<Capture>,
    text: Text,
    lost: u64,
}

#[derive(Debug)]
struct Path {
    name: &'static str,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(&'static str),
    Each,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Outside of any document.
    Noise,
    /// After a bracket that may begin a document.
    Candidate(u8),
    /// Between tokens.
    Structure,
    /// In a string.
    Text,
    /// In a number or a word.
    Scalar,
}

#[derive(Debug)]
struct Node {
    array: bool,
    /// A bit for each path that leads through here.
    paths: u32,
    /// In an object, whether the next string is a key.
    expects_key: bool,
    /// Whether its elements are handed on, and so do not stand in it.
    emptied: bool,
}

#[derive(Debug)]
struct Capture {
    path: &'static str,
    /// How many nodes are open around it.
    depth: usize,
    bytes: Vec<u8>,
    too_large: bool,
}

/// The string that is being read.
#[derive(Debug, Default)]
struct Text {
    is_key: bool,
    key: Vec<u8>,
    length: usize,
    /// An escape sequence, or two that may be the halves of one character.
    escape: Vec<u8>,
}

/// Takes elements: the path that asked for it, and its JSON.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&'static str, &str);

impl JsonElements {
    pub(crate) fn new(layout: Layout, paths: &[&'static str]) -> Self {
        let paths = paths.iter().map(|name| Path { name, steps: steps(name) }).collect();
        Self {
            layout,
            paths,
            state: State::Noise,
            open: Vec::new(),
            deep: 0,
            captures: Vec::new(),
            text: Text::default(),
            lost: 0,
        }
    }

    /// Takes more bytes and hands on each element that they complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], take: Take<'_>) {
        while !bytes.is_empty() {
            let used = match self.state {
                State::Noise => self.noise(bytes),
                State::Candidate(bracket) => self.candidate(bracket, bytes[0]),
                State::Structure => self.structure(bytes, take),
                State::Text => self.string(bytes, take),
                State::Scalar => self.scalar(bytes, take),
            };
            bytes = &bytes[used..];
        }
    }

    /// How many elements were too large to be handed on.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether a document began and did not end.
    pub(crate) fn is_inside(&self) -> bool {
        !matches!(self.state, State::Noise | State::Candidate(_))
    }

    fn noise(&mut self, bytes: &[u8]) -> usize {
        match memchr::memchr2(b'{', b'[', bytes) {
            Some(at) => {
                self.state = State::Candidate(bytes[at]);
                at + 1
            }
            None => bytes.len(),
        }
    }

    /// A bracket begins a document if what follows can stand there in JSON.
    fn candidate(&mut self, bracket: u8, byte: u8) -> usize {
        match byte {
            b'\n' if self.layout == Layout::Lines => self.state = State::Noise,
            b' ' | b'\t' | b'\r' | b'\n' => return 1,
            b'"' => self.begin_document(bracket),
            b'}' if bracket == b'{' => self.begin_document(bracket),
            b'{' | b'[' | b']' if bracket == b'[' => self.begin_document(bracket),
            _ => self.state = State::Noise,
        }
        0
    }

    fn begin_document(&mut self, bracket: u8) {
        self.state = State::Structure;
        self.begin_value(bracket);
    }

    /// Gives up the document.
    fn tear(&mut self) {
        self.state = State::Noise;
        self.open.clear();
        self.captures.clear();
        self.deep = 0;
        self.text.escape.clear();
    }

    fn structure(&mut self, bytes: &[u8], take: Take<'_>) -> usize {
        let plain = if self.deep == 0 {
            bytes.iter().position(|byte| !byte.is_ascii_whitespace() || *byte == b'\n')
        } else {
            bytes.iter().position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']' | b'\n'))
        };
        let at = plain.unwrap_or(bytes.len());
        self.keep(&bytes[..at]);
        let Some(byte) = bytes.get(at).copied() else { return at };
        match byte {
            b'\n' if self.layout == Layout::Lines => self.tear(),
            b'\n' => {}
            b'"' => self.begin_string(),
            b'{' | b'[' => self.begin_value(byte),
            b'}' | b']' => self.end_container(byte, take),
            b',' | b':' => self.separator(byte),
            _ => {
                self.begin_scalar();
                return at;
            }
        }
        at + 1
    }

    fn separator(&mut self, byte: u8) {
        let emptied = self.open.last_mut().is_some_and(|node| {
            node.expects_key = byte == b',';
            node.emptied
        });
        if !emptied {
            self.keep(&[byte]);
        }
    }

    fn begin_string(&mut self) {
        let is_key = self.deep == 0 && self.open.last().is_some_and(|node| !node.array && node.expects_key);
        if !is_key {
            self.begin_element();
        }
        self.keep(b"\"");
        self.text.is_key = is_key;
        self.text.length = 0;
        if is_key {
            self.text.key.clear();
        }
        self.state = State::Text;
    }

    fn begin_scalar(&mut self) {
        self.begin_element();
        self.state = State::Scalar;
    }

    fn begin_value(&mut self, bracket: u8) {
        let paths = self.begin_element();
        self.keep(&[bracket]);
        let array = bracket == b'[';
        let depth = self.open.len();
        let deeper = |path: &Path| path.steps.get(depth).is_some_and(|step| (*step == Step::Each) == array);
        let through = self.select(paths, deeper);
        if self.deep > 0 || through == 0 {
            self.deep += 1;
            return;
        }
        let emptied = array && self.select(through, |path| path.steps.len() == depth + 1) != 0;
        self.open.push(Node { array, paths: through, expects_key: !array, emptied });
    }

    /// A value begins here: if it is asked for, what follows is of it. Returns the paths that lead to it.
    fn begin_element(&mut self) -> u32 {
        if self.deep > 0 {
            return 0;
        }
        let depth = self.open.len();
        let paths = match self.open.last() {
            None => self.select(u32::MAX, |_| true),
            Some(node) if node.array => node.paths,
            Some(node) => self.select(node.paths, |path| {
                matches!(path.steps.get(depth - 1), Some(Step::Field(name)) if name.as_bytes() == self.text.key)
            }),
        };
        let asked =
            (0..self.paths.len()).find(|at| paths >> at & 1 == 1 && self.paths[*at].steps.len() == depth);
        if let Some(at) = asked {
            if self.open.last().is_some_and(|node| !node.array) {
                self.keep(b"null");
            }
            let path = self.paths[at].name;
            self.captures.push(Capture { path, depth, bytes: Vec::new(), too_large: false });
        }
        paths
    }

    fn select(&self, paths: u32, wanted: impl Fn(&Path) -> bool) -> u32 {
        let chosen = self.paths.iter().enumerate().filter(|(at, path)| paths >> at & 1 == 1 && wanted(path));
        chosen.fold(0, |all, (at, _)| all | 1 << at)
    }

    fn end_container(&mut self, bracket: u8, take: Take<'_>) {
        self.keep(&[bracket]);
        if self.deep > 0 {
            self.deep -= 1;
        } else {
            self.open.pop();
        }
        self.end_value(take);
    }

    fn end_value(&mut self, take: Take<'_>) {
        self.state = State::Structure;
        if self.deep > 0 {
            return;
        }
        if self.captures.last().is_some_and(|capture| capture.depth == self.open.len())
            && let Some(capture) = self.captures.pop()
        {
            if capture.too_large {
                self.lost += 1;
            } else {
                take(capture.path, &String::from_utf8_lossy(&capture.bytes));
            }
        }
        if self.open.is_empty() {
            self.state = State::Noise;
        }
    }

    fn scalar(&mut self, bytes: &[u8], take: Take<'_>) -> usize {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b'"') || byte.is_ascii_whitespace();
        let end = bytes.iter().position(ends);
        self.keep(&bytes[..end.unwrap_or(bytes.len())]);
        if end.is_some() {
            self.end_value(take);
        }
        end.unwrap_or(bytes.len())
    }

    fn string(&mut self, bytes: &[u8], take: Take<'_>) -> usize {
        if !self.text.escape.is_empty() {
            return usize::from(self.escaped(bytes[0]));
        }
        let at = memchr3(b'"', b'\\', b'\n', bytes).unwrap_or(bytes.len());
        self.keep_text(&bytes[..at]);
        match bytes.get(at) {
            None => return at,
            Some(b'\\') => self.text.escape.push(b'\\'),
            // A line end cannot stand in a string: the document broke off, and something else follows.
            Some(b'\n') => self.tear(),
            Some(_) => {
                self.keep(b"\"");
                if self.text.is_key {
                    self.state = State::Structure;
                } else {
                    self.end_value(take);
                }
            }
        }
        at + 1
    }

    /// Takes a byte of an escape sequence; false if it is none of it.
    fn escaped(&mut self, byte: u8) -> bool {
        match (self.text.escape.len(), byte) {
            (6, b'\\') | (7, b'u') => {}
            (6, _) => {
                self.replace_escape(6);
                return false;
            }
            (7, _) => self.replace_escape(6),
            _ => {}
        }
        self.text.escape.push(byte);
        match self.text.escape.len() {
            2 if byte != b'u' => self.keep_escape(),
            6 => self.settle_escape(),
            12 if is_surrogate(&self.text.escape[6..], b"cdefCDEF") => self.keep_escape(),
            12 => {
                self.replace_escape(6);
                self.settle_escape();
            }
            _ => {}
        }
        true
    }

    /// One whole `\uXXXX`: kept, replaced, or held back as the first half of a character.
    fn settle_escape(&mut self) {
        if is_surrogate(&self.text.escape, b"cdefCDEF") {
            self.replace_escape(6);
        } else if !is_surrogate(&self.text.escape, b"89abAB") {
            self.keep_escape();
        }
    }

    fn keep_escape(&mut self) {
        let escape = std::mem::take(&mut self.text.escape);
        self.keep_text(&escape);
    }

    fn replace_escape(&mut self, length: usize) {
        self.text.escape.drain(..length);
        self.keep_text(b"\\ufffd");
    }

    /// Keeps a piece of a string, which is not cut inside unless it is plain.
    fn keep_text(&mut self, piece: &[u8]) {
        let room = LONGEST_STRING.saturating_sub(self.text.length);
        let plain = piece.first() != Some(&b'\\');
        let fits = if piece.len() <= room || plain { piece.len().min(room) } else { 0 };
        self.text.length += piece.len();
        self.keep(&piece[..fits]);
        if self.text.is_key && self.text.key.len() <= LONGEST_KEY {
            self.text.key.extend_from_slice(&piece[..fits.min(LONGEST_KEY + 1)]);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let Some(capture) = self.captures.last_mut() else { return };
        if capture.bytes.len() + bytes.len() > LARGEST_ELEMENT {
            capture.too_large = true;
            capture.bytes = Vec::new();
        } else if !capture.too_large {
            capture.bytes.extend_from_slice(bytes);
        }
    }
}

/// Whether `\uXXXX` is half of a character, the first (`D8` to `DB`) or the second (`DC` to `DF`).
fn is_surrogate(escape: &[u8], half: &[u8]) -> bool {
    matches!(escape, [_, _, b'd' | b'D', kind, ..] if memchr(*kind, half).is_some())
}

fn steps(path: &'static str) -> Vec<Step> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, each) = part.strip_suffix("[]").map_or((part, false), |name| (name, true));
        steps.extend((!name.is_empty()).then_some(Step::Field(name)));
        steps.extend(each.then_some(Step::Each));
    }
    steps
}

#[cfg(test)]
mod tests;
