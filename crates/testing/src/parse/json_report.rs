//! Reports and events in JSON: what they share, whoever wrote them.

use super::json_elements::{JsonElements, Layout};
use super::{Parser, Stream};
use crate::{Event, Sink};

/// Reads the elements of one format.
pub(super) trait JsonReader: Default + Send {
    const LAYOUT: Layout;
    /// The elements to read.
    const PATHS: &'static [&'static str];
    /// The complaint about an element that was too large.
    const TOO_LARGE: &'static str;

    fn element(&mut self, path: &str, json: &str, sink: &mut dyn Sink);

    /// There is no more. Returns whether the end of a document that has begun is missing.
    fn end_of_input(&mut self, is_inside: bool, _: &mut dyn Sink) -> bool {
        is_inside
    }
}

/// A parser made of a reader of elements.
#[derive(Debug)]
pub(super) struct JsonReport<R> {
    elements: JsonElements,
    reader: R,
}

impl<R: JsonReader> Default for JsonReport<R> {
    fn default() -> Self {
        Self { elements: JsonElements::new(R::LAYOUT, R::PATHS), reader: R::default() }
    }
}

impl<R: JsonReader> Parser for JsonReport<R> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let Self { elements, reader } = self;
        if stream == Stream::Out {
            elements.feed(bytes, &mut |path, json| reader.element(path, json, sink));
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        if self.reader.end_of_input(self.elements.is_inside(), sink) {
            sink.event(Event::Complaint("the report breaks off"));
        }
        if self.elements.lost() > 0 {
            sink.event(Event::Complaint(R::TOO_LARGE));
        }
    }
}
