//! Reports in XML: what they share, whoever wrote them.
//!
//! Read leniently: a document that breaks off keeps what stands before. Nothing is ever expanded but the five entities
//! of XML and numbers.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::errors::Error;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event as Token};

use super::whole::{Document, Whole};
use crate::{Event, Sink};

/// Reads the elements of one report.
pub(super) trait XmlReader: Default + Send {
    /// An element begins.
    fn open(&mut self, name: &str, attributes: Attributes<'_>, sink: &mut dyn Sink);

    /// An element ends.
    fn close(&mut self, name: &str, sink: &mut dyn Sink);

    /// What stands between two tags, in pieces.
    fn text(&mut self, text: &str);

    /// There is no more, whether the document is whole or not.
    fn end(&mut self, _: &mut dyn Sink) {}
}

/// A parser made of a reader of elements.
pub(super) type XmlReport<R> = Whole<Elements<R>>;

#[derive(Debug, Default)]
pub(super) struct Elements<R>(R);

impl<R: XmlReader> Document for Elements<R> {
    fn read(&mut self, text: &str, sink: &mut dyn Sink) {
        let reader = &mut self.0;
        let mut xml = Reader::from_str(text);
        let config = xml.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        config.expand_empty_elements = true;
        loop {
            match xml.read_event() {
                Ok(Token::Start(tag)) => reader.open(tag.local_name().as_ref(), Attributes(&tag), sink),
                Ok(Token::End(tag)) => reader.close(tag.local_name().as_ref(), sink),
                Ok(Token::Text(text)) => reader.text(&text),
                Ok(Token::CData(text)) => reader.text(&text),
                Ok(Token::GeneralRef(entity)) => reader.text(&resolved(&entity)),
                Ok(Token::DocType(text)) if text.contains('[') => {
                    sink.event(Event::Complaint("the report declares entities, which are not expanded"));
                }
                Ok(Token::Eof) => break,
                Ok(_) | Err(Error::IllFormed(_)) => {}
                Err(_) => break,
            }
        }
        reader.end(sink);
    }
}

/// What an entity stands for; one that is none of XML's own stays as it stands.
fn resolved(entity: &BytesRef<'_>) -> String {
    let character = entity.resolve_char_ref().ok().flatten().map(String::from);
    let named = || resolve_predefined_entity(entity).map(str::to_owned);
    character.or_else(named).unwrap_or_else(|| format!("&{};", &**entity))
}

/// The attributes of an element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes<'a>(&'a BytesStart<'a>);

impl<'a> Attributes<'a> {
    /// Names with their values.
    pub(super) fn all(self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let mut attributes = self.0.attributes();
        attributes.with_checks(false);
        attributes.flatten().map(|it| {
            let plain = unescape(&it.value).map(Cow::into_owned);
            (it.key.into_inner(), plain.map_or(it.value, Cow::Owned))
        })
    }

    /// The value of one.
    pub(super) fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.all().find(|(it, _)| *it == name).map(|(_, value)| value)
    }

    /// Whether there are none.
    pub(super) fn is_empty(self) -> bool {
        self.all().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Parser, Stream};
    use proptest::prelude::*;

    #[derive(Debug, Default)]
    struct Spelled(String);

    impl XmlReader for Spelled {
        fn open(&mut self, name: &str, attributes: Attributes<'_>, _: &mut dyn Sink) {
            let list: Vec<String> =
                attributes.all().map(|(name, value)| format!(" {name}={value}")).collect();
            self.0 += &format!("<{name}{}>", list.concat());
        }

        fn close(&mut self, name: &str, _: &mut dyn Sink) {
            self.0 += &format!("</{name}>");
        }

        fn text(&mut self, text: &str) {
            self.0 += text;
        }
    }

    #[derive(Default)]
    struct Complaints(Vec<String>);

    impl Sink for Complaints {
        fn event(&mut self, event: Event<'_>) {
            if let Event::Complaint(complaint) = event {
                self.0.push(complaint.to_owned());
            }
        }
    }

    fn spelled(bytes: &[u8]) -> (String, usize) {
        let (mut parser, mut complaints) = (XmlReport::<Spelled>::default(), Complaints::default());
        parser.feed(Stream::Out, bytes, &mut complaints);
        parser.finish(&mut complaints);
        (parser.document().0.0.clone(), complaints.0.len())
    }

    #[test]
    fn tags_text_and_sections_are_told_apart() {
        let text = "<?xml version='1.0'?><!-- a > b --><a x=\"1 > 0\" y = '&lt;&#x41;'>t&amp;u<![CDATA[<b>]]]]><c:d/></a >";
        assert_eq!(spelled(text.as_bytes()), ("<a x=1 > 0 y=<A>t&u<b>]]<d></d></a>".to_owned(), 0));
    }

    #[test]
    fn entities_of_the_documents_own_are_not_expanded_but_complained_about() {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"&c;&c;\"> ]><a>&b;&unknown; & &#xFFFFFFFF;</a>";
        let expected = "<a>&b;&unknown; & &#xFFFFFFFF;</a>";
        assert_eq!(spelled(bomb.as_bytes()), (expected.to_owned(), 1));
    }

    #[test]
    fn a_document_that_breaks_off_keeps_what_stands_before() {
        assert_eq!(spelled(b"<a><b>x</b><b y='1").0, "<a><b>x</b>");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            spelled(&bytes);
        }
    }
}
