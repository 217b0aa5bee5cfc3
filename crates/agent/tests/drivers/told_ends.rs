//! Ends that the formats describe, beyond the recorded ones.

use rehearsal_agent::clis::KNOWN;
use rehearsal_agent::driver::{ExplainFacts, Here, explain, parse_exit};
use rehearsal_core::{Activity, Outcome, Timestamp, WireErrorKind};
use rstest::rstest;

const NOW: Timestamp = Timestamp(1_794_772_800_000);

fn outcome(kind: &str, stdout: &str, stderr: &str, exit: i32) -> Outcome {
    let facts = ExplainFacts::default();
    let kind = kind.parse().unwrap();
    explain(kind, stdout.as_bytes(), stderr.as_bytes(), parse_exit(exit), facts, &Here::at(NOW))
        .unwrap()
        .verdict
        .outcome
}

fn name(kind: &str, stdout: &str, stderr: &str, exit: i32) -> String {
    outcome(kind, stdout, stderr, exit).name().to_string()
}

fn in_minutes(minutes: i64) -> Timestamp {
    Timestamp(NOW.0 + minutes * 60_000)
}

#[rstest]
#[case(400, "failed")]
#[case(401, "auth_failed")]
#[case(402, "quota_exhausted")]
#[case(403, "auth_failed")]
#[case(404, "failed")]
#[case(408, "unreachable")]
#[case(413, "failed")]
#[case(422, "failed")]
#[case(429, "rate_limited")]
#[case(500, "overloaded")]
#[case(502, "overloaded")]
#[case(503, "overloaded")]
#[case(504, "overloaded")]
#[case(529, "overloaded")]
fn each_http_status_means_the_same_whoever_tells_it(#[case] status: u16, #[case] expected: &str) {
    let claude = format!(
        r#"{{"is_error":true,"subtype":"success","terminal_reason":"api_error","api_error_status":{status},"result":"API Error: {status} no","type":"result"}}"#
    );
    assert_eq!(name("claude", &claude, "", 1), expected, "claude");
    let codex = format!(
        r#"{{"type":"turn.failed","error":{{"message":"unexpected status {status} Some Words: no"}}}}"#
    );
    assert_eq!(name("codex", &codex, "", 1), expected, "codex");
    let retried = format!(
        r#"{{"type":"turn.failed","error":{{"message":"exceeded retry limit, last status: {status} Some Words"}}}}"#
    );
    assert_eq!(name("codex", &retried, "", 1), expected, "codex after retries");
    let opencode = format!(
        r#"{{"type":"error","sessionID":"s","error":{{"name":"APIError","data":{{"message":"no","statusCode":{status}}}}}}}"#
    );
    assert_eq!(name("opencode", &opencode, "", 1), expected, "opencode");
    let message = format!(r#"{{\"error\":{{\"code\":{status},\"message\":\"no\",\"status\":\"X\"}}}}"#);
    let gemini = format!(
        "log\n{{\n  \"session_id\": \"s\",\n  \"error\": {{\n    \"type\": \"Error\",\n    \"message\": \"{message}\",\n    \"code\": {status}\n  }}\n}}\n"
    );
    assert_eq!(name("gemini", "", &gemini, i32::from(status % 256)), expected, "gemini");
    assert_eq!(name("gemini", "", "", i32::from(status % 256)), expected, "gemini's exit status alone");
    let line = format!(
        r#"{{"type":"result","status":"error","error":{{"type":"unknown","message":"[API Error: {message}]"}}}}"#
    );
    assert_eq!(name("gemini", &line, "", 1), expected, "gemini's stream");
}

#[rstest]
#[case(41, "auth_failed")]
#[case(42, "failed")]
#[case(44, "sandbox_unavailable")]
#[case(52, "failed")]
#[case(53, "needs_continuation")]
#[case(54, "failed")]
#[case(55, "permission_denied")]
#[case(130, "cancelled")]
#[case(1, "crashed")]
#[case(143, "crashed")]
#[case(137, "crashed")]
#[case(-9, "crashed")]
fn gemini_documents_its_exit_statuses(#[case] exit: i32, #[case] expected: &str) {
    assert_eq!(name("gemini", "", "something\n", exit), expected);
}

#[test]
fn a_used_up_plan_of_claude_tells_when_it_is_filled() {
    let events = [
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794776400,"rateLimitType":"five_hour"}}"#,
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"terminal_reason":"api_error","result":"You've hit your limit · resets 9pm (UTC)"}"#,
    ];
    let expected = Outcome::QuotaExhausted { until: Some(in_minutes(60)) };
    assert_eq!(outcome("claude", &events.join("\n"), "", 1), expected);
    assert_eq!(outcome("claude", events[1], "", 1), expected, "the message says it too");
    let allowed =
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1794776400}}"#;
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;
    assert_eq!(outcome("claude", &format!("{allowed}\n{done}"), "", 0), Outcome::Done);
}

