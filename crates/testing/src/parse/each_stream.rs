//! Printed text whose two streams have nothing to do with each other: each has a reader of its own, so that it does not
//! matter how they were mixed.

use super::by_line::{ByLine, LineReader};
use super::{Parser, Stream};
use crate::Sink;

/// A parser made of two readers of lines.
#[derive(Debug, Default)]
pub(super) struct EachStream<R> {
    out: ByLine<R>,
    err: ByLine<R>,
}

impl<R: LineReader> Parser for EachStream<R> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        match stream {
            Stream::Out => self.out.feed(stream, bytes, sink),
            Stream::Err => self.err.feed(stream, bytes, sink),
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        self.err.finish(sink);
        self.out.finish(sink);
    }
}
