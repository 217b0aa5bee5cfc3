//! Reading what agents say.

use std::time::{Duration, Instant};

use rehearsal_agent::clis::KNOWN;
use rehearsal_agent::driver::Here;
use rehearsal_core::{Exit, Timestamp};
use serde::de::IgnoredAny;

const STREAM: usize = 256 << 20;
const CHUNK: usize = 64 << 10;

/// One turn of each agent as it really looks: some text, a tool call, its result.
const TURNS: [(&str, &str); 4] = [
    ("claude", include_str!("turns/claude.jsonl")),
    ("codex", include_str!("turns/codex.jsonl")),
    ("gemini", include_str!("turns/gemini.jsonl")),
    ("opencode", include_str!("turns/opencode.jsonl")),
];

pub(crate) fn measure() {
    for (cli, turn) in TURNS {
        let block: Vec<u8> = turn.as_bytes().repeat(CHUNK.div_ceil(turn.len()));
        let rounds = STREAM.div_ceil(block.len());
        let total = block.len() * rounds;
        let before = resident_kib();
        let ours = time(|| parse(cli, &block, rounds));
        let grown = resident_kib().saturating_sub(before);
        let lines = time(|| count_lines(&block, rounds));
        let skipped = time(|| skip_json(&block, rounds));
        let megabytes = f64::from(u32::try_from(total).unwrap()) / 1e6;
        let speed = |time: Duration| megabytes / time.as_secs_f64();
        println!(
            "{:<44} {:>7.0} MB/s  line ends {:.0}, skipped JSON {:.0} MB/s ({:.2} of it), {} KiB more memory  >= 300 MB/s",
            format!("parse: {cli}, {} MB", total / 1_000_000),
            speed(ours),
            speed(lines),
            speed(skipped),
            skipped.as_secs_f64() / ours.as_secs_f64(),
            grown,
        );
    }
}

fn parse(cli: &str, block: &[u8], rounds: usize) {
    let mut parser = (KNOWN.of_program(cli).parser)(Here::at(Timestamp(0)));
    let mut activities = Vec::new();
    for _ in 0..rounds {
        for chunk in block.chunks(CHUNK) {
            parser.push(chunk, &mut activities);
            activities.clear();
        }
    }
    std::hint::black_box(parser.finish(Some(Exit::Code(0)), b""));
}

fn count_lines(block: &[u8], rounds: usize) {
    for _ in 0..rounds {
        std::hint::black_box(memchr::memchr_iter(b'\n', std::hint::black_box(block)).count());
    }
}

fn skip_json(block: &[u8], rounds: usize) {
    for _ in 0..rounds {
        for line in std::hint::black_box(block).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            std::hint::black_box(serde_json::from_slice::<IgnoredAny>(line).unwrap());
        }
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The most memory that there was so far.
pub(crate) fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