#[test]
fn a_rate_limit_tells_how_long_to_wait() {
    let opencode = r#"{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"slow down","statusCode":429,"responseHeaders":{"retry-after":"120"}}}}"#;
    assert_eq!(outcome("opencode", opencode, "", 1), Outcome::RateLimited { until: Some(in_minutes(2)) });
    let message = r#"{\"error\":{\"code\":429,\"message\":\"slow down\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"@type\":\"x\",\"retryDelay\":\"180.5s\"}]}}"#;
    let gemini =
        format!(r#"{{"type":"result","status":"error","error":{{"type":"Error","message":"{message}"}}}}"#);
    let Outcome::RateLimited { until: Some(until) } = outcome("gemini", &gemini, "", 1) else { panic!() };
    assert_eq!(until.0 - NOW.0, 180_500);
    let codex = r#"{"type":"turn.failed","error":{"message":"stream disconnected before completion: Rate limit reached for gpt-5. Please try again in 60s."}}"#;
    assert_eq!(outcome("codex", codex, "", 1), Outcome::RateLimited { until: Some(in_minutes(1)) });
}

#[rstest]
#[case("invalid x-api-key (Status: UNAUTHENTICATED)", 145, "auth_failed")]
#[case("no access (Status: PERMISSION_DENIED)", 147, "auth_failed")]
#[case("slow down (Status: RESOURCE_EXHAUSTED)", 173, "rate_limited")]
#[case("later (Status: UNAVAILABLE)", 247, "overloaded")]
#[case("bad (Status: INVALID_ARGUMENT)", 144, "failed")]
#[case("something odd", 145, "auth_failed")]
#[case(
    "slow down]\\nPlease wait and try again later, or switch to another /auth method",
    173,
    "rate_limited"
)]
#[case(
    "slow down]\\nPlease wait and try again later. To increase your limits, switch to another /auth method",
    1,
    "rate_limited"
)]
#[case("something odd", 1, "failed")]
#[case("terminated", 1, "unreachable")]
fn gemini_formats_what_the_api_says(#[case] message: &str, #[case] exit: i32, #[case] expected: &str) {
    let line = format!(
        r#"{{"type":"result","status":"error","error":{{"type":"Error","message":"[API Error: {message}]"}}}}"#
    );
    assert_eq!(name("gemini", &line, "", exit), expected);
}

