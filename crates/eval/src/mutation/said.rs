//! Another answer, or another end.

use rehearsal_core::{Exit, Outcome};

use super::Mutant;
use crate::trial::{Trial, Vote};

pub(super) fn mutants(trial: &Trial, other: Option<&str>) -> Vec<Mutant> {
    let said = |name: &str, text: String| Mutant::of(trial, name, |mutant| mutant.output = text);
    let mut all = vec![
        said("nothing is said", String::new()),
        said("the words are in reverse order", reversed(&trial.output)),
        said("the answer is negated", negated(&trial.output)),
        Mutant::of(trial, "the run crashes", |mutant| mutant.outcome = Outcome::crashed(Exit::Code(1))),
        Mutant::of(trial, "the judges disagree", |mutant| {
            for vote in mutant.judged.values_mut().flatten() {
                if let Vote::Pass { reason } = vote {
                    *vote = Vote::Fail { reason: std::mem::take(reason) };
                } else if let Vote::Fail { reason } = vote {
                    *vote = Vote::Pass { reason: std::mem::take(reason) };
                }
            }
        }),
        Mutant::of(trial, "the answer ends in an error", |mutant| {
            mutant.output.push_str("\nerror: it broke")
        }),
    ];
    all.extend(other.map(|other| said("the answer to another case", other.to_owned())));
    all
}

fn reversed(text: &str) -> String {
    text.split_whitespace().rev().collect::<Vec<_>>().join(" ")
}

/// Each sentence says the opposite, as far as a few words can do it.
fn negated(text: &str) -> String {
    const SWAPS: [(&str, &str); 8] = [
        ("is", "isn't"),
        ("are", "aren't"),
        ("was", "wasn't"),
        ("can", "cannot"),
        ("yes", "no"),
        ("true", "false"),
        ("pass", "fail"),
        ("all", "none"),
    ];
    let swap = |word: &str| {
        let lower = word.to_lowercase();
        let found = SWAPS.iter().find_map(|(yes, no)| match lower.as_str() {
            word if word == *yes => Some(*no),
            word if word == *no => Some(*yes),
            _ => None,
        });
        found.unwrap_or(word).to_owned()
    };
    let words: Vec<String> = text.split(' ').map(swap).collect();
    format!("No. {}", words.join(" "))
}
