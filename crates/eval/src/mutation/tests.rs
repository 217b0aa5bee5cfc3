use insta::assert_snapshot;
use proptest::prelude::*;
use rehearsal_core::{Outcome, TestStatus, Timestamp, Tokens};

use super::*;
use crate::assertion::{AssertionFile, check_of};
use crate::trial::{
    ChangeKind, CommandEnd, Doing, FileChange, PullRequest, Replay, Source, Step, Tested, TrialId, Variant,
    Vote,
};

fn read(yaml: &str) -> Assertion {
    let file: AssertionFile = rehearsal_core::yaml::from_str(yaml).unwrap();
    check_of(&file).unwrap()
}

/// A trial of which everything is known.
fn trial() -> Trial {
    let variant = Variant { agent: "code".into(), model: None, prompt: None, flow: None };
    let id = TrialId { case: "fix".into(), variant, trial: 1 };
    let tool = |tool: &str, does| Step::Tool {
        tool: tool.into(),
        arguments: r#"{"path":"a"}"#.into(),
        does,
        is_error: None,
    };
    Trial {
        duration_ms: 1200,
        outcome: Outcome::Done,
        output: "All is well".into(),
        steps: vec![
            Step::Agent { name: "code".into() },
            tool("read_file", Doing::Read),
            tool("edit_file", Doing::Edit),
            tool("run_tests", Doing::Test),
        ],
        changes: vec![FileChange { path: "src/cart.rs".into(), kind: ChangeKind::Created }],
        diff: "diff --git a/src/cart.rs b/src/cart.rs\n+let total = 1;\n".into(),
        commits: vec!["Mend the cart".into()],
        pull_request: Some(PullRequest { title: "Mend the cart".into(), merged: true }),
        gh_calls: vec!["pr create".into()],
        tests: Some(Tested {
            before: [("adds".to_owned(), TestStatus::Fail)].into(),
            after: [("adds".to_owned(), TestStatus::Pass)].into(),
        }),
        commands: [("make lint".to_owned(), CommandEnd { code: Some(0), output: String::new() })].into(),
        judged: [("polite".to_owned(), vec![Vote::Pass { reason: "yes".into() }])].into(),
        tokens: Some(Tokens { input: 900, cached: 0, output: 100 }),
        cost_usd: Some(0.01),
        turns: Some(3),
        replay: Some(Replay { exact: true, differences: vec![], missed: 0 }),
        ..Trial::blank(id, Source::Scripted, Timestamp(0))
    }
}

/// One assertion of every kind that holds for the trial and means something.
const GOOD: &[&str] = &[
    "{ type: contains, value: well }",
    "{ type: not-contains, value: sorry }",
    "{ type: icontains, value: WELL }",
    "{ type: contains-all, value: [All, well] }",
    "{ type: contains-any, value: [well, good] }",
    "{ type: not-contains-any, value: [bad, ugly] }",
    "{ type: equals, value: All is well }",
    "{ type: not-equals, value: Nothing is well }",
    "{ type: starts-with, value: All }",
    "{ type: not-starts-with, value: Sorry }",
    "{ type: regex, value: w.ll }",
    "{ type: not-regex, value: '(?i)as an ai.*model' }",
    "{ type: not-is-json }",
    "{ type: output-matches, value: well }",
    "{ type: no-errors }",
    "{ type: trajectory-contains, value: code }",
    "{ type: not-trajectory-contains, value: review }",
    "{ type: 'trajectory:tool-used', value: read_* }",
    "{ type: 'trajectory:tool-used', value: { name: read_file, min: 0, max: 2 } }",
    "{ type: 'not-trajectory:tool-used', value: 'web_*' }",
    "{ type: 'trajectory:tool-args-match', value: { name: read_file, args: { path: a } } }",
    "{ type: 'not-trajectory:tool-args-match', value: { name: read_file, args: { path: /etc } } }",
    "{ type: 'trajectory:tool-sequence', value: [read_file, run_tests] }",
    "{ type: 'trajectory:step-count', value: { max: 10 } }",
    "{ type: files-modified, value: 1 }",
    "{ type: files-modified, value: { max: 5 } }",
    "{ type: files-created, value: 'src/*.rs' }",
    "{ type: not-files-created, value: '**/*.orig' }",
    "{ type: files-untouched, value: 'vendor/**' }",
    "{ type: diff-contains, value: total }",
    "{ type: not-diff-contains, value: 'unwrap\\(' }",
    "{ type: diff-scope, value: 'src/**' }",
    "{ type: command, value: make lint }",
    "{ type: tests, value: { fail_to_pass: [adds] } }",
    "{ type: git, value: { commits: 1 } }",
    "{ type: git, value: { clean: true } }",
    "{ type: git, value: { subject: '^[A-Z]' } }",
    "{ type: pull-request }",
    "{ type: pull-request, value: { merged: true } }",
    "{ type: gh-called, value: pr create }",
    "{ type: not-gh-called, value: pr merge }",
    "{ type: step-order, value: { after: edit, comes: test } }",
    "{ type: no-loops }",
    "{ type: max-tokens, value: 2000 }",
    "{ type: max-turns, value: 10 }",
    "{ type: latency, value: 60000 }",
    "{ type: cost, value: 1.5 }",
    "{ type: replay-exact }",
    "{ type: llm-rubric, value: polite }",
];