#[test]
fn a_daily_quota_is_not_a_rate_limit() {
    let message = r#"{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"violations\":[{\"quotaId\":\"GenerateRequestsPerDayPerProject\"}]},{\"retryDelay\":\"3600s\"}]}}"#;
    let gemini =
        format!(r#"{{"type":"result","status":"error","error":{{"type":"Error","message":"{message}"}}}}"#);
    assert_eq!(outcome("gemini", &gemini, "", 1), Outcome::QuotaExhausted { until: Some(in_minutes(60)) });
    let codex =
        r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again in 3 hours."}}"#;
    assert_eq!(outcome("codex", codex, "", 1), Outcome::QuotaExhausted { until: Some(in_minutes(180)) });
}

#[test]
fn what_the_model_or_a_tool_says_is_never_taken_for_an_error() {
    let words = "Error 429: rate limit exceeded, 401 Unauthorized, usage limit reached, ECONNREFUSED";
    let claude = format!(
        "{}\n{}",
        format_args!(
            r#"{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"text","text":"{words}"}}]}}}}"#
        ),
        format_args!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{words}"}}"#)
    );
    assert_eq!(outcome("claude", &claude, words, 0), Outcome::Done);
    let codex = format!(
        "{}\n{}\n{}",
        format_args!(
            r#"{{"type":"item.completed","item":{{"type":"command_execution","command":"x","aggregated_output":"{words}","exit_code":1,"status":"failed"}}}}"#
        ),
        format_args!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{words}"}}}}"#),
        r#"{"type":"turn.completed","usage":{}}"#
    );
    assert_eq!(outcome("codex", &codex, words, 0), Outcome::Done);
    let log = format!("it saw: {words}\nbye\nbye\nbye\n");
    assert_eq!(name("codex", &codex.replace("turn.completed", "turn.other"), &log, 1), "crashed");
    assert_eq!(name("claude", &log, &log, 1), "crashed", "plain text is no structure");
    assert_eq!(name("command", &log, &log, 1), "crashed");
}

#[test]
fn an_interrupted_claude_is_cancelled_and_a_broken_one_failed() {
    let result = |reason: &str| {
        format!(
            r#"{{"type":"result","subtype":"error_during_execution","is_error":true{reason},"errors":["No conversation found with session ID: x"]}}"#
        )
    };
    assert_eq!(name("claude", &result(r#","terminal_reason":"aborted_tools""#), "", 0), "cancelled");
    assert_eq!(name("claude", &result(""), "", 0), "cancelled");
    assert_eq!(name("claude", &result(""), "", 1), "failed");
}

#[test]
fn codex_says_why_without_ending_its_turn() {
    let stream = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"error\",\"message\":\"unexpected status 401 Unauthorized\"}\n";
    assert_eq!(name("codex", stream, "", 1), "auth_failed");
    let reconnecting = "{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"Reconnecting... 1/5 (unexpected status 401)\"}\n";
    assert_eq!(name("codex", reconnecting, "", -9), "crashed");
    let untrusted = "Not inside a trusted directory and --skip-git-repo-check was not specified.\n";
    assert_eq!(name("codex", "", untrusted, 1), "permission_denied");
}

#[test]
fn opencode_that_stops_at_a_refusal_was_not_allowed_to_work() {
    let step = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls"}}"#;
    let stderr = "\u{1b}[93m\u{1b}[1m! \u{1b}[0mpermission requested: edit (hello.txt); auto-rejecting\n";
    let Outcome::PermissionDenied { reason } = outcome("opencode", step, stderr, 0) else { panic!() };
    assert_eq!(reason, "permission requested: edit (hello.txt); auto-rejecting");
    assert_eq!(name("opencode", step, "", 0), "protocol_error", "nothing says why it stopped");
    assert_eq!(name("opencode", step, stderr, -9), "permission_denied");
}

#[test]
fn the_crew_tells_its_end_in_our_own_words() {
    let (success, limited) =
        (include_str!("../fixtures/crew/success.stdout"), include_str!("../fixtures/crew/err-429.stdout"));
    assert_eq!(outcome("crew", success, "", 0), Outcome::Done);
    let until = Some(rehearsal_core::Timestamp(1_800_000_000_000));
    assert_eq!(outcome("crew", limited, "", 75), Outcome::RateLimited { until });
    let end = |end: &str| success.replace("\"success\"", end);
    let timed_out = outcome("crew", &end("{\"timed_out\":{\"after_ms\":1000}}"), "", 124);
    assert_eq!(timed_out.name().as_str(), "timed_out");
    assert_eq!(name("crew", &end("\"max_turns\""), "", 6), "needs_continuation");
    assert_eq!(name("crew", &end("\"budget_reached\""), "", 8), "budget_reached");
    let unfinished = success.rsplit_once("{\"schema_version\":1,\"report\"").unwrap().0;
    assert_eq!(name("crew", unfinished, "", 0), "protocol_error");
    assert_eq!(name("crew", unfinished, "", -9), "crashed");
}

#[test]
fn events_of_a_later_version_are_passed_over() {
    let claude = "{\"type\":\"brand_new\",\"message\":\"text\"}\n{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\",\"num_turns\":\"three\"}";
    assert_eq!(outcome("claude", claude, "", 0), Outcome::Done);
    let gemini = "Loaded cached credentials.\n{\"type\":\"init\"}\n{\"type\":\"new\"}\n{\"type\":\"result\",\"status\":\"success\"}";
    assert_eq!(outcome("gemini", gemini, "", 0), Outcome::Done);
}

#[test]
fn text_that_is_json_of_another_kind_is_text() {
    for kind in KNOWN.0.iter().map(|cli| cli.name).filter(|name| *name != "command") {
        assert_eq!(outcome(kind, "{\"answer\":\"42\"}\n", "", 0), Outcome::Done, "{kind}");
        assert_eq!(outcome(kind, "{\n  \"answer\": 42\n}\n", "", 0), Outcome::Done, "{kind}");
        assert_eq!(name(kind, "{\"type\":\"resul", "", 0), "protocol_error", "{kind}");
        assert_eq!(name(kind, " \n", "", 0), "empty_output", "{kind}");
    }
}

#[test]
fn gemini_is_refused_by_its_approval_mode_in_the_stream_too() {
    let stream = r#"{"type":"tool_use","tool_name":"write_file","tool_id":"w","parameters":{"file_path":"a.txt"}}
{"type":"tool_result","tool_id":"w","status":"error","error":{"type":"tool_not_registered","message":"not found"}}
{"type":"message","role":"assistant","content":"Done.","delta":true}
{"type":"result","status":"success"}"#;
    let Outcome::PermissionDenied { reason } = outcome("gemini", stream, "", 0) else { panic!() };
    assert_eq!(reason, "`write_file` was refused (a.txt)");
}

#[test]
fn a_rate_limit_without_a_time_has_the_one_that_the_vendor_named_before() {
    let retry = |delay: u64, status: u16| {
        format!(
            r#"{{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":{delay},"error_status":{status},"error":"rate_limit"}}"#
        )
    };
    let end = r#"{"is_error":true,"subtype":"success","terminal_reason":"api_error","api_error_status":429,"result":"API Error: 429 no","duration_ms":60000,"type":"result"}"#;
    let until = |retries: &[String]| {
        let stdout = format!("{}\n{end}\n", retries.join("\n"));
        match outcome("claude", &stdout, "", 1) {
            Outcome::RateLimited { until } => until,
            other => panic!("{other}"),
        }
    };
    assert_eq!(until(&[retry(120_000, 429), retry(600_000, 429)]), Some(in_minutes(10)));
    assert_eq!(until(&[retry(600_000, 429), retry(32_000, 429)]), None, "a pause of its own");
    assert_eq!(until(&[retry(600_000, 529)]), None, "another error");
    assert_eq!(until(&[retry(u64::MAX, 429)]), None, "no vendor means that");
}

#[rstest]
#[case(
    "claude",
    "API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"}}\n",
    "",
    1,
    "auth_failed"
)]
#[case("claude", "API Error: 529 Overloaded\n", "", 1, "overloaded")]
#[case("claude", "5-hour limit reached ∙ resets 9pm\n", "", 1, "quota_exhausted")]
#[case("claude", "Not logged in · Please run /login\n", "", 1, "auth_failed")]
#[case("claude", "5-hour limit reached ∙ resets 9pm\n", "", 0, "quota_exhausted")]
#[case(
    "codex",
    "",
    "WARNING: x\nERROR: unexpected status 429 Too Many Requests: slow down\n",
    1,
    "rate_limited"
)]
#[case(
    "codex",
    "",
    "ERROR: You've hit your usage limit. Try again in 2 hours 5 minutes.\n",
    1,
    "quota_exhausted"
)]
#[case(
    "gemini",
    "",
    "[API Error: {\"error\":{\"code\":503,\"message\":\"no\",\"status\":\"UNAVAILABLE\"}}]\n",
    1,
    "overloaded"
)]
#[case(
    "opencode",
    "",
    "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mUnable to connect. Is the computer able to access the url?\n",
    1,
    "unreachable"
)]
#[case("opencode", "", "Error: Model not found: fake/no-such-model\n", 1, "crashed")]
#[case("command", "", "Error: getaddrinfo ENOTFOUND api.example.com\n", 1, "unreachable")]
#[case("command", "", "Error: getaddrinfo ENOTFOUND api.example.com\n", 0, "unreachable")]
#[case(
    "command",
    "I read about 401 Unauthorized.\nAnd about rate limits.\nThen I wrote.\nDone.\n",
    "",
    0,
    "done"
)]
#[case(
    "command",
    "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n",
    "",
    0,
    "overloaded"
)]
fn an_error_in_plain_text_is_of_its_kind_too(
    #[case] kind: &str,
    #[case] stdout: &str,
    #[case] stderr: &str,
    #[case] exit: i32,
    #[case] expected: &str,
) {
    assert_eq!(name(kind, stdout, stderr, exit), expected);
}

