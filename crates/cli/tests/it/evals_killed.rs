//! An eval that is killed at any moment goes on where it was.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;

use crate::dice::{Dice, seed};
use crate::env::TestEnv;

const CASES: usize = 1000;
const KILLS: usize = 10;
/// What one trial takes in the journal, about.
const BYTES: u64 = 600;

fn project() -> TestEnv {
    let env = TestEnv::new();
    let mut eval = "name: many\nagents: [echo]\ncases:\n".to_owned();
    for case in 0..CASES {
        eval.push_str(&format!(
            "  - {{ name: c{case}, prompt: Say {case}, assert: [{{ type: contains, value: Say {case} }}] }}\n"
        ));
    }
    env.file(".rehearsal/evals/many.yaml", eval).commit("Measure");
    env
}

/// How long the journal of the only run is.
fn journal(env: &TestEnv) -> u64 {
    let directory = env.repo.join(".rehearsal/state/evals");
    let runs = std::fs::read_dir(directory).into_iter().flatten().flatten();
    runs.filter_map(|run| run.path().join("trials.jsonl").metadata().ok()).map(|file| file.len()).sum()
}

/// Goes on, and is killed when the journal has grown so far, unless it is over before.
fn killed_after(env: &TestEnv, growth: u64) {
    let wanted = journal(env) + growth;
    let mut command = env.command(env!("CARGO_BIN_EXE_rehearsal"));
    command
        .args(["eval", "run", "--resume"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut victim = command.spawn().unwrap();
    while victim.try_wait().unwrap().is_none() {
        if journal(env) >= wanted {
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_thousand_cases_killed_at_random_are_resumed_until_each_is_there_once() {
    let env = project();
    let mut dice = Dice::new(seed());
    for _ in 0..KILLS {
        killed_after(&env, dice.below(CASES as u64 * BYTES / 5));
    }
    let document = env.run(&["eval", "run", "--resume", "--json"]).ends_with(0).document();
    let cells = document["cells"].as_array().unwrap();
    let once = |cell: &&Value| cell["trials"] == 1 && cell["passed"] == 1;
    assert_eq!((cells.len(), cells.iter().filter(once).count()), (CASES, CASES));
    let runs = env.json(&["eval", "list"])["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let text = env.read(format!(".rehearsal/state/evals/{}/trials.jsonl", runs[0].as_str().unwrap()));
    let ids: BTreeSet<String> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].to_string()).collect();
    assert_eq!((text.lines().count(), ids.len()), (CASES, CASES));
    env.run(&["eval", "show", "--json"]).ends_with(0);
}
