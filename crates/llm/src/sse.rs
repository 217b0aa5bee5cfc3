//! Server-sent events: bytes to events, events to bytes.

use serde::Serialize;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its kind, if it names one.
    pub name: Option<String>,
    /// What it carries.
    pub data: String,
}

/// No vendor's event is longer: the longest carry a whole answer.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// An event that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {limit} bytes")]
pub struct TooLong {
    limit: usize,
}

/// Takes bytes as they come, cut anywhere, and gives the events that are whole.
#[derive(Debug)]
pub struct Decoder {
    line: Vec<u8>,
    name: Option<String>,
    data: Vec<u8>,
    has_data: bool,
    /// A line feed that follows belongs to the line that is over.
    after_return: bool,
    /// The first line may begin with a byte order mark.
    begun: bool,
    limit: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::with_limit(MOST_BYTES)
    }
}

impl Decoder {
    /// Takes events up to a number of bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            name: None,
            data: Vec::new(),
            has_data: false,
            after_return: false,
            begun: false,
            limit,
        }
    }

    /// Takes bytes. What was not ended by an empty line when the stream ends is no event.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), TooLong> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.keep(&bytes[..end])?;
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_return {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            self.end_line(&mut each);
        }
        self.keep(bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + self.data.len() + bytes.len() > self.limit {
            return Err(TooLong { limit: self.limit });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, each: &mut impl FnMut(Event)) {
        let mut line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if !self.begun {
            self.begun = true;
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        if text.is_empty() {
            self.dispatch(each);
        } else {
            self.field(text);
        }
        line.clear();
        self.line = line;
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = Some(String::from_utf8_lossy(value).into_owned()),
            // Comments have an empty name; `id` and `retry` are for reconnecting, which no vendor supports.
            _ => {}
        }
    }

    fn dispatch(&mut self, each: &mut impl FnMut(Event)) {
        let name = self.name.take();
        if !self.has_data {
            return;
        }
        self.has_data = false;
        let data = match String::from_utf8(std::mem::take(&mut self.data)) {
            Ok(data) => data,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        each(Event { name, data });
    }
}

/// Writes events into one buffer, and remembers where each ends.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Encoder {
    /// An event with a kind.
    pub fn named(&mut self, name: &str, data: &impl Serialize) {
        self.bytes.extend_from_slice(b"event: ");
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(b'\n');
        self.plain(data);
    }

    /// An event without one.
    pub fn plain(&mut self, data: &impl Serialize) {
        self.bytes.extend_from_slice(b"data: ");
        // Our own types and a vector: neither can fail. JSON has no line ends outside of its texts, and those are escaped.
        let _ = serde_json::to_writer(&mut self.bytes, data);
        self.end();
    }

    /// An event that is no JSON, like OpenAI's `[DONE]`.
    pub fn text(&mut self, data: &str) {
        for line in data.split('\n') {
            self.bytes.extend_from_slice(b"data: ");
            self.bytes.extend_from_slice(line.as_bytes());
            self.bytes.push(b'\n');
        }
        self.bytes.push(b'\n');
        self.ends.push(self.bytes.len());
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(b"\n\n");
        self.ends.push(self.bytes.len());
    }

    /// The bytes, and where each event ends in them.
    pub fn finish(self) -> (Vec<u8>, Vec<usize>) {
        (self.bytes, self.ends)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events_of(pieces: &[&[u8]]) -> Vec<Event> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, |event| events.push(event)).unwrap();
        }
        events
    }

    fn event(name: Option<&str>, data: &str) -> Event {
        Event { name: name.map(str::to_owned), data: data.to_owned() }
    }

    #[test]
    fn every_line_end_and_comments_are_understood() {
        let stream =
            "\u{feff}: hello\r\nevent: a\r\ndata: 1\r\n\r\ndata:2\rdata: 3\r\rdata\n\nevent: x\n\nid: 4\n\n";
        let expected = [event(Some("a"), "1"), event(None, "2\n3"), event(None, "")];
        assert_eq!(events_of(&[stream.as_bytes()]), expected);
    }

    #[test]
    fn an_event_that_was_not_ended_is_none() {
        assert_eq!(events_of(&[b"data: 1\n\ndata: 2\n"]), [event(None, "1")]);
    }

    #[test]
    fn an_event_that_does_not_end_is_refused() {
        let mut decoder = Decoder::with_limit(16);
        decoder.push(b"data: 12345\n", |_| {}).unwrap();
        let error = decoder.push(b"data: 67890123", |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "an event is longer than 16 bytes");
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut encoder = Encoder::default();
        encoder.named("a", &"two\nlines");
        encoder.plain(&1);
        encoder.text("[DONE]");
        let (bytes, ends) = encoder.finish();
        let expected = [event(Some("a"), "\"two\\nlines\""), event(None, "1"), event(None, "[DONE]")];
        assert_eq!(events_of(&[&bytes]), expected);
        assert_eq!(ends.last(), Some(&bytes.len()));
    }

    proptest! {
        #[test]
        fn where_it_is_cut_does_not_matter(
            text in "(data: ?|event: |:|é€😀|x|\r\n|\n|\r|\n\n){0,40}",
            cuts in proptest::collection::vec(0usize..200, 0..12),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(events_of(&pieces), events_of(&[bytes]));
        }
    }
}
