//! One telling of a run, while it is being read.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::combine::Telling;
use crate::parse::{Format, Parser, Stream};
use crate::{Collector, Ending, Event, Sink};

/// Reads one format into a collector. A parser that panics loses what it would have read, and nothing else.
pub(crate) struct Teller {
    format: &'static Format,
    parser: Box<dyn Parser>,
    collector: Collector,
    broken: bool,
}

impl Teller {
    pub(crate) fn new(format: &'static Format, collector: Collector) -> Self {
        Self { format, parser: format.parser(), collector, broken: false }
    }

    pub(crate) fn feed(&mut self, stream: Stream, bytes: &[u8]) {
        self.guarded(|parser, collector| parser.feed(stream, bytes, collector));
    }

    /// From now on we are ending the run.
    pub(crate) fn stopping(&mut self) {
        self.collector.stopping();
    }

    /// There is no more; how the process ended decides what is still open.
    pub(crate) fn finish(mut self, ending: &Ending) -> Telling {
        self.guarded(|parser, collector| parser.finish(collector));
        Telling { format: self.format.name, trust: self.format.trust, run: self.collector.finish(ending) }
    }

    fn guarded(&mut self, read: impl FnOnce(&mut dyn Parser, &mut Collector)) {
        if self.broken {
            return;
        }
        let (parser, collector) = (self.parser.as_mut(), &mut self.collector);
        if catch_unwind(AssertUnwindSafe(|| read(parser, collector))).is_err() {
            self.broken = true;
            let complaint =
                format!("our reader of the format `{}` failed: results may be missing", self.format.name);
            self.collector.event(Event::Complaint(&complaint));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attempt, Finished, Limits, TestId, TestStatus, Verdict};

    struct Fragile;

    impl Parser for Fragile {
        fn feed(&mut self, _: Stream, bytes: &[u8], sink: &mut dyn Sink) {
            let name = std::str::from_utf8(bytes).unwrap();
            assert!(name != "bad", "a bug");
            let test = TestId { suite: "s", name };
            let finished = Finished { attempt: Attempt::Only, ..Finished::new(test, TestStatus::Pass, 1) };
            sink.event(Event::Finished(finished));
        }

        fn finish(&mut self, sink: &mut dyn Sink) {
            sink.event(Event::Ended { counted: None });
        }
    }

    #[test]
    fn what_was_read_before_a_parser_broke_is_kept_and_never_green() {
        let format = Format::named("generic").unwrap();
        let collector = Collector::new(None, Limits::default());
        let mut teller = Teller { parser: Box::new(Fragile), ..Teller::new(format, collector) };
        for bytes in ["good", "bad", "late"] {
            teller.feed(Stream::Out, bytes.as_bytes());
        }
        let run = teller.finish(&Ending::of_status(0)).run;
        assert_eq!(run.tests.len(), 1);
        let (verdict, reasons) = crate::verdict::judge(&run, &Ending::of_status(0));
        assert_eq!(verdict, Verdict::Inconsistent);
        assert_eq!(reasons, ["our reader of the format `generic` failed: results may be missing"]);
    }
}
