//! Arbitrary bytes as a cassette and as a request: the reader refuses or reads, the key is made, nothing panics.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rehearsal_llm::cassette::{Asked, Cassette, Keys, Normaliser, Place, Rule, Secrets};

static NORMALISER: LazyLock<Normaliser> = LazyLock::new(|| {
    let place = Place { work_dir: vec!["/work".into()], home: vec!["/home/me".into()], temp: vec!["/tmp".into()] };
    Normaliser::new(Rule::all(), &place, &Secrets::default()).expect("the patterns are ours")
});

fuzz_target!(|input: &[u8]| {
    let _ = Cassette::read(input);
    let asked = Asked { method: "POST", target: "/v1/messages", headers: &[], body: input };
    let mut keys = Keys::new(NORMALISER.clone());
    keys.key(&asked);
    keys.key(&asked);
});
