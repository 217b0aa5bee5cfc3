//! How long a scenario takes: each row of the pipeline's matrix by itself, and all of them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

const MATRIX: &str = include_str!("../../crates/cli/tests/scenarios/data/matrix.yaml");
const ROUNDS: usize = 3;

/// What `rehearse --json` says, as far as it matters here.
#[derive(Deserialize)]
struct Document {
    scenarios: Vec<Played>,
}

#[derive(Deserialize)]
struct Played {
    name: String,
    passed: bool,
    duration_ms: u64,
}

pub(crate) fn measure(program: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("matrix.yaml");
    std::fs::write(&file, MATRIX).unwrap();
    let alone: Vec<Vec<Played>> = (0..ROUNDS).map(|_| play(program, &file, &["--jobs", "1"])).collect();
    for row in 0..alone[0].len() {
        let time =
            crate::median(alone.iter().map(|round| Duration::from_millis(round[row].duration_ms)).collect());
        line(&alone[0][row].name, time, "< 250 ms");
    }
    let whole = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        play(program, &file, &[]);
        start.elapsed()
    });
    line("all of them, as many at once as there are cores", crate::median(whole.collect()), "< 10 s");
}

fn play(program: &Path, file: &Path, args: &[&str]) -> Vec<Played> {
    let mut command = Command::new(program);
    command.args(["rehearse", "--json"]).arg(file).args(args).stderr(Stdio::null());
    let said = command.current_dir(file.parent().unwrap()).output().unwrap();
    let document: Document = serde_json::from_slice(&said.stdout).unwrap();
    let failed: Vec<&str> = document
        .scenarios
        .iter()
        .filter(|played| !played.passed)
        .map(|played| played.name.as_str())
        .collect();
    assert!(failed.is_empty(), "not as expected: {failed:?}");
    document.scenarios
}

fn line(what: &str, time: Duration, goal: &str) {
    println!("{:<44} {:>9.2} ms {:>24} {goal}", format!("rehearse: {what}"), crate::millis(time), "");
}
