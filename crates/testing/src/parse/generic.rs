//! Any command: its exit status decides; its text is there to be read.

use super::{Parser, Stream};
use crate::{Event, Sink};

/// Says that the output came to its end, and no more: without a format there is nothing to count.
#[derive(Debug)]
pub(super) struct Generic;

impl Parser for Generic {
    fn feed(&mut self, _: Stream, _: &[u8], _: &mut dyn Sink) {}

    fn finish(&mut self, sink: &mut dyn Sink) {
        sink.event(Event::Ended { counted: None });
    }
}
