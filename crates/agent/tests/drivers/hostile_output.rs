//! Output that no agent should write, and some do: nothing of it may panic, and no cutting may change its meaning.

use proptest::prelude::*;
use rehearsal_agent::WireParser;
use rehearsal_agent::clis::KNOWN;
use rehearsal_agent::driver::Here;
use rehearsal_core::{Activity, Exit, Timestamp, WireReport, WireShape};

const NOW: Timestamp = Timestamp(1_794_772_800_000);

fn parser(kind: &str) -> Box<dyn WireParser> {
    (KNOWN.named(kind).unwrap().parser)(Here::at(NOW))
}

fn read(kind: &str, chunks: &[&[u8]], exit: i32) -> (Vec<Activity>, WireReport) {
    let mut parser = parser(kind);
    let mut activities = Vec::new();
    for chunk in chunks {
        parser.push(chunk, &mut activities);
        let _ = parser.has_ended();
    }
    (activities, parser.finish(Some(Exit::Code(exit)), b"{\n\"error\": {\"code\": 41"))
}

fn recorded(kind: &str) -> &'static [&'static str] {
    match kind {
        "claude" => &[
            include_str!("../fixtures/claude/success-stream-json.stdout"),
            include_str!("../fixtures/claude/json-verbose.stdout"),
            include_str!("../fixtures/claude/err-429-should-retry-false.stdout"),
        ],
        "codex" => {
            &[include_str!("../fixtures/codex/err-401.stdout"), include_str!("../fixtures/codex/mcp.stdout")]
        }
        "gemini" => &[
            include_str!("../fixtures/gemini/unknown-tool.stdout"),
            include_str!("../fixtures/gemini/success-json.stdout"),
        ],
        "opencode" => &[
            include_str!("../fixtures/opencode/success-json.stdout"),
            include_str!("../fixtures/opencode/err-401.stdout"),
        ],
        "crew" => &[
            include_str!("../fixtures/crew/success.stdout"),
            include_str!("../fixtures/crew/err-429.stdout"),
        ],
        _ => &["working\non it\n<promise>COMPLETE</promise>"],
    }
}

fn kinds() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(KNOWN.0.iter().map(|cli| cli.name).collect::<Vec<_>>())
}

fn cut_up(bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        chunks.push(chunk.to_vec());
        rest = after;
    }
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_cutting_into_chunks_means_the_same(
        kind in kinds(),
        sizes in proptest::collection::vec(1usize..600, 1..40),
    ) {
        for text in recorded(kind) {
            let chunks = cut_up(text.as_bytes(), &sizes);
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(read(kind, &chunks, 0), read(kind, &[text.as_bytes()], 0));
        }
    }

    #[test]
    fn output_may_stop_at_any_byte(kind in kinds(), at in any::<proptest::sample::Index>(), exit in 0i32..160) {
        for text in recorded(kind) {
            let _ = read(kind, &[&text.as_bytes()[..at.index(text.len())]], exit);
        }
    }

    #[test]
    fn any_byte_may_be_wrong(
        kind in kinds(),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
        exit in 0i32..160,
    ) {
        for text in recorded(kind) {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = read(kind, &[&bytes], exit);
        }
    }

    #[test]
    fn random_bytes_are_read_without_a_panic(
        kind in kinds(),
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        exit in 0i32..256,
    ) {
        let _ = read(kind, &[&bytes], exit);
    }

    #[test]
    fn random_events_are_read_without_a_panic(
        kind in kinds(),
        words in proptest::collection::vec(proptest::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\n", "null", "1e999", "-1", "\"\\ud800\"", "\"type\"", "\"result\"",
            "\"assistant\"", "\"message\"", "\"content\"", "\"error\"", "\"item\"", "\"item.completed\"", "\"part\"",
            "\"step_finish\"", "\"usage\"", "\"turn.failed\"", "\"é\"", "\"response\"", "\"stats\"", " ",
        ]), 0..60),
    ) {
        let _ = read(kind, &[words.concat().as_bytes()], 1);
    }
}

#[test]
fn deep_nesting_is_only_unreadable() {
    for kind in KNOWN.foreign() {
        for open in ["{\"type\":", "{\"message\":", "[{\"a\":", "{\"item\":{\"arguments\":"] {
            let (activities, report) = read(kind, &[open.repeat(100_000).as_bytes(), b"\n"], 0);
            assert_eq!(report.end, None, "{kind}");
            assert!(
                activities.iter().all(|activity| !matches!(activity, Activity::Started { .. })),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_line_without_end_is_told_once_and_the_stream_goes_on() {
    let mut parser = parser("codex");
    let mut out = Vec::new();
    parser.push(b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"x\",\"y\":\"", &mut out);
    let part = vec![b'y'; 1 << 20];
    for _ in 0..64 {
        parser.push(&part, &mut out);
    }
    parser.push(b"\"}\n{\"type\":\"turn.completed\"}\n", &mut out);
    let unreadable: Vec<_> =
        out.iter().filter(|activity| matches!(activity, Activity::Unreadable { .. })).collect();
    assert_eq!(unreadable.len(), 1);
    let report = parser.finish(Some(Exit::Code(0)), b"");
    assert_eq!(report.shape, WireShape::Structured, "the end was readable, so nothing is lost");
}

#[test]
fn a_stream_that_breaks_off_within_a_line_is_broken() {
    let text = recorded("claude")[0];
    let (_, report) = read("claude", &[&text.as_bytes()[..text.len() - 40]], 0);
    assert!(matches!(report.shape, WireShape::Broken { .. }), "{:?}", report.shape);
}

#[test]
fn a_flood_of_garbage_is_not_told_line_by_line() {
    let flood = "{\"type\":\"init\"}\n".to_owned() + &"{broken\n".repeat(10_000);
    let (activities, _) = read("gemini", &[flood.as_bytes()], 0);
    assert!(activities.len() < 200, "{}", activities.len());
}
