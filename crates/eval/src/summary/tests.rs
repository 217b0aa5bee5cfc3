use rehearsal_core::{Outcome, Timestamp, Tokens};

use super::*;
use crate::case::parse;
use crate::statistics::pass_hat_k;
use crate::trial::Source;

const TWO_CASES: &str = "name: smoke
agents: [claude, codex]
repeat: 4
assert: [{ type: no-errors }]
cases:
  - { name: easy, prompt: Do it }
  - { name: hard, prompt: Do it }
";

fn eval(require: &str) -> Eval {
    parse(&TWO_CASES.replace("repeat: 4", &format!("repeat: 4\n{require}")), "claude").unwrap()
}

fn variant(agent: &str) -> Variant {
    Variant { agent: agent.into(), model: None, prompt: None, flow: None }
}

fn record(agent: &str, case: &str, number: u32, verdict: Verdict, source: Source) -> Record {
    let id = TrialId { case: case.into(), variant: variant(agent), trial: number };
    let trial = Trial {
        duration_ms: 100 * u64::from(number),
        outcome: Outcome::Done,
        tokens: Some(Tokens { input: 10, cached: 0, output: 0 }),
        ..Trial::blank(id.clone(), source, Timestamp(0))
    };
    Record { id, verdict, reason: None, obstacle: None, graded: vec![], trial: Some(trial) }
}

/// Trials from letters: `p` passed, `f` failed, `e` an error.
fn row(agent: &str, case: &str, letters: &str, source: &Source) -> Vec<Record> {
    let verdict = |letter| match letter {
        'p' => Verdict::Pass,
        'f' => Verdict::Fail,
        _ => Verdict::Error,
    };
    let numbered = letters.chars().zip(1_u32..);
    numbered.map(|(letter, number)| record(agent, case, number, verdict(letter), source.clone())).collect()
}

fn all(claude: [&str; 2], codex: [&str; 2], source: &Source) -> Vec<Record> {
    [
        row("claude", "easy", claude[0], source),
        row("claude", "hard", claude[1], source),
        row("codex", "easy", codex[0], source),
        row("codex", "hard", codex[1], source),
    ]
    .concat()
}

#[test]
fn errors_of_the_world_around_are_not_failures() {
    let summary = Summary::of(&eval(""), &all(["ppee", "ffff"], ["pppp", "pfpf"], &Source::Scripted));
    let cell = &summary.cells[0];
    assert_eq!((cell.passed, cell.failed, cell.errors), (2, 0, 2));
    assert_eq!(cell.pass_rate, Some(1.0));
    assert_eq!(cell.pass_at.keys().copied().collect::<Vec<_>>(), [1, 2], "two samples say nothing of three");
    assert_eq!(summary.cells[3].pass_hat.get(&2).copied(), pass_hat_k(4, 2, 2));
    assert_eq!(summary.variants[0].pass_rate, Some(0.5));
}

#[test]
fn trials_on_one_tape_are_one_sample() {
    let tape = |name: &str| Source::Replayed { tape: name.into() };
    let mut records = row("claude", "easy", "pppp", &tape("a"));
    records.extend(row("claude", "hard", "pppf", &tape("b")));
    let summary = Summary::of(&eval(""), &records);
    let (easy, hard) = (&summary.cells[0], &summary.cells[2]);
    assert_eq!((easy.trials, easy.passed, easy.unsteady_tapes), (4, 1, 0));
    assert_eq!(
        (hard.trials, hard.failed, hard.unsteady_tapes),
        (4, 1, 1),
        "one that fails once is not to be trusted"
    );
    assert_eq!(easy.pass_at.get(&2), None);
}

#[test]
fn a_cost_that_is_not_told_is_not_zero() {
    let live = Summary::of(&eval(""), &row("claude", "easy", "pp", &Source::Live));
    assert_eq!(live.cells[0].cost, Cost { usd: 0.0, unknown: 2 });
    let free = Summary::of(&eval(""), &row("claude", "easy", "pp", &Source::Scripted));
    assert_eq!(free.cells[0].cost, Cost { usd: 0.0, unknown: 0 });
    let bounded = Summary::of(&eval("require: { max_cost: 1 }"), &row("claude", "easy", "pp", &Source::Live));
    let told = &bounded.requirements[0];
    assert_eq!((told.holds, told.because.as_str()), (false, "$0.0000, and 2 trials do not tell theirs"));
}

#[test]
fn a_trial_that_was_made_again_counts_once() {
    let mut records = row("claude", "easy", "e", &Source::Scripted);
    records.extend(row("claude", "easy", "p", &Source::Scripted));
    let summary = Summary::of(&eval(""), &records);
    assert_eq!((summary.cells[0].passed, summary.cells[0].errors), (1, 0));
}

fn required(require: &str, claude: [&str; 2], codex: [&str; 2]) -> Vec<String> {
    let summary = Summary::of(&eval(require), &all(claude, codex, &Source::Scripted));
    let told = |one: &Requirement| {
        format!("{} {}: {}", if one.holds { "holds" } else { "broken" }, one.what, one.because)
    };
    summary.requirements.iter().map(told).collect()
}

#[test]
fn without_a_word_everything_must_pass() {
    assert_eq!(
        required("", ["pppp", "pppp"], ["pppp", "pppe"]),
        ["holds claude: pass rate 1: 8 of 8 passed", "broken codex: pass rate 1: 7 of 7 passed, and 1 error"]
    );
}

#[test]
fn what_is_required_is_checked_for_each_who_was_measured() {
    let require = "require: { pass_rate: 0.7, pass_at: { k: 2, least: 0.9 }, pass_hat: { k: 5, least: 0.1 }, max_errors: 0 }";
    assert_eq!(
        required(require, ["pppp", "ppff"], ["pppp", "ppfe"]),
        [
            "holds claude: pass rate 0.7: 6 of 8 passed",
            "holds claude: pass@2 of 0.9: 0.917",
            "broken claude: pass^5 of 0.1: 0 of 2 cases have 5 samples",
            "holds claude: at most 0 errors: 0 errors",
            "holds codex: pass rate 0.7: 6 of 7 passed, and 1 error",
            "holds codex: pass@2 of 0.9: 1.000",
            "broken codex: pass^5 of 0.1: 0 of 2 cases have 5 samples",
            "broken codex: at most 0 errors: 1 errors",
        ]
    );
}

#[test]
fn two_are_compared_case_by_case() {
    let summary = Summary::of(&eval(""), &all(["pppp", "pppp"], ["ffff", "ffff"], &Source::Scripted));
    let comparison = summary.compare(&variant("claude"), &summary, &variant("codex"), 0).unwrap();
    assert_eq!((comparison.cases, comparison.better, comparison.difference), (2, 2, 1.0));
    assert!((comparison.p_value - 0.5).abs() < 1e-12, "two cases cannot show more");
}

#[test]
fn the_reports_tell_the_same_and_hold_no_markup_of_an_agent() {
    let mut records = all(["pppp", "pfpe"], ["pppp", "ffff"], &Source::Scripted);
    if let Some(trial) = &mut records[0].trial {
        trial.diff = "+<img src=x onerror=alert(1)>\n-old\n".into();
        trial.output = "<b>bold</b>".into();
    }
    let summary = Summary::of(&eval(""), &records);
    insta::assert_snapshot!(crate::report::markdown(&summary));
    let page = crate::report::html(&summary, &records);
    assert!(page.contains("<span class=\"added\">+&lt;img src=x onerror=alert(1)&gt;</span>"), "{page}");
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("<details>").count(), 16);
    assert_eq!(page.matches("class=\"interval\"").count(), 4);
}
