//! The key of a request: one function, for recording and for replay.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::blob::{Digest, Piece};
use super::exchange::{Asked, Headers, kept_request_headers};
use super::lane::{Call, LaneName, Shape};
use super::normalise::{Named, Names, Normaliser, result_of};
use super::policy::INLINE_BYTES;

/// The fields whose elements are stored one by one, in the order in which they are normalised.
const LISTS: &[&str] = &["system", "tools", "messages", "input", "contents"];
/// Those of them that are the conversation.
pub(crate) const CONVERSATIONS: &[&str] = &["messages", "input", "contents"];

/// A request after normalising.
#[derive(Debug, Clone)]
pub struct Key {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Headers,
    /// Short fields, as canonical JSON.
    pub(crate) fields: BTreeMap<String, Arc<str>>,
    /// Long fields.
    pub(crate) blobs: BTreeMap<String, Piece>,
    pub(crate) lists: BTreeMap<String, Vec<Piece>>,
    /// A body that is no JSON object.
    pub(crate) text: Option<String>,
    digest: Digest,
}

/// The parts of a [`Key`].
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Headers,
    pub(crate) fields: BTreeMap<String, Arc<str>>,
    pub(crate) blobs: BTreeMap<String, Piece>,
    pub(crate) lists: BTreeMap<String, Vec<Piece>>,
    pub(crate) text: Option<String>,
}

impl Key {
    pub(crate) fn new(parts: Parts) -> Self {
        let digest = parts.digest();
        let Parts { method, target, headers, fields, blobs, lists, text } = parts;
        Self { method, target, headers, fields, blobs, lists, text, digest }
    }

    /// `POST`.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Path and query.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Which model is asked, if the body says it.
    pub fn model(&self) -> Option<String> {
        serde_json::from_str(self.fields.get("model")?).ok()
    }

    /// How many elements the conversation has so far.
    pub fn messages(&self) -> usize {
        CONVERSATIONS.iter().filter_map(|name| self.lists.get(*name)).map(Vec::len).sum()
    }

    /// The whole body, indented.
    pub fn body(&self) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        let value = |json: &str| serde_json::from_str(json).unwrap_or(Value::Null);
        let short = self.fields.iter().map(|(name, json)| (name.clone(), value(json)));
        let long = self.blobs.iter().map(|(name, piece)| (name.clone(), value(&piece.json)));
        let lists = self
            .lists
            .iter()
            .map(|(name, list)| (name.clone(), list.iter().map(|piece| value(&piece.json)).collect()));
        let body: Value = Value::Object(short.chain(long).chain(lists).collect());
        serde_json::to_string_pretty(&body).unwrap_or_default()
    }

    /// The same request with every text passed through `change`.
    pub(crate) fn rewritten(&self, mut change: impl FnMut(&str) -> String) -> Self {
        let mut piece = |old: &Piece| Piece::new(change(&old.json));
        let blobs = self.blobs.iter().map(|(name, old)| (name.clone(), piece(old))).collect();
        let lists = self
            .lists
            .iter()
            .map(|(name, list)| (name.clone(), list.iter().map(&mut piece).collect()))
            .collect();
        Self::new(Parts {
            method: self.method.clone(),
            target: change(&self.target),
            headers: self.headers.iter().map(|(name, value)| (name.clone(), change(value))).collect(),
            fields: self.fields.iter().map(|(name, json)| (name.clone(), change(json).into())).collect(),
            blobs,
            lists,
            text: self.text.as_deref().map(change),
        })
    }

    /// Whether two requests are the same after normalising.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Parts {
    /// The hash of all parts, each with its length or name, so that none can pass for another.
    fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(self.method.as_bytes());
        add(self.target.as_bytes());
        add(&[u8::from(self.text.is_some())]);
        add(self.text.as_deref().unwrap_or_default().as_bytes());
        for (name, value) in &self.headers {
            add(b"header");
            add(name.as_bytes());
            add(value.as_bytes());
        }
        for (name, json) in &self.fields {
            add(b"field");
            add(name.as_bytes());
            add(json.as_bytes());
        }
        for (name, piece) in &self.blobs {
            add(b"blob");
            add(name.as_bytes());
            add(piece.digest.bytes());
        }
        for (name, pieces) in &self.lists {
            add(b"list");
            add(name.as_bytes());
            add(&(pieces.len() as u64).to_le_bytes());
            for piece in pieces {
                add(piece.digest.bytes());
            }
        }
        Digest::from(hash)
    }
}

