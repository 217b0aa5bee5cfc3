//! An eval that is killed at any moment goes on where it was.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;

use crate::dice::{Dice, seed};
use crate::stage::{DILIGENT, Stage};

const CASES: usize = 1000;
const KILLS: usize = 10;
/// What one trial takes in the journal, about.
const BYTES: u64 = 600;

fn project() -> Stage {
    let stage = Stage::new(DILIGENT);
    let mut eval = "name: many\nagents: [echo]\ncases:\n".to_owned();
    for case in 0..CASES {
        eval.push_str(&format!(
            "  - {{ name: c{case}, prompt: Say {case}, assert: [{{ type: contains, value: Say {case} }}] }}\n"
        ));
    }
    let evals = stage.repo.join(".rehearsal/evals");
    fs_err::create_dir(&evals).unwrap();
    fs_err::write(evals.join("many.yaml"), eval).unwrap();
    stage
}

/// How long the journal of the only run is.
fn journal(stage: &Stage) -> u64 {
    let runs = std::fs::read_dir(stage.state_dir().join("evals")).into_iter().flatten().flatten();
    runs.filter_map(|run| run.path().join("trials.jsonl").metadata().ok()).map(|file| file.len()).sum()
}

/// Goes on, and is killed when the journal has grown so far, unless it is over before. Whether it was killed.
fn is_killed_after(stage: &Stage, growth: u64) -> bool {
    let wanted = journal(stage) + growth;
    let mut command = stage.command(&["eval", "run", "--resume"]);
    let mut victim = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while victim.try_wait().unwrap().is_none() {
        if journal(stage) >= wanted {
            victim.kill().unwrap();
            victim.wait().unwrap();
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn a_thousand_cases_killed_at_random_are_resumed_until_each_is_there_once() {
    let stage = project();
    let mut dice = Dice::new(seed());
    // The first ones are far from the end, whatever is drawn.
    let killed = (0..KILLS).filter(|_| is_killed_after(&stage, dice.below(CASES as u64 * BYTES / 5)));
    assert!(killed.count() > 1);
    let document: Value =
        serde_json::from_str(&stage.succeed(&["eval", "run", "--resume", "--json"])).unwrap();
    let cells = document["cells"].as_array().unwrap();
    let once = |cell: &&Value| cell["trials"] == 1 && cell["passed"] == 1;
    assert_eq!((cells.len(), cells.iter().filter(once).count()), (CASES, CASES));
    let run = stage.state_dir().join("evals").join(document["run"].as_str().unwrap());
    let text = fs_err::read_to_string(run.join("trials.jsonl")).unwrap();
    let id = |line| serde_json::from_str::<Value>(line).unwrap()["id"].to_string();
    let ids: BTreeSet<String> = text.lines().map(id).collect();
    assert_eq!((text.lines().count(), ids.len()), (CASES, CASES));
    let list: Value = serde_json::from_str(&stage.succeed(&["eval", "list", "--json"])).unwrap();
    assert_eq!(list["runs"].as_array().unwrap().len(), 1, "{list:#}");
    stage.succeed(&["eval", "show"]);
}
