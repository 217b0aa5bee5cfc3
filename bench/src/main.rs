//! How fast it is. Run it with `cargo run --profile dist -p rehearsal-bench`; `bench/README.md` explains the figures.
#![expect(clippy::disallowed_methods, reason = "benchmarks start the programs that they measure")]
#![expect(clippy::print_stdout, reason = "its output is a table on a terminal")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to say")]

mod cache;
mod claims;
mod crew;
mod evaluating;
mod junit;
mod looping;
mod parsing;
mod rehearsing;
mod sandboxing;
mod stage;
mod starting;
mod storing;
mod testing;
mod tests_command;
mod worktrees;

use std::path::{Path, PathBuf};
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [part, one @ ..] = args.as_slice()
        && part == "testing"
        && !one.is_empty()
    {
        return testing::measure_one(one);
    }
    let wanted = args.first();
    let is_wanted = |part: &str| wanted.is_none_or(|wanted| wanted == part);
    println!("{:<44} {:>12} {:>12} {:>8}  goal", "what", "ours", "beside", "ratio");
    for (part, measure) in PARTS_OF_THE_PROGRAM {
        if is_wanted(part) {
            measure(&program());
        }
    }
    if is_wanted("claims") {
        claims::measure();
    }
    if is_wanted("worktrees") {
        worktrees::measure();
    }
    if is_wanted("crew") {
        crew::measure();
    }
    if is_wanted("parse") {
        parsing::measure();
    }
    if is_wanted("sandbox") {
        sandboxing::measure();
    }
    if is_wanted("testing") {
        testing::measure();
    }
    if is_wanted("junit") {
        junit::measure();
    }
}

type Measure = fn(&Path);

/// What is measured on the program itself, which must have been built.
const PARTS_OF_THE_PROGRAM: [(&str, Measure); 7] = [
    ("start", starting::measure),
    ("loop", looping::measure),
    ("store", storing::measure),
    ("test", tests_command::measure),
    ("stage", stage::measure),
    ("rehearse", rehearsing::measure),
    ("eval", evaluating::measure),
];

/// The release binary next to this one.
fn program() -> PathBuf {
    let program = std::env::current_exe().unwrap().with_file_name("rehearsal");
    assert!(program.exists(), "build it first: cargo build --profile dist");
    program
}

/// A row of the table.
fn row(what: &str, ours: Duration, beside: Duration, goal: &str) {
    let ratio = ours.as_secs_f64() / beside.as_secs_f64().max(f64::MIN_POSITIVE);
    println!("{what:<44} {:>9.2} ms {:>9.2} ms {ratio:>7.3}x  {goal}", millis(ours), millis(beside));
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The middle one: a busy machine spoils means.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