#[test]
fn every_kind_of_assertion_can_be_made_to_fail() {
    for yaml in GOOD {
        let assertion = read(yaml);
        let (_, verdict) = grade(&trial(), std::slice::from_ref(&assertion), None);
        assert_eq!(verdict, Verdict::Pass, "{yaml} does not hold for the trial");
        let teeth = bite(&trial(), &[assertion], None, Some("Another answer"));
        assert!(teeth.all_can_fail(), "nothing breaks {yaml}");
    }
}

#[test]
fn an_assertion_that_says_nothing_is_found() {
    for yaml in [
        "{ type: contains, value: '' }",
        "{ type: regex, value: '.*' }",
        "{ type: files-modified, value: { min: 0 } }",
        "{ type: diff-scope, value: '**' }",
        "{ type: max-tokens, value: 100000000000000 }",
        "{ type: 'trajectory:step-count', value: { min: 0 } }",
    ] {
        let teeth = bite(&trial(), &[read(yaml)], None, None);
        assert!(!teeth.all_can_fail(), "{yaml} is broken by {:?}", teeth.assertions[0].broken_by);
    }
}

#[test]
fn what_nobody_would_notice_is_named() {
    let teeth = bite(&trial(), &[read("{ type: tests, value: { fail_to_pass: [adds] } }")], None, None);
    assert_snapshot!(teeth.assertions[0].broken_by.join("\n"), @"
    no file is changed
    every test fails
    no test is left
    ");
    assert!(teeth.survivors.contains(&"one more file is changed, outside of the scope".to_owned()));
    assert!(teeth.survivors.contains(&"ten times the cost".to_owned()));
    let ungraded = "`src/cart.rs` stays as it was".to_owned();
    assert!(!teeth.survivors.contains(&ungraded), "how its tests would end is not known");
}

#[test]
fn with_a_threshold_a_broken_assertion_need_not_fail_the_case() {
    let two =
        [read("{ type: contains, value: well }"), read("{ type: files-modified, value: 1, weight: 9 }")];
    let teeth = bite(&trial(), &two, Some(0.8), None);
    assert!(teeth.assertions[0].broken_by.contains(&"nothing is said".to_owned()));
    assert!(teeth.survivors.contains(&"nothing is said".to_owned()));
    assert!(!teeth.survivors.contains(&"no file is changed".to_owned()));
}

proptest! {
    #[test]
    fn any_trial_can_be_made_worse(output in ".{0,80}", diff in "(diff --git|[+-]|\\PC|\n){0,40}", paths in prop::collection::vec("\\PC{0,12}", 0..5)) {
        let mut trial = trial();
        trial.output = output;
        trial.diff = diff;
        trial.changes = paths.into_iter().map(|path| FileChange { path, kind: ChangeKind::Modified }).collect();
        let all: Vec<Assertion> = GOOD.iter().map(|yaml| read(yaml)).collect();
        for mutant in mutants(&trial, &all, Some("x")) {
            prop_assert_ne!(&mutant.trial, &trial, "{}", mutant.name);
        }
    }
}
