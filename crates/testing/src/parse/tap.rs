//! The Test Anything Protocol, versions 12 to 14, in the dialects of those who write it; and what `prove` makes of it.

mod dialect;
mod failure;
mod line;
mod names;
mod perl;
mod prove;
mod reader;
#[cfg(test)]
mod tests;
mod yaml;

pub(super) use dialect::{Dialect, begins, looks_like};
pub(super) use prove::{Prove, looks_like_prove};

use self::perl::Patient;
use self::reader::Reader;
use super::{Parser, Stream};
use crate::{Lines, Sink};

/// A stream of TAP.
#[derive(Debug)]
pub(super) struct Tap {
    out: Lines,
    err: Lines,
    reader: Reader,
    /// Perl's tests explain themselves on the other stream.
    patient: Patient,
}

impl Tap {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            out: Lines::default(),
            err: Lines::default(),
            reader: Reader::new(dialect),
            patient: Patient::new(dialect == Dialect::Plain),
        }
    }
}

impl Parser for Tap {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let Self { out, err, reader, patient } = self;
        match stream {
            Stream::Out => out.feed(bytes, |line| patient.line(&line.text(), reader, sink)),
            Stream::Err => err.feed(bytes, |line| patient.diagnostics.line(Stream::Err, &line.text())),
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let Self { out, err, reader, patient } = self;
        out.finish(|line| patient.line(&line.text(), reader, sink));
        err.finish(|line| patient.diagnostics.line(Stream::Err, &line.text()));
        reader.finish(&mut patient.before(sink));
        patient.finish(sink);
        if let Some(death) = patient.diagnostics.death() {
            sink.event(crate::Event::Problem(death));
        }
    }
}