#[test]
fn a_plan_that_is_used_up_is_waited_for_in_the_time_zone_of_the_person() {
    let reset = |text: &str| {
        let line = format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"{text}"}}"#
        );
        match outcome("claude", &line, "", 1) {
            Outcome::QuotaExhausted { until } => until,
            other => panic!("{other}"),
        }
    };
    // It is 20:00 in UTC, where `Here::at` is, and 21:00 in Berlin.
    assert_eq!(reset("5-hour limit reached ∙ resets 9pm"), Some(in_minutes(60)));
    assert_eq!(reset("5-hour limit reached ∙ resets 11pm (Europe/Berlin)"), Some(in_minutes(120)));
    assert_eq!(reset("Claude AI usage limit reached|1794783600"), Some(in_minutes(180)));
}

#[test]
fn an_apology_in_place_of_an_answer_is_an_error_whatever_the_result_says() {
    let synthetic = r#"{"type":"assistant","error":"rate_limit","is_api_error_message":true,"message":{"role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"5-hour limit reached ∙ resets 9pm"}]}}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"5-hour limit reached ∙ resets 9pm"}"#;
    let until = Some(in_minutes(60));
    assert_eq!(
        outcome("claude", &format!("{synthetic}\n{result}"), "", 0),
        Outcome::QuotaExhausted { until }
    );
    let answer = result
        .replace("5-hour limit reached ∙ resets 9pm", "The 5-hour limit reached by users is now tested.");
    assert_eq!(outcome("claude", &answer, "", 0), Outcome::Done);
}

