//! Printed text whose two streams have nothing to do with each other: each has a reader of its own, so that it does not
//! matter how they were mixed.

use super::by_line::{ByLine, LineReader};
use super::{Parser, Stream};
use crate::{Event, Sink};

/// A parser made of two readers of lines.
#[derive(Debug, Default)]
pub(super) struct EachStream<R: LineReader> {
    out: ByLine<R>,
    err: ByLine<R>,
    /// What each has said of the end, for which there is one event: what both counted is one count.
    ends: [End; 2],
}

#[derive(Debug, Default, Clone, Copy)]
struct End {
    reached: bool,
    counted: Option<u64>,
}

impl<R: LineReader> EachStream<R> {
    pub(super) fn of(out: R, err: R) -> Self {
        Self { out: ByLine::of(out), err: ByLine::of(err), ends: Default::default() }
    }
}

impl<R: LineReader> Parser for EachStream<R> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let reader = if stream == Stream::Out { &mut self.out } else { &mut self.err };
        reader.feed(stream, bytes, &mut BeforeEnd { sink, end: &mut self.ends[stream as usize] });
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let [out, err] = &mut self.ends;
        self.err.finish(&mut BeforeEnd { sink, end: err });
        self.out.finish(&mut BeforeEnd { sink, end: out });
        if out.reached || err.reached {
            let counted = match (out.counted, err.counted) {
                (Some(out), Some(err)) => Some(out.saturating_add(err)),
                (out, err) => out.or(err),
            };
            sink.event(Event::Ended { counted });
        }
    }
}

/// Tells everything on but the end.
struct BeforeEnd<'a> {
    sink: &'a mut dyn Sink,
    end: &'a mut End,
}

impl Sink for BeforeEnd<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Ended { counted } => *self.end = End { reached: true, counted },
            other => self.sink.event(other),
        }
    }
}