/// Makes keys, and remembers each conversation: what it has seen costs a hash and no second reading.
#[derive(Debug)]
pub struct Keys {
    normaliser: Normaliser,
    conversations: HashMap<String, Conversation>,
}

#[derive(Debug)]
struct Conversation {
    lane: LaneName,
    memory: Memory,
}

/// What is known in a conversation: numbers of ids, and elements by their raw text.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) names: Names,
    elements: HashMap<Box<str>, Known>,
}

#[derive(Debug, Clone)]
struct Known {
    piece: Piece,
    /// The number of the call that it is the result of.
    rank: Option<u32>,
}

/// A key, and where it belongs.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) key: Key,
    pub(crate) lane: LaneName,
    /// The conversation; none for a call outside of all order.
    pub(crate) conversation: Option<String>,
    /// The numbers of a call that belongs to no conversation.
    pub(crate) names: Names,
}

impl Keys {
    /// A memory that has seen nothing.
    pub fn new(normaliser: Normaliser) -> Self {
        Self { normaliser, conversations: HashMap::new() }
    }

    /// The key of a request. The only function that makes one.
    pub fn key(&mut self, asked: &Asked<'_>) -> (LaneName, Key) {
        let keyed = self.keyed(asked);
        (keyed.lane, keyed.key)
    }

    pub(crate) fn keyed(&mut self, asked: &Asked<'_>) -> Keyed {
        let body = RawBody::of(asked.body);
        let call = Call::of(asked, body.as_ref().map(RawBody::shape).unwrap_or_default());
        match call {
            Call::Free(lane) => {
                let mut memory = Memory::default();
                let key = make(&self.normaliser, &mut memory, asked, body);
                Keyed { key, lane, conversation: None, names: memory.names }
            }
            Call::Turn(id) => {
                let next = u32::try_from(self.conversations.len()).unwrap_or(u32::MAX).saturating_add(1);
                let conversation = self.conversations.entry(id.clone()).or_insert_with(|| Conversation {
                    lane: LaneName::Conversation(next),
                    memory: Memory::default(),
                });
                let key = make(&self.normaliser, &mut conversation.memory, asked, body);
                Keyed { key, lane: conversation.lane, conversation: Some(id), names: Names::default() }
            }
        }
    }

    /// The numbers of a conversation.
    pub(crate) fn names(&mut self, conversation: &str) -> Option<&mut Names> {
        self.conversations.get_mut(conversation).map(|conversation| &mut conversation.memory.names)
    }

    pub(crate) fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// How many secrets became placeholders, all conversations together.
    pub(crate) fn secrets(&self) -> u32 {
        self.conversations.values().map(|conversation| conversation.memory.names.count(Named::Secret)).sum()
    }
}

/// A body that is a JSON object, cut but not read.
struct RawBody<'a> {
    lists: Vec<(&'static str, Vec<&'a RawValue>)>,
    fields: BTreeMap<String, &'a RawValue>,
}

impl<'a> RawBody<'a> {
    fn of(body: &'a [u8]) -> Option<Self> {
        let mut fields: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
        let mut lists = Vec::new();
        for name in LISTS {
            let elements = fields.get(*name).and_then(|raw| serde_json::from_str(raw.get()).ok());
            if let Some(elements) = elements {
                fields.remove(*name);
                lists.push((*name, elements));
            }
        }
        Some(Self { lists, fields })
    }

    fn list(&self, wanted: &str) -> Option<&[&'a RawValue]> {
        self.lists.iter().find(|(name, _)| *name == wanted).map(|(_, elements)| elements.as_slice())
    }

    fn shape(&self) -> Shape<'a> {
        let conversation = CONVERSATIONS.iter().find_map(|name| self.list(name)).unwrap_or_default();
        let tools = self.list("tools").unwrap_or_default();
        // The code mode of Codex gives its tools as an element of the conversation.
        let in_conversation =
            || conversation.iter().any(|element| element.get().contains("\"additional_tools\""));
        Shape {
            first_message: conversation.first().map(|element| element.get()),
            has_tools: !tools.is_empty() || in_conversation(),
        }
    }
}

