//! What a real agent answers to `--version` and `--help`, as far as a driver asks.

use std::fmt::Write as _;

use super::wire::MockCli;

/// The answer, if the foreign arguments ask for one.
pub(super) fn answer(cli: &MockCli, foreign: &[String]) -> Option<String> {
    let asks = |names: &[&str]| foreign.iter().any(|arg| names.contains(&arg.as_str()));
    if asks(&["--version"]) {
        return Some(format!("{}\n", cli.version));
    }
    asks(&["--help", "-h"]).then(|| help(cli))
}

fn help(cli: &MockCli) -> String {
    let mut text = format!("Usage: {}\n\nOptions:\n", cli.usage);
    for option in cli.options {
        let _ = writeln!(text, "  {option}");
    }
    text
}
