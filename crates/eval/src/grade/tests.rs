use std::collections::BTreeMap;

use rehearsal_core::{Exit, Outcome, TestStatus, Timestamp, Tokens};

use super::*;
use crate::assertion::{AssertionFile, check_of};
use crate::trial::{
    ChangeKind, CommandEnd, Doing, FileChange, PullRequest, Replay, Source, Step, Tested, TrialId, Variant,
    Vote,
};

/// A trial of an agent that read, wrote and tested, and made one commit.
fn trial() -> Trial {
    let tool = |tool: &str, arguments: &str, does| Step::Tool {
        tool: tool.into(),
        arguments: arguments.into(),
        does,
        is_error: Some(false),
    };
    let change = |path: &str, kind| FileChange { path: path.into(), kind };
    let status = |pairs: &[(&str, TestStatus)]| {
        pairs.iter().map(|(name, status)| ((*name).to_owned(), *status)).collect()
    };
    let variant = Variant { agent: "code".into(), model: None, prompt: None, flow: None };
    Trial {
        id: TrialId { case: "fix".into(), variant, trial: 1 },
        source: Source::Scripted,
        began: Timestamp(0),
        duration_ms: 1200,
        outcome: Outcome::Done,
        output: "Found 5 files.\nAll is well.".into(),
        steps: vec![
            Step::Agent { name: "search".into() },
            tool("glob", r#"{"pattern":"**/*.rs"}"#, Doing::Read),
            Step::Agent { name: "code".into() },
            tool("edit_file", r#"{"path":"src/cart.rs","old":"a","new":"b"}"#, Doing::Edit),
            tool("run_tests", "{}", Doing::Test),
        ],
        changes: vec![
            change("src/cart.rs", ChangeKind::Modified),
            change("tests/cart.rs", ChangeKind::Created),
        ],
        diff: "+    let total = sum(items);\n".into(),
        commits: vec!["Mend the cart".into()],
        uncommitted: false,
        pull_request: Some(PullRequest { title: "Mend the cart".into(), merged: true }),
        gh_calls: vec!["pr create --title Mend the cart".into()],
        tests: Some(Tested {
            before: status(&[("adds", TestStatus::Fail), ("prints", TestStatus::Pass)]),
            after: status(&[("adds", TestStatus::Pass), ("prints", TestStatus::Pass)]),
        }),
        commands: BTreeMap::from([(
            "make lint".into(),
            CommandEnd { code: Some(2), output: "1 warning".into() },
        )]),
        judged: BTreeMap::new(),
        judge_tokens: None,
        tokens: Some(Tokens { input: 900, cached: 0, output: 100 }),
        cost_usd: None,
        turns: Some(3),
        replay: None,
    }
}

fn read(yaml: &str) -> Result<Assertion, String> {
    let file: AssertionFile = rehearsal_core::yaml::from_str(yaml).map_err(|error| error.to_string())?;
    check_of(&file)
}

/// What came of one assertion on a trial, as a word and a reason.
fn told(yaml: &str, trial: &Trial) -> String {
    let (graded, _) = grade(trial, &[read(yaml).unwrap()], None);
    match &graded[0].grade {
        Grade::Holds { because } => format!("holds: {because}"),
        Grade::Broken { because } => format!("broken: {because}"),
        Grade::Unknown { because } => format!("unknown: {because}"),
    }
}

#[test]
fn each_assertion_holds_for_what_it_is_about_and_breaks_for_what_it_is_not() {
    let table = [
        ("{ type: contains, value: Found 5 }", "holds: the final text contains `Found 5`"),
        ("{ type: icontains, value: ALL IS WELL }", "holds: the final text contains `ALL IS WELL`"),
        (
            "{ type: contains-all, value: [Found, lost] }",
            "broken: the final text does not contain `lost`: \"Found 5 files.⏎All is well.\"",
        ),
        ("{ type: contains-any, value: [lost, Found] }", "holds: the final text contains `Found`"),
        ("{ type: output_matches, value: files }", "holds: the final text contains `files`"),
        ("{ type: equals, value: no }", "broken: the final text is \"Found 5 files.⏎All is well.\""),
        (
            "{ type: starts-with, value: Found }",
            "holds: the final text begins with \"Found 5 files.⏎All is well.\"",
        ),
        ("{ type: regex, value: 'Found \\d+' }", "holds: `Found \\d+` matches \"Found 5\""),
        ("{ type: is-json }", "broken: the final text is not JSON: expected value at line 1 column 1"),
        ("{ type: no_errors }", "holds: the final text tells of no error"),
        ("{ type: trajectory_contains, value: [search, code] }", "holds: search → code"),
        ("{ type: trajectory_contains, value: [review] }", "broken: `review` did not work: search → code"),
        (
            "{ type: 'trajectory:tool-used', value: 'edit_*' }",
            "holds: `edit_*` was used 1 times, 1 or more wanted",
        ),
        (
            "{ type: 'not-trajectory:tool-used', value: bash }",
            "holds: `bash` was used 0 times, 1 or more wanted",
        ),
        (
            "{ type: 'trajectory:tool-args-match', value: { name: edit_file, args: { path: src/cart.rs } } }",
            "holds: `edit_file` was called with \"{\"path\":\"src/cart.rs\",\"old\":\"a\",\"new\":\"b\"}\"",
        ),
        (
            "{ type: 'trajectory:tool-args-match', value: { name: bash, args: {} } }",
            "broken: `bash` was never called",
        ),
        (
            "{ type: 'trajectory:tool-sequence', value: [glob, run_tests] }",
            "holds: glob → edit_file → run_tests",
        ),
        (
            "{ type: 'trajectory:tool-sequence', value: { steps: [glob, run_tests], mode: exact } }",
            "broken: glob → edit_file → run_tests",
        ),
        ("{ type: 'trajectory:step-count', value: { max: 2 } }", "broken: 3 steps, at most 2 wanted"),
        (
            "{ type: files_modified, value: 2 }",
            "holds: 2 files are another, 2 wanted: src/cart.rs, tests/cart.rs",
        ),
        ("{ type: files-created, value: 'tests/*.rs' }", "holds: 1 new files"),
        (
            "{ type: files-created, value: 'src/*.rs' }",
            "broken: no new file is `src/*.rs`: src/cart.rs, tests/cart.rs",
        ),
        ("{ type: files-untouched, value: 'tests/**' }", "broken: `tests/cart.rs` was to stay as it is"),
        (
            "{ type: diff-scope, value: ['src/**'] }",
            "broken: `tests/cart.rs` is outside of what was to change",
        ),
        ("{ type: diff-contains, value: 'sum\\(' }", "holds: the difference has \"sum(\""),
        ("{ type: command, value: make lint }", "broken: exit status 2, 0 wanted: \"1 warning\""),
        ("{ type: command, value: make all }", "unknown: the command was not run"),
        ("{ type: tests, value: { fail_to_pass: [adds], pass_to_pass: all } }", "holds: 2 tests pass"),
        ("{ type: tests, value: { fail_to_pass: [multiplies] } }", "broken: `multiplies` is not there"),
        (
            "{ type: tests, value: { fail_to_pass: [prints] } }",
            "unknown: `prints` passed before: the case does not show what it is to show",
        ),
        ("{ type: git, value: { commits: 1, clean: true, subject: '^Mend' } }", "holds: 1 commits"),
        ("{ type: pull-request, value: { merged: true } }", "holds: the pull request is \"Mend the cart\""),
        ("{ type: gh-called, value: '^pr create' }", "holds: called: pr create --title Mend the cart"),
        (
            "{ type: step-order, value: { after: edit, comes: test } }",
            "holds: test comes after the last edit",
        ),
        (
            "{ type: step-order, value: { after: test, comes: edit } }",
            "broken: edit does not come after the last test",
        ),
        ("{ type: no-loops }", "holds: `glob` was called 1 times in a row with the same, at most 3 wanted"),
        ("{ type: max-tokens, value: 999 }", "broken: 1000 tokens, at most 999 wanted"),
        ("{ type: max-turns, value: 3 }", "holds: 3 turns, at most 3 wanted"),
        ("{ type: latency, threshold: 1000 }", "broken: 1200 milliseconds, at most 1000 wanted"),
        ("{ type: cost, threshold: 0.5 }", "unknown: the agent does not tell its cost"),
        ("{ type: replay-exact }", "unknown: it was no replay"),
        (
            "{ type: llm-rubric, value: is it kind? }",
            "unknown: needs a judge: ask it with --live, or --record it for --replay",
        ),
    ];
    for (yaml, expected) in table {
        assert_eq!(told(yaml, &trial()), expected, "{yaml}");
    }
}

#[test]
fn every_name_that_is_known_is_in_the_table_above() {
    let here = include_str!("tests.rs");
    for (name, _) in crate::assertion::NAMES {
        let underscored = name.replace('-', "_");
        let found = [(*name).to_owned(), underscored]
            .iter()
            .any(|name| here.contains(&format!("type: {name}")) || here.contains(&format!("type: '{name}'")));
        assert!(found, "{name} is not tried");
    }
}

#[test]
fn what_is_written_wrong_is_told_with_what_was_meant() {
    let error = |yaml| read(yaml).unwrap_err();
    assert_eq!(
        error("{ type: contians, value: a }"),
        "unknown assertion `contians`; did you mean `contains`?"
    );
    assert_eq!(
        error("{ type: regex, value: '(' }"),
        "`regex`: `(` is not a regular expression: unclosed group"
    );
    assert_eq!(
        error("{ type: files-modified, value: many }"),
        "`files-modified`: `value` must be a whole number or `{ min: …, max: … }`"
    );
    assert_eq!(
        error("{ type: files-modified, value: { min: 3, max: 1 } }"),
        "`files-modified`: `min` (3) is more than `max` (1)"
    );
    assert_eq!(error("{ type: tests, value: {} }"), "`tests`: it names no test, so it could not fail");
    assert_eq!(error("{ type: git, value: {} }"), "`git`: it says nothing, so it could not fail");
    assert_eq!(
        error("{ type: llm-rubric, value: { rubric: kind, votes: 2 } }"),
        "`llm-rubric`: `votes` must be odd, so that there is a majority, not 2"
    );
    assert_eq!(error("{ type: contains-all, value: [] }"), "`contains-all`: `value` must name at least one");
    assert_eq!(
        error("{ type: step-order, value: { after: edit, comes: tests } }"),
        "`step-order`: `value`: unknown variant `tests`, expected one of `read`, `edit`, `test`, `run`, `other`"
    );
}

#[test]
fn the_same_call_again_and_again_is_a_loop() {
    let mut looping = trial();
    let call = looping.steps[1].clone();
    looping.steps.splice(1..1, vec![call; 4]);
    assert_eq!(
        told("{ type: no-loops, value: 3 }", &looping),
        "broken: `glob` was called 5 times in a row with the same, at most 3 wanted"
    );
}

#[test]
fn json_may_stand_in_a_fence_and_must_conform() {
    let mut answered = trial();
    answered.output = "```json\n{\"tasks\": []}\n```".into();
    let schema = "{ type: is-json, value: { type: object, required: [tasks], properties: { tasks: { type: array, minItems: 1 } } } }";
    assert_eq!(told("{ type: is-json }", &answered), "holds: the final text is JSON");
    assert_eq!(
        told(schema, &answered),
        "broken: the JSON does not conform at /tasks: minimum 1 items required, but got 0 items"
    );
}

#[test]
fn judges_decide_by_majority_and_one_that_cannot_be_read_decides_nothing() {
    let rubric = "{ type: llm-rubric, value: { rubric: kind, votes: 3 } }";
    let pass = || Vote::Pass { reason: "friendly".into() };
    let fail = || Vote::Fail { reason: "rude".into() };
    let judged = |votes: Vec<Vote>| Trial { judged: BTreeMap::from([("kind".to_owned(), votes)]), ..trial() };
    assert_eq!(told(rubric, &judged(vec![pass(), fail(), pass()])), "holds: 2 of 3 judges agree: \"rude\"");
    assert_eq!(told(rubric, &judged(vec![fail(), fail(), pass()])), "broken: 1 of 3 judges agree: \"rude\"");
    let junk = Vote::Unreadable { reason: "no JSON".into() };
    assert_eq!(
        told(rubric, &judged(vec![pass(), pass(), junk])),
        "unknown: the judge could not be read: no JSON"
    );
}

#[test]
fn a_replay_that_differs_is_told() {
    let replay =
        Replay { exact: false, differences: vec!["request 2 differs at /messages/3".into()], missed: 1 };
    let replayed = Trial { replay: Some(replay), ..trial() };
    assert_eq!(told("{ type: replay-exact }", &replayed), "broken: request 2 differs at /messages/3");
}

fn verdict_of(trial: &Trial, yamls: &[&str], threshold: Option<f64>) -> Verdict {
    let assertions: Vec<Assertion> = yamls.iter().map(|yaml| read(yaml).unwrap()).collect();
    grade(trial, &assertions, threshold).1
}

#[test]
fn what_the_world_did_to_a_run_is_an_error_and_no_failure() {
    let broken = &["{ type: contains, value: nothing like it }"];
    assert_eq!(verdict_of(&trial(), broken, None), Verdict::Fail);
    for outcome in [Outcome::Overloaded, Outcome::RateLimited { until: None }, Outcome::Cancelled] {
        assert_eq!(verdict_of(&Trial { outcome, ..trial() }, broken, None), Verdict::Error);
    }
    let crashed = Trial { outcome: Outcome::crashed(Exit::Code(1)), ..trial() };
    assert_eq!(verdict_of(&crashed, &["{ type: no-errors }"], None), Verdict::Fail);
}

#[test]
fn with_a_threshold_weights_decide_and_without_one_all_must_hold() {
    let half = &["{ type: contains, value: Found, weight: 3 }", "{ type: contains, value: lost }"];
    assert_eq!(verdict_of(&trial(), half, None), Verdict::Fail);
    assert_eq!(verdict_of(&trial(), half, Some(0.75)), Verdict::Pass);
    assert_eq!(verdict_of(&trial(), half, Some(0.8)), Verdict::Fail);
    let measured_only = &["{ type: contains, value: Found }", "{ type: contains, value: lost, weight: 0 }"];
    assert_eq!(verdict_of(&trial(), measured_only, None), Verdict::Pass);
}
