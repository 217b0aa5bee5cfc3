//! What holds for every parser and every input: it does not panic, and how the bytes were cut does not matter.
//!
//! Every fixture is read in its own format and in some others, in random pieces, cut off at random places, mixed with
//! another stream, and damaged. A failure prints the seed; set `REHEARSAL_SEED` to run it again.

use std::hash::{BuildHasher, Hasher, RandomState};

use rehearsal_testing::{Collected, Collector, Ending, Format, Head, Limits, Stream};

/// Only the beginning of a large fixture is read here: the samples read it whole.
const LONGEST: usize = 24 << 10;

#[test]
fn how_the_bytes_are_cut_does_not_matter_and_nothing_panics() {
    let mut dice = Dice::new();
    let fixtures = fixtures();
    for (name, bytes) in &fixtures {
        let (_, other) = &fixtures[dice.below(fixtures.len())];
        for format in dice.formats(bytes) {
            let whole = told(format, &[(Stream::Out, bytes), (Stream::Err, other)]);
            let pieces = mixed(&mut dice, bytes, other);
            let cut = told(format, &pieces);
            assert_eq!(cut, whole, "{name} as {format:?}, seed {}", dice.seed);
        }
    }
}

#[test]
fn damaged_and_truncated_input_is_read_the_same_in_any_pieces() {
    let mut dice = Dice::new();
    for (name, bytes) in &fixtures() {
        let damaged = damaged(&mut dice, bytes);
        for format in dice.formats(bytes) {
            let whole = told(format, &[(Stream::Out, &damaged)]);
            let pieces = pieces(&mut dice, Stream::Out, &damaged);
            assert_eq!(told(format, &pieces), whole, "{name} as {format:?}, seed {}", dice.seed);
        }
    }
}

#[test]
fn arbitrary_bytes_are_survived_by_every_format() {
    let mut dice = Dice::new();
    let words: Vec<Vec<u8>> = fixtures().iter().flat_map(|(_, bytes)| some_lines(&mut dice, bytes)).collect();
    for _ in 0..20 {
        let soup: Vec<u8> = (0..40).flat_map(|_| dice.line(&words)).collect();
        for format in Format::all() {
            let whole = told(format, &[(Stream::Out, &soup)]);
            let pieces = pieces(&mut dice, Stream::Out, &soup);
            assert_eq!(told(format, &pieces), whole, "{format:?}, seed {}", dice.seed);
        }
    }
}

/// All that a parser said, as text.
fn told(format: &Format, pieces: &[(Stream, &[u8])]) -> String {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = format.parser();
    for (stream, bytes) in pieces {
        parser.feed(*stream, bytes, &mut collector);
    }
    parser.finish(&mut collector);
    let mut run: Collected = collector.finish(&Ending::default());
    run.problems.sort_by(|a, b| (&a.message, &a.name, a.line).cmp(&(&b.message, &b.name, b.line)));
    // Tests of both streams come in the order in which the streams are read.
    run.tests.sort_by_cached_key(|test| format!("{test:?}"));
    format!("{run:#?}")
}

fn mixed<'a>(dice: &mut Dice, out: &'a [u8], err: &'a [u8]) -> Vec<(Stream, &'a [u8])> {
    let mut streams = [pieces(dice, Stream::Out, out), pieces(dice, Stream::Err, err)];
    let mut mixed = Vec::new();
    for stream in &mut streams {
        stream.reverse();
    }
    while streams.iter().any(|stream| !stream.is_empty()) {
        let at = dice.below(2);
        mixed.extend(streams[at].pop());
    }
    mixed
}

/// Cut into a few pieces, some of them empty or of one byte.
fn pieces<'a>(dice: &mut Dice, stream: Stream, bytes: &'a [u8]) -> Vec<(Stream, &'a [u8])> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let longest = [1, 3, 80, 4096][dice.below(4)];
        let (piece, more) = rest.split_at(dice.below(longest + 1).min(rest.len()));
        pieces.push((stream, piece));
        rest = more;
    }
    pieces
}

fn damaged(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let mut damaged = bytes[..dice.below(bytes.len() + 1)].to_vec();
    for _ in 0..dice.below(8) {
        if damaged.is_empty() {
            break;
        }
        let at = dice.below(damaged.len());
        match dice.below(4) {
            0 => damaged[at] = [0, 0xff, b'\n', b'"', b'{', b'<', b'\\', b'#'][dice.below(8)],
            1 => drop(damaged.remove(at)),
            2 => damaged.insert(at, b'\n'),
            _ => drop(damaged.drain(at..damaged.len().min(at + 30))),
        }
    }
    damaged
}

fn some_lines(dice: &mut Dice, bytes: &[u8]) -> Vec<Vec<u8>> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    (0..4).filter_map(|_| lines.get(dice.below(lines.len().max(1)))).map(|line| line.to_vec()).collect()
}

/// The beginning of every fixture.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for sample in crate::truth::samples() {
        for path in sample.paths().into_iter().filter(|path| path.is_file()) {
            let mut bytes = fs_err::read(&path).unwrap();
            bytes.truncate(LONGEST);
            all.push((path.strip_prefix(crate::fixtures()).unwrap().to_string(), bytes));
        }
    }
    all
}

/// Random numbers (xorshift), with the seed at hand.
struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    fn new() -> Self {
        let random = || RandomState::new().build_hasher().finish() >> 32;
        let seed = std::env::var("REHEARSAL_SEED").ok().map_or_else(random, |seed| seed.parse().unwrap());
        Self { seed, state: seed | 1 }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % limit as u64).unwrap()
    }

    /// The format of a text, and three others.
    fn formats(&mut self, bytes: &[u8]) -> Vec<&'static Format> {
        let head = Head { file_name: "", text: &String::from_utf8_lossy(bytes) };
        let others = (0..3).map(|_| &Format::all()[self.below(Format::all().len())]);
        std::iter::once(Format::of(&head, None)).chain(others).collect()
    }

    fn line(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        match self.below(3) {
            0 => (0..self.below(30)).map(|_| u8::try_from(self.below(256)).unwrap()).collect(),
            _ => words[self.below(words.len())].clone(),
        }
    }
}
