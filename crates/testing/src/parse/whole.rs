//! Reports that are read once they are complete.

use super::{Parser, Stream};
use crate::{Event, Sink};

/// A larger report is not read to its end, and its run is not green.
const LARGEST: usize = 256 << 20;

/// Reads one kind of report.
pub(super) trait Document: Default + Send {
    fn read(&mut self, text: &str, sink: &mut dyn Sink);
}

/// A parser made of a reader of whole reports.
#[derive(Debug, Default)]
pub(super) struct Whole<D> {
    bytes: Vec<u8>,
    is_cut: bool,
    document: D,
}

impl<D> Whole<D> {
    #[cfg(test)]
    pub(super) fn document(&self) -> &D {
        &self.document
    }
}

impl<D: Document> Parser for Whole<D> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], _: &mut dyn Sink) {
        if stream == Stream::Out {
            let room = LARGEST.saturating_sub(self.bytes.len());
            self.is_cut |= bytes.len() > room;
            self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let bytes = std::mem::take(&mut self.bytes);
        self.document.read(&String::from_utf8_lossy(&bytes), sink);
        if self.is_cut {
            sink.event(Event::Complaint("the report is too large and was not read to its end"));
        }
    }
}
