//! Formats that are read line by line.

use super::{Parser, Stream};
use crate::{Lines, Sink, strip_ansi};

/// Reads one line after the other, of both streams.
pub(super) trait LineParser: Send {
    /// Takes a line, without its end and without colours.
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink);

    /// There are no more.
    fn end(&mut self, _: &mut dyn Sink) {}
}

/// Makes a parser of bytes out of one of lines.
#[derive(Debug, Default)]
pub(super) struct ByLine<P> {
    parser: P,
    out: Lines,
    err: Lines,
}

impl<P: LineParser> Parser for ByLine<P> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let parser = &mut self.parser;
        let lines = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        lines.feed(bytes, |line| parser.line(stream, &strip_ansi(&line.text()), sink));
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let parser = &mut self.parser;
        self.out.finish(|line| parser.line(Stream::Out, &strip_ansi(&line.text()), sink));
        self.err.finish(|line| parser.line(Stream::Err, &strip_ansi(&line.text()), sink));
        parser.end(sink);
    }
}
