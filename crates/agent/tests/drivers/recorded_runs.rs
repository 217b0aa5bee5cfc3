//! Runs of the real agents, recorded, against the truth about them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rehearsal_agent::clis::KNOWN;
use rehearsal_agent::driver::{ExplainFacts, Explanation, Here, explain, parse_exit};
use rehearsal_core::{Activity, OutcomeName, Promise, Timestamp, Tokens};
use serde::Deserialize;

const NOW: Timestamp = Timestamp(1_794_772_800_000);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Truth {
    outcome: OutcomeName,
    promise: Option<String>,
    cost_usd: Option<f64>,
    turns: Option<u64>,
    tokens: Option<u64>,
    denials: Option<usize>,
    session: Option<bool>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct Recorded {
    exit: i32,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn explained(kind: &str, case: &str, facts: ExplainFacts) -> Explanation {
    let path = |ending: &str| fixtures().join(kind).join(format!("{case}.{ending}"));
    let recorded: Recorded = serde_json::from_slice(&std::fs::read(path("json")).unwrap()).unwrap();
    let stdout = whole(std::fs::read(path("stdout")).unwrap());
    let stderr = std::fs::read(path("stderr")).unwrap_or_default();
    explain(kind.parse().unwrap(), &stdout[..], &stderr, parse_exit(recorded.exit), facts, &Here::at(NOW))
        .unwrap()
}

/// Recordings of megabytes were cut in the middle of a long string: fills the gap to the original size.
fn whole(stdout: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&stdout);
    let Some((head, rest)) = text.split_once("\n…[trimmed by runner: total ") else {
        return stdout;
    };
    let (size, tail) = rest.split_once(" bytes]…\n").unwrap();
    // A cut may fall into an escape: both sides go back to a line end within the string.
    let head = &head[..head.rfind("\\n").unwrap()];
    let tail = &tail[tail.find("\\n").unwrap()..];
    let missing = size.parse::<usize>().unwrap().saturating_sub(head.len() + tail.len());
    let filling = "\\nfilling of the gap".repeat(missing / 20);
    format!("{head}{filling}{tail}").into_bytes()
}

fn check(kind: &str, case: &str, truth: &Truth) -> Vec<String> {
    let explanation = explained(kind, case, ExplainFacts::default());
    let (wire, verdict) = (&explanation.wire, &explanation.verdict);
    let promise = Promise::find(&wire.final_text).map(|promise| match promise {
        Promise::Complete => "complete",
        Promise::Done(_) => "done",
        Promise::Failed(_) => "failed",
        Promise::Approve(_) => "approve",
        Promise::Reject(_) => "reject",
        Promise::Blocked(_) => "blocked",
        Promise::Continue(_) => "continue",
    });
    let mut wrong = Vec::new();
    let mut expect = |what: &str, expected: Option<String>, found: String| {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            wrong.push(format!(
                "{kind}/{case}: {what} is {found}, not {expected} ({})",
                verdict.because.join("; ")
            ));
        }
    };
    expect("outcome", Some(truth.outcome.to_string()), verdict.outcome.name().to_string());
    expect("promise", truth.promise.clone(), promise.unwrap_or("none").to_owned());
    expect(
        "cost",
        truth.cost_usd.map(|cost| format!("{cost:.6}")),
        format!("{:.6}", wire.cost_usd.unwrap_or(-1.0)),
    );
    expect("turns", truth.turns.map(|turns| turns.to_string()), wire.turns.unwrap_or(0).to_string());
    expect("tokens", truth.tokens.map(|n| n.to_string()), wire.tokens.map_or(0, Tokens::total).to_string());
    expect("denials", truth.denials.map(|n| n.to_string()), wire.denials.len().to_string());
    expect("session", truth.session.map(|known| known.to_string()), wire.session_id.is_some().to_string());
    expect("model", truth.model.clone(), wire.model.clone().unwrap_or_default());
    wrong
}

#[test]
fn every_recorded_run_comes_to_what_a_person_says_it_came_to() {
    let yaml = std::fs::read_to_string(fixtures().join("truth.yaml")).unwrap();
    let truth: BTreeMap<String, BTreeMap<String, Truth>> = rehearsal_core::yaml::from_str(&yaml).unwrap();
    let mut wrong = Vec::new();
    for (kind, cases) in &truth {
        for (case, truth) in cases {
            wrong.extend(check(kind, case, truth));
        }
        let recorded = std::fs::read_dir(fixtures().join(kind)).unwrap();
        let recorded = recorded
            .filter(|file| file.as_ref().unwrap().path().extension() == Some("json".as_ref()))
            .count();
        if recorded != cases.len() {
            wrong.push(format!("{kind}: {recorded} runs are recorded, {} are judged", cases.len()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_refused_edit_is_no_failure_of_a_run_that_was_only_to_look() {
    let looked = ExplainFacts { read_only: true, changed: None };
    let outcome = |case, facts| explained("claude", case, facts).verdict.outcome.name();
    assert_eq!(outcome("plan-mode", looked), OutcomeName::Done);
    assert_eq!(outcome("default-mode-denied", looked), OutcomeName::Done);
    let changed = ExplainFacts { read_only: false, changed: Some(true) };
    assert_eq!(outcome("default-mode-denied", changed), OutcomeName::Done);
    let unchanged = ExplainFacts { read_only: false, changed: Some(false) };
    assert_eq!(outcome("default-mode-denied", unchanged), OutcomeName::PermissionDenied);
}

#[test]
fn an_exit_status_that_stands_for_a_signal_is_said_to() {
    let verdict = explained("claude", "sigterm-model-wait", ExplainFacts::default()).verdict;
    assert_eq!(verdict.outcome.to_string(), "crashed: signal 15 (SIGTERM)");
    assert_eq!(verdict.because, ["exit status 143", "that status stands for signal 15 (SIGTERM)"]);
}

/// What was called in a recording, with its arguments.
fn called(kind: &str, stdout: &[u8]) -> Vec<(String, Option<String>)> {
    let mut parser = (KNOWN.named(kind).unwrap().parser)(Here::at(NOW));
    let mut out = Vec::new();
    parser.push(stdout, &mut out);
    let calls = out.into_iter().filter_map(|activity| match activity {
        Activity::ToolCalled { tool, arguments, .. } => Some((tool, arguments)),
        _ => None,
    });
    calls.collect()
}

#[test]
fn every_call_in_a_recording_tells_its_arguments_as_json() {
    for kind in KNOWN.foreign() {
        let mut calls = 0;
        for entry in std::fs::read_dir(fixtures().join(kind)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "stdout") {
                continue;
            }
            for (tool, arguments) in called(kind, &whole(std::fs::read(&path).unwrap())) {
                let arguments = arguments.unwrap_or_else(|| panic!("{}: {tool} has none", path.display()));
                let read: serde_json::Value = serde_json::from_str(&arguments).unwrap();
                assert!(read.is_object(), "{}: {tool} {arguments}", path.display());
                calls += 1;
            }
        }
        assert!(calls > 10, "{kind}: {calls} calls");
    }
}
