use rstest::rstest;

use super::*;
use crate::{Denial, OutcomeName};

fn success(text: &str) -> Evidence {
    Evidence {
        exit: Some(Exit::Code(0)),
        wire: WireReport {
            shape: WireShape::Structured,
            end: Some(WireEnd::Success),
            final_text: text.into(),
            ..WireReport::default()
        },
        ..Evidence::default()
    }
}

fn git(changed: bool) -> GitFacts {
    let files_changed = if changed { vec!["a.txt".into()] } else { Vec::new() };
    GitFacts { files_changed, ..GitFacts::default() }
}

fn error(kind: WireErrorKind) -> WireEnd {
    WireEnd::Error(WireError { kind, status: None, message: "told so".into() })
}

fn name(evidence: &Evidence) -> OutcomeName {
    judge(evidence).outcome.name()
}

#[rstest]
#[case::complete("<promise>COMPLETE</promise>", true, OutcomeName::Done)]
#[case::blocked("<promise>BLOCKED: no key</promise>", true, OutcomeName::Blocked)]
#[case::continues("<promise>CONTINUE: half</promise>", true, OutcomeName::Continue)]
#[case::silent_with_changes("", true, OutcomeName::Done)]
#[case::silent_without_changes("", false, OutcomeName::NoChanges)]
fn after_a_good_end_the_signal_and_git_decide(
    #[case] text: &str,
    #[case] changed: bool,
    #[case] expected: OutcomeName,
) {
    assert_eq!(name(&Evidence { git: Some(git(changed)), ..success(text) }), expected);
}

#[test]
fn a_structured_error_is_believed_whatever_the_exit_says() {
    for exit in [Exit::Code(0), Exit::Code(1)] {
        let mut evidence = Evidence { exit: Some(exit), ..success("<promise>COMPLETE</promise>") };
        evidence.wire.end = Some(error(WireErrorKind::RateLimit { until: None }));
        assert_eq!(name(&evidence), OutcomeName::RateLimited);
    }
}

#[test]
fn words_alone_do_not_make_a_rate_limit() {
    let evidence = success("HTTP 429: rate limit exceeded, try again later");
    assert_eq!(name(&evidence), OutcomeName::Done);
}

#[test]
fn an_error_that_we_caused_by_stopping_it_is_our_stop() {
    let mut evidence = success("");
    evidence.stop = Some(Stop::TimedOut { limit: TimeLimit::Total, after_ms: 7 });
    evidence.wire.end = Some(error(WireErrorKind::Interrupted));
    assert_eq!(name(&evidence), OutcomeName::TimedOut);
}

#[test]
fn a_result_that_came_before_the_time_limit_counts() {
    let evidence = Evidence {
        exit: Some(Exit::Signal(9)),
        stop: Some(Stop::TimedOut { limit: TimeLimit::Total, after_ms: 7 }),
        ..success("<promise>COMPLETE</promise>")
    };
    assert_eq!(name(&evidence), OutcomeName::Done);
}

#[test]
fn a_crash_after_a_success_is_a_crash() {
    let evidence = Evidence { exit: Some(Exit::Signal(11)), ..success("done") };
    assert_eq!(name(&evidence), OutcomeName::Crashed);
}

#[test]
fn the_result_file_of_this_run_beats_the_signal() {
    let mut evidence = success("<promise>COMPLETE</promise>");
    let file = ResultFile {
        decision: Some(ReportedDecision::Reject),
        comment: Some("no tests".into()),
        ..ResultFile::default()
    };
    evidence.result_file = Some(Ok(file));
    assert_eq!(judge(&evidence).outcome, Outcome::Rejected { comment: "no tests".into() });
    evidence.result_file = Some(Err(ResultFileError { reason: "line 1".into() }));
    assert_eq!(judge(&evidence).outcome.to_string(), "protocol_error: `result.json` cannot be used: line 1");
}

#[test]
fn a_refused_tool_is_no_success_unless_something_changed_or_only_looking_was_asked() {
    let mut evidence = success("Done. <promise>COMPLETE</promise>");
    evidence.wire.denials = vec![Denial { tool: "Write".into(), detail: "a.txt".into() }];
    assert_eq!(judge(&evidence).outcome.to_string(), "permission_denied: `Write` was refused (a.txt)");
    assert_eq!(name(&Evidence { git: Some(git(true)), ..evidence.clone() }), OutcomeName::Done);
    assert_eq!(name(&Evidence { read_only: true, ..evidence }), OutcomeName::Done);
}

#[test]
fn an_output_that_stops_short_is_a_protocol_error_and_none_at_all_is_empty() {
    let mut evidence = success("");
    evidence.wire.end = None;
    assert_eq!(name(&evidence), OutcomeName::ProtocolError);
    evidence.wire.shape = WireShape::Empty;
    assert_eq!(name(&evidence), OutcomeName::EmptyOutput);
}

#[test]
fn the_evidence_is_told_strongest_first() {
    let evidence = Evidence { git: Some(git(true)), ..success("<promise>COMPLETE</promise>") };
    assert_eq!(
        judge(&evidence).because,
        [
            "the structured output ends with success",
            "exit status 0",
            "the final text says COMPLETE",
            "git: 0 new commits, 1 files changed",
        ]
    );
}

#[test]
fn time_that_went_by_in_retries_is_what_they_failed_with() {
    let evidence = |kind, status| {
        let retrying = Some(WireError { kind, status, message: "try 3 of 10".into() });
        let wire = WireReport { shape: WireShape::Structured, retrying, ..WireReport::default() };
        let stop = Some(Stop::TimedOut { limit: TimeLimit::Idle, after_ms: 1000 });
        Evidence { exit: Some(Exit::Signal(15)), stop, wire, ..Evidence::default() }
    };
    assert_eq!(
        name(&evidence(WireErrorKind::RateLimit { until: None }, Some(429))),
        OutcomeName::RateLimited
    );
    assert_eq!(name(&evidence(WireErrorKind::Auth, Some(401))), OutcomeName::AuthFailed);
    assert_eq!(name(&evidence(WireErrorKind::Other, None)), OutcomeName::Unreachable);
    let told = judge(&evidence(WireErrorKind::Overloaded, Some(529))).because;
    assert_eq!(told[1], "until then it tried the same request again: try 3 of 10");
}

#[test]
fn a_runaway_is_the_agents_fault_unless_its_result_had_come() {
    let stop = Some(Stop::Runaway { reason: "it called `bash` 25 times".into() });
    let stopped = Evidence { exit: Some(Exit::Signal(15)), stop: stop.clone(), ..Evidence::default() };
    let outcome = judge(&stopped).outcome;
    assert_eq!(outcome.to_string(), "runaway: it called `bash` 25 times");
    assert_eq!(outcome.blame(), crate::Blame::Agent);
    assert!(outcome.name().costs_attempt());
    let done = Evidence { stop, ..success("<promise>COMPLETE</promise>") };
    assert_eq!(name(&done), OutcomeName::Done);
}

#[test]
fn a_success_with_a_bad_exit_status_is_told_as_both() {
    let evidence = Evidence { exit: Some(Exit::Code(4)), ..success("ok") };
    assert_eq!(judge(&evidence).outcome.to_string(), "crashed: exit status 4: its output ends with success");
}
