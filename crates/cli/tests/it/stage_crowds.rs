//! Many on one stage: slow streams, and clients that never read. What they cost does not grow with time.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::env::TestEnv;
use crate::stage::OpenStage;

const STREAMS: usize = 500;
/// In kilobytes, of all of them: buffers that are filled for the first time, and the allocator's own ways.
const SLACK: u64 = 4_000;

const ASKED: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}"#;

fn begin(stage: &OpenStage<'_>) -> TcpStream {
    let mut stream = TcpStream::connect(stage.url().trim_start_matches("http://")).unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{ASKED}",
        ASKED.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Reads until so many frames have come.
fn hear(stream: &mut TcpStream, frames: usize) {
    let (mut heard, mut piece) = (0, [0; 4096]);
    while heard < frames {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "the stream ended after {heard} frames");
        heard += String::from_utf8_lossy(&piece[..read]).matches("data: ").count();
    }
}

/// What a process holds, in kilobytes.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn hundreds_of_slow_streams_cost_little_and_no_more_as_they_go_on() {
    let env = TestEnv::without_repository();
    let words = "word ".repeat(200);
    let script = format!(
        "speed: {{ profile: {{ first_token: 10ms, frames_per_second: 10, jitter: 0.5 }} }}\n\
         turns:\n  - {{ say: {words}, times: any }}\n"
    );
    let stage = OpenStage::open(&env, &script);
    let empty = memory(stage.process());
    let mut streams: Vec<TcpStream> = (0..STREAMS).map(|_| begin(&stage)).collect();
    for stream in &mut streams {
        hear(stream, 2);
    }
    let open = memory(stage.process());
    let each = open.saturating_sub(empty) / STREAMS as u64;
    assert!(each < 64, "a stream costs {each} kB");
    for stream in &mut streams {
        hear(stream, 20);
    }
    let later = memory(stage.process());
    assert!(later < open + SLACK, "{open} kB with all of them, {later} kB twenty frames later");
}

#[test]
fn clients_that_never_read_cost_their_answer_and_no_more_and_hold_nobody_up() {
    let env = TestEnv::without_repository();
    let long = "word ".repeat(60_000);
    let script = format!(
        "turns:\n  - {{ when: {{ contains: hello }}, say: {long}, times: any }}\n  - {{ say: Here., times: any }}\n"
    );
    let stage = OpenStage::open(&env, &script);
    let empty = memory(stage.process());
    let deaf: Vec<TcpStream> = (0..20).map(|_| begin(&stage)).collect();
    // Each of them has begun to be answered, and none has read it.
    for stream in &deaf {
        assert_eq!(stream.peek(&mut [0]).unwrap(), 1);
    }
    let begun = memory(stage.process());
    // In a stream, every few words have a frame of their own around them.
    let (each, answer) = ((begun - empty) / deaf.len() as u64, long.len() as u64 / 1000);
    assert!(each < 12 * answer, "a client that does not read {answer} kB costs {each} kB");
    for _ in 0..20 {
        let asked = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"you?"}]}"#;
        let (status, body) = stage.ask("/v1/messages", asked);
        assert_eq!(status, 200);
        assert!(body.contains("Here."), "{body}");
    }
    let later = memory(stage.process());
    assert!(later < begun + SLACK, "{begun} kB when they were answered, {later} kB later");
    drop(deaf);
    let (closed, _) = stage.close();
    assert_eq!(closed["report"]["requests"], 40);
}
