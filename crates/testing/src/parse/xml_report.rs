//! Reports in XML: what they share, whoever wrote them.

use super::xml::{Attributes, Text, Token, Tokens};
use super::{Parser, Stream};
use crate::{Event, Sink};

/// Reads the elements of one report.
pub(super) trait XmlReader: Send {
    /// An element begins; one without content ends at once.
    fn open(&mut self, name: &str, attributes: Attributes<'_>, sink: &mut dyn Sink);

    /// An element ends.
    fn close(&mut self, name: &str, sink: &mut dyn Sink);

    /// What stands between two tags.
    fn text(&mut self, text: Text<'_>);

    /// There is no more, whether the document is whole or not.
    fn end(&mut self, _: &mut dyn Sink) {}
}

/// A parser made of a reader of elements.
#[derive(Debug, Default)]
pub(super) struct XmlReport<R> {
    tokens: Tokens,
    reader: R,
}

impl<R: XmlReader> Parser for XmlReport<R> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let Self { tokens, reader } = self;
        if stream == Stream::Err {
            return;
        }
        tokens.feed(bytes, &mut |token| match token {
            Token::Text(text) => reader.text(text),
            Token::Open { name, attributes, empty } => {
                reader.open(name, attributes, sink);
                if empty {
                    reader.close(name, sink);
                }
            }
            Token::Close { name } => reader.close(name, sink),
            Token::Declares => {
                sink.event(Event::Complaint("the report declares entities, which are not expanded"));
            }
        });
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        self.reader.end(sink);
    }
}
