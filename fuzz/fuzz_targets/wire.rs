//! Arbitrary bytes to the readers of every vendor's format: none panics, and where a stream is cut does not matter.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rehearsal_llm::assembly::Assembly;
use rehearsal_llm::sse::{Decoder, Event};
use rehearsal_llm::wire::Dialect;

fuzz_target!(|input: &[u8]| {
    // The first byte chooses the format, the second the length of the pieces.
    let [dialect, length, bytes @ ..] = input else { return };
    let dialect = Dialect::ALL[usize::from(*dialect) % Dialect::ALL.len()];
    if let Ok(received) = dialect.read_request(bytes) {
        let again = dialect.write_request(&received.chat, received.stream);
        assert!(dialect.read_request(&again).is_ok(), "what was written cannot be read");
    }
    if let Ok(response) = dialect.read_response(bytes) {
        let again = dialect.write_response(&response);
        assert!(dialect.read_response(&again).is_ok(), "what was written cannot be read");
    }
    let events = events_of(bytes.chunks(usize::from(*length) + 1));
    assert_eq!(events, events_of([bytes]));
    let (mut reader, mut assembly) = (dialect.stream_reader(), Assembly::default());
    for event in &events {
        let _ = reader.push(event, |delta| drop(assembly.push(delta)));
    }
    let _ = assembly.finish();
});

fn events_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for piece in pieces {
        let _ = decoder.push(piece, |event| events.push(event));
    }
    events
}
