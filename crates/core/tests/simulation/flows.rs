//! The flows that are simulated: all that ship, one with every step there is, and generated ones.

use std::sync::LazyLock;

use rehearsal_core::flow::{Flow, SHIPPED, parse};

use crate::rng::Rng;

/// Everything an engine can do between two agents, down to a deployment that must not happen twice.
const DEPLOY: &str = "\
name: deploy
start: incoming
states:
  incoming:
    agent: implementer
    steps: [commit_leftovers, rebase, run_tests, push_branch, create_pr, check_ci]
    on:
      done: review
      tests_failed: { to: incoming, at_most: 3, then: failed }
      conflict: { to: incoming, at_most: 5, then: blocked }
      ci_failed: { to: incoming, at_most: 3, then: failed }
      needs_continuation: { to: incoming, at_most: 3, then: failed }
      crashed: { to: incoming, at_most: 3, then: failed }
      failed: failed
      blocked: blocked
  review:
    agent: gatekeeper
    steps:
      - post_comment: let in
      - check_conflicts
      - merge_pr
    on:
      approved: deploying
      rejected: { to: incoming, at_most: 4, then: blocked }
      conflict: { to: incoming, at_most: 5, then: blocked }
      tests_failed: { to: incoming, at_most: 3, then: failed }
      merge_failed: { to: review, at_most: 3, then: blocked }
      crashed: { to: review, at_most: 3, then: blocked }
  deploying:
    steps:
      - command: make deploy
    on: { done: done, command_failed: blocked }
  blocked: { wait: human }
  done: { end: success }
  failed: { end: failure }
";

const GENERATED: u64 = 10;

/// All of them, read once.
pub(crate) static FLOWS: LazyLock<Vec<Flow>> = LazyLock::new(|| {
    let shipped = SHIPPED.iter().map(|(_, text)| parse(text).unwrap());
    let own = std::iter::once(parse(DEPLOY).unwrap());
    shipped
        .chain(own)
        .chain((0..GENERATED).map(|seed| parse(&generate(&mut Rng::new(seed))).unwrap()))
        .collect()
});

/// A valid flow: a chain of one to four states that work, with random agents, steps and ways back.
pub(crate) fn generate(rng: &mut Rng) -> String {
    let length = 1 + rng.index(4);
    let mut text = String::from("name: generated\nstart: s0\nstates:\n");
    let mut bad_ends = false;
    for index in 0..length {
        let next = if index + 1 == length { "done".to_owned() } else { format!("s{}", index + 1) };
        bad_ends |= state(&mut text, index, &next, rng);
    }
    text.push_str("  blocked: { wait: human }\n  done: { end: success }\n");
    if bad_ends {
        text.push_str("  failed: { end: failure }\n");
    }
    text
}

/// Writes a state; whether it may lead to `failed`.
fn state(text: &mut String, index: usize, next: &str, rng: &mut Rng) -> bool {
    let kind = if index == 0 { rng.index(2) * 3 } else { rng.index(4) };
    let (agent, good) = match kind {
        0 => (Some("implementer"), "done"),
        1 => (Some("gatekeeper"), "approved"),
        2 => (None, "done"),
        _ => (Some("fixer"), "done"),
    };
    let mut steps = steps(index, agent.is_none(), rng);
    if rng.chance(250) {
        steps.push("{ command: make deploy }");
    }
    text.push_str(&format!("  s{index}:\n"));
    if let Some(agent) = agent {
        text.push_str(&format!("    agent: {agent}\n"));
    }
    if rng.chance(150) {
        text.push_str(&format!("    room: {}\n", 1 + rng.below(2)));
    }
    text.push_str(&format!("    steps: [{}]\n    on:\n      {good}: {next}\n", steps.join(", ")));
    let back = format!("s{}", rng.index(index + 1));
    let bad_ends = rng.chance(700);
    let then = if bad_ends { "failed" } else { "blocked" };
    let limited =
        |to: &str, rng: &mut Rng| format!("{{ to: {to}, at_most: {}, then: {then} }}", rng.below(4));
    if good == "approved" {
        let rejected = limited(&back, rng);
        text.push_str(&format!("      rejected: {rejected}\n"));
    } else if agent.is_some() {
        text.push_str("      blocked: blocked\n");
    }
    let otherwise = limited(if agent.is_some() { &back } else { "s0" }, rng);
    if rng.chance(300) && agent.is_some() {
        let crashed = limited(&format!("s{index}"), rng);
        text.push_str(&format!("      crashed: {crashed}\n"));
    }
    text.push_str(&format!("    otherwise: {otherwise}\n"));
    bad_ends
}

/// The steps of a state, each of which has what it needs: a push before the pull request, that before the merge.
fn steps(index: usize, needed: bool, rng: &mut Rng) -> Vec<&'static str> {
    let ways: [&[&str]; 5] = [
        &[],
        &["commit_leftovers", "rebase", "run_tests"],
        &["commit_leftovers", "push_branch", "create_pr"],
        &["commit_leftovers", "rebase", "run_tests", "push_branch", "create_pr", "check_ci"],
        &[
            "commit_leftovers",
            "rebase",
            "run_tests",
            "push_branch",
            "create_pr",
            "check_conflicts",
            "merge_pr",
        ],
    ];
    let first = usize::from(needed);
    ways[first + rng.index(if index == 0 { 4 } else { 5 } - first)].to_vec()
}
