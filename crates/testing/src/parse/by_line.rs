//! Printed text, line by line: both streams, without colours, as a terminal would show it.

use super::{Parser, Stream};
use crate::{Line, Lines, Sink, strip_ansi};

/// Reads what a runner prints for people.
pub(super) trait LineReader: Send {
    /// A longer line is cut.
    const LONGEST_LINE: usize = 4 << 20;

    /// Takes one line, without its end.
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink);

    /// There are no more.
    fn end(&mut self, sink: &mut dyn Sink);
}

/// A parser made of a reader of lines.
#[derive(Debug)]
pub(super) struct ByLine<R> {
    reader: R,
    out: Lines,
    err: Lines,
}

impl<R: LineReader + Default> Default for ByLine<R> {
    fn default() -> Self {
        Self::of(R::default())
    }
}

impl<R: LineReader> ByLine<R> {
    pub(super) fn of(reader: R) -> Self {
        let [out, err] = [(); 2].map(|()| Lines::up_to(R::LONGEST_LINE));
        Self { reader, out, err }
    }
}

impl<R: LineReader> Parser for ByLine<R> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let Self { reader, out, err } = self;
        let lines = if stream == Stream::Out { out } else { err };
        lines.feed(bytes, |line| give(reader, stream, line, sink));
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let Self { reader, out, err } = self;
        err.finish(|line| give(reader, Stream::Err, line, sink));
        out.finish(|line| give(reader, Stream::Out, line, sink));
        reader.end(sink);
    }
}

fn give<R: LineReader>(reader: &mut R, stream: Stream, line: Line<'_>, sink: &mut dyn Sink) {
    let text = line.text();
    // On a terminal some go back to the first column, and write over what stands there.
    let plain = strip_ansi(text.rsplit("\x1b[1G").find(|part| !part.is_empty()).unwrap_or_default());
    // What stands before a carriage return was written over.
    let shown = plain.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    reader.line(stream, shown, sink);
}