#[test]
fn retries_that_only_the_log_tells_are_seen() {
    let retries = |kind: &str, log: &str| {
        let mut parser = (KNOWN.named(kind).unwrap().parser)(Here::at(NOW));
        let mut out = Vec::new();
        parser.push_stderr(log.as_bytes(), &mut out);
        let report = parser.finish(None, log.as_bytes());
        let messages: Vec<String> = out
            .into_iter()
            .map(|activity| match activity {
                Activity::Retrying { message } => message,
                other => panic!("{other:?}"),
            })
            .collect();
        (messages.join("\n"), report.retrying.unwrap().kind)
    };
    let gemini = "Attempt 1 failed with status 429. Retrying with backoff... _ApiError: {\"error\":{\"code\":429}}\n    at x (file:1)\n";
    let expected = "try 1 failed with status 429: {\"error\":{\"code\":429}}";
    assert_eq!(retries("gemini", gemini), (expected.to_owned(), WireErrorKind::RateLimit { until: None }));
    let opencode = "timestamp=2026-11-19T23:07:20.466Z level=ERROR run=3b message=\"stream error\" agent=build error.error=\"AI_APICallError: Overloaded\"\ntimestamp=x level=ERROR message=other\n";
    assert_eq!(
        retries("opencode", opencode),
        ("a request failed: Overloaded".to_owned(), WireErrorKind::Overloaded)
    );
}

#[test]
fn a_success_with_another_exit_status_is_told_as_that() {
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;
    let crashed = outcome("claude", done, "", 3);
    assert_eq!(crashed.to_string(), "crashed: exit status 3: its output ends with success");
}

#[test]
fn a_crash_says_what_the_program_said() {
    let told = |kind, stderr| outcome(kind, "", stderr, 1).to_string();
    let unknown = "error: unknown option '--no-such-flag'\n";
    assert_eq!(told("claude", unknown), "crashed: exit status 1: unknown option '--no-such-flag'");
    let settings = "WARNING: no PATH\nError loading config.toml:\nconfig.toml:1:16: unclosed array\n";
    assert_eq!(
        told("codex", settings),
        "crashed: exit status 1: Error loading config.toml: config.toml:1:16: unclosed array"
    );
}

#[test]
fn a_line_that_cannot_be_read_is_quoted_without_harm() {
    let broken = outcome("claude", "{\"type\":\"resul\u{1b}[31m\u{7}", "", 0).to_string();
    assert_eq!(broken, "protocol_error: broken JSON at column 15: `{\"type\":\"resul [31m`");
    let long = format!("{{\"type\":\"{}", "x".repeat(100_000));
    assert!(outcome("claude", &long, "", 0).to_string().len() < 300);
}
