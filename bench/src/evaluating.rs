//! 1,000 cases of an eval, each with one `contains`: what the whole program takes from its start to its end, beside promptfoo and
//! `inspect_ai`. First the answer is the prompt; then a model on this machine's loopback is asked, whose own part is not counted.

mod cost;
mod peers;

use std::path::Path;
use std::process::Command;

use crate::stage::Server;
use cost::Cost;
use peers::Peer;

const CASES: usize = 1000;
/// One of ours, one of theirs, and so on; the least counts: a busy machine only makes it more, and as often for each.
const RUNS: usize = 3;
/// What the model says to everything.
const ANSWER: &str = "Hello there.";
const MOST_MEMORY_MB: u64 = 30;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What<'a> {
    /// The answer is the prompt.
    Echo,
    /// Asks a model at this address.
    Chat(&'a str),
}

impl What<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Chat(_) => "chat",
        }
    }

    /// What the answer to a case has to contain.
    fn expected(self, case: usize) -> String {
        match self {
            Self::Echo => prompt(case),
            Self::Chat(_) => ANSWER.to_owned(),
        }
    }
}

fn prompt(case: usize) -> String {
    format!("Say something about case {case}, which is one of many.")
}

pub(crate) fn measure(program: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(
        scratch.path().join("stage.yaml"),
        format!("turns:\n  - {{ say: {ANSWER}, times: any }}\n"),
    )
    .unwrap();
    let server = Server::start(crate::stage::stage(program, scratch.path()));
    let address = format!("http://127.0.0.1:{}/v1", server.port);
    let peers: Vec<Peer> = peers::ALL
        .into_iter()
        .filter_map(|(name, install)| match install() {
            Ok(peer) => Some(peer),
            Err(why) => {
                println!("eval: {name} is left out: {why}");
                None
            }
        })
        .collect();
    for (what, goal) in [(What::Echo, "<= 0.02x"), (What::Chat(&address), "<= 0.033x")] {
        let peak = ours(program, what).peak_mb();
        let cases = format!("{CASES} {} cases", what.name());
        let most = match what {
            What::Echo => format!("< {MOST_MEMORY_MB} MB"),
            What::Chat(_) => String::new(),
        };
        println!("{:<44} {peak:>9.1} MB  {most}", format!("eval: peak memory of {cases}"));
        for peer in &peers {
            let rounds: Vec<(Cost, Cost)> =
                (0..RUNS).map(|_| (ours(program, what), peer.run(what))).collect();
            let least =
                |of: fn(&(Cost, Cost)) -> Cost| rounds.iter().map(of).min_by_key(|cost| cost.cpu).unwrap();
            let (ours, theirs) = (least(|round| round.0), least(|round| round.1));
            let goal = if peer.name == "promptfoo" { goal } else { "" };
            crate::row(&format!("eval: CPU of {cases}, {}", peer.name), ours.cpu, theirs.cpu, goal);
            println!("{:<44} {:>9.1} MB", format!("      peak memory of {}", peer.name), theirs.peak_mb());
        }
    }
}

fn ours(program: &Path, what: What<'_>) -> Cost {
    let scratch = tempfile::tempdir().unwrap();
    let evals = scratch.path().join(".rehearsal/evals");
    std::fs::create_dir_all(&evals).unwrap();
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(scratch.path()).status().unwrap();
    assert!(git.success());
    std::fs::write(evals.join("many.yaml"), eval(what)).unwrap();
    let mut command = Command::new(program);
    command
        .args(["eval", "run", "many", "--jobs", "4"])
        .current_dir(scratch.path())
        .env("HOME", scratch.path());
    if let What::Chat(address) = what {
        command.env("OPENAI_BASE_URL", address);
    }
    Cost::of(&mut command)
}

fn eval(what: What<'_>) -> String {
    let agent = match what {
        What::Echo => "echo",
        What::Chat(_) => "'openai:some-model'",
    };
    let mut yaml = format!("name: many\nagents: [{agent}]\ncases:\n");
    for case in 0..CASES {
        let (prompt, expected) = (prompt(case), what.expected(case));
        yaml.push_str(&format!(
            "  - name: c{case}\n    prompt: \"{prompt}\"\n    assert:\n      - type: contains\n        value: \"{expected}\"\n"
        ));
    }
    yaml
}
