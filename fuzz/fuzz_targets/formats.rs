//! Arbitrary bytes, in pieces of arbitrary length, to the parser of every format: none panics, and in one piece
//! a stream says the same as in many.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rehearsal_testing::{Collector, Ending, Format, Limits, Stream};

fuzz_target!(|input: &[u8]| {
    // The first byte chooses the format, the second the length of the pieces.
    let [format, length, bytes @ ..] = input else { return };
    let format = &Format::all()[usize::from(*format) % Format::all().len()];
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(*length) + 1).collect();
    assert_eq!(told(format, &pieces), told(format, &[bytes]), "{format:?}");
});

fn told(format: &Format, pieces: &[&[u8]]) -> String {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = format.parser();
    for piece in pieces {
        parser.feed(Stream::Out, piece, &mut collector);
    }
    parser.finish(&mut collector);
    format!("{:?}", collector.finish(&Ending::default()))
}