fn make(normaliser: &Normaliser, memory: &mut Memory, asked: &Asked<'_>, body: Option<RawBody<'_>>) -> Key {
    let mut parts = Parts {
        method: asked.method.to_owned(),
        target: normaliser.text(&mut memory.names, &without_key(asked.target)).into_owned(),
        headers: kept_request_headers(asked.headers),
        ..Parts::default()
    };
    match body {
        Some(body) => fill(normaliser, memory, &mut parts, body),
        None if asked.body.is_empty() => {}
        None => {
            let text = String::from_utf8_lossy(asked.body);
            parts.text = Some(normaliser.text(&mut memory.names, &text).into_owned());
        }
    }
    Key::new(parts)
}

fn fill(normaliser: &Normaliser, memory: &mut Memory, parts: &mut Parts, body: RawBody<'_>) {
    for (name, elements) in body.lists {
        parts.lists.insert(name.to_owned(), list(normaliser, memory, &elements));
    }
    for (name, raw) in body.fields {
        let json = match normaliser.whole_field(&name) {
            Some(placeholder) => canonical(&Value::from(placeholder)),
            None => {
                let mut value = parsed(raw);
                normaliser.value(&mut memory.names, &mut value);
                canonical(&value)
            }
        };
        if json.len() > INLINE_BYTES {
            parts.blobs.insert(name, Piece::new(json));
        } else {
            parts.fields.insert(name, json.into());
        }
    }
}

/// The elements of a list. Only those that were not seen before are read. Results that stand side by side are put into
/// the order of their calls, and only then normalised: what they hold is numbered in that order.
fn list(normaliser: &Normaliser, memory: &mut Memory, elements: &[&RawValue]) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(elements.len());
    let mut run: Vec<(u32, Element)> = Vec::new();
    for raw in elements {
        let element = Element::of(memory, raw);
        match element.rank(memory) {
            Some(rank) => run.push((rank, element)),
            None => {
                flush(normaliser, memory, &mut run, &mut pieces);
                pieces.push(element.piece(normaliser, memory, None));
            }
        }
    }
    flush(normaliser, memory, &mut run, &mut pieces);
    pieces
}

fn flush(
    normaliser: &Normaliser,
    memory: &mut Memory,
    run: &mut Vec<(u32, Element)>,
    pieces: &mut Vec<Piece>,
) {
    run.sort_by_key(|(rank, _)| *rank);
    for (rank, element) in run.drain(..) {
        pieces.push(element.piece(normaliser, memory, Some(rank)));
    }
}

enum Element {
    Known(Known),
    New(Box<str>, Value),
}

impl Element {
    fn of(memory: &Memory, raw: &RawValue) -> Self {
        let raw_text = raw.get();
        match memory.elements.get(raw_text) {
            Some(known) => Self::Known(known.clone()),
            None => Self::New(raw_text.into(), parsed(raw)),
        }
    }

    /// The number of the call that it is the result of.
    fn rank(&self, memory: &mut Memory) -> Option<u32> {
        match self {
            Self::Known(known) => known.rank,
            Self::New(_, value) => result_of(value).map(|id| memory.names.number(Named::Id, id)),
        }
    }

    fn piece(self, normaliser: &Normaliser, memory: &mut Memory, rank: Option<u32>) -> Piece {
        match self {
            Self::Known(known) => known.piece,
            Self::New(raw, mut value) => {
                normaliser.value(&mut memory.names, &mut value);
                let piece = Piece::new(canonical(&value));
                memory.elements.insert(raw, Known { piece: piece.clone(), rank });
                piece
            }
        }
    }
}

/// What is nested too deeply to be read is taken as a text.
fn parsed(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| Value::from(raw.get()))
}

/// Sorted keys, no spaces.
pub(crate) fn canonical(value: &Value) -> String {
    // A value that was parsed can be written.
    serde_json::to_string(value).unwrap_or_default()
}

/// Gemini's API takes its key in the query as well.
fn without_key(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("key=")).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}
