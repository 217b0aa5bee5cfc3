//! A long session from a cassette: every request says all that was said before, and all of it is compared.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Connection, Server, body, free_port, stage};

const TURNS: usize = 60;
const PLAYS: usize = 5;
/// Of the first request: instructions and tools; each turn adds more.
const OPENING: usize = 90_000;

/// The time of a request when the session is replayed, with the client and the whole comparison.
pub(super) fn measure(program: &Path, scratch: &Path) {
    let requests: Vec<String> = (1..=TURNS).map(request).collect();
    let cassette = scratch.join("session.jsonl");
    record(program, scratch, &cassette, &requests);
    let plays = (0..PLAYS).map(|_| {
        let server = Server::start(on_stage(program, &["--replay".as_ref(), cassette.as_ref()]));
        let mut connection = Connection::open(server.port);
        let begun = Instant::now();
        for request in &requests {
            connection.ask(request);
        }
        begun.elapsed() / u32::try_from(TURNS).unwrap_or(u32::MAX)
    });
    let took = crate::median(plays.collect());
    println!(
        "stage: a request of a session of {TURNS} turns, replayed: {:.3} ms (up to {} KB each; goal: < 1 ms)",
        crate::millis(took),
        requests.last().map_or(0, String::len) / 1000,
    );
    assert!(took < Duration::from_secs(1), "the replay hangs");
}

fn record(program: &Path, scratch: &Path, cassette: &Path, requests: &[String]) {
    let vendor = Server::start(stage(program, scratch));
    let upstream = format!("http://127.0.0.1:{}", vendor.port);
    let how = ["--record".as_ref(), cassette, "--upstream".as_ref(), Path::new(&upstream)];
    let mut recorder = Server::start(on_stage(program, &how));
    let mut connection = Connection::open(recorder.port);
    for request in requests {
        connection.ask(request);
    }
    drop(connection);
    kill_process(Pid::from_child(&recorder.child), Signal::TERM).unwrap();
    assert!(recorder.child.wait().unwrap().success(), "nothing was recorded");
}

fn on_stage(program: &Path, how: &[&Path]) -> (Command, u16) {
    let port = free_port();
    let mut command = Command::new(program);
    command.arg("stage").args(how).args(["--port", &port.to_string()]);
    (command, port)
}

/// The request of a turn: the same opening, and one call of a tool and its result more in each.
fn request(turn: usize) -> String {
    let mut whole: serde_json::Value = serde_json::from_str(&body("hello", OPENING)).unwrap();
    let messages = whole["messages"].as_array_mut().unwrap();
    for number in 0..turn {
        let id = format!("call_later_{number}");
        messages.push(serde_json::json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": id, "type": "function", "function": { "name": "read_file", "arguments": "{\"path\":\"b\"}" } },
        ] }));
        messages.push(serde_json::json!({
            "role": "tool", "tool_call_id": id, "content": format!("line {number} of a file\n").repeat(70),
        }));
    }
    whole.to_string()
}
