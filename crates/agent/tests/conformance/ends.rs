//! Every end that can be scripted, in the words of each CLI.

use insta::assert_snapshot;
use rehearsal_core::Outcome;

use crate::stage::{NOW, Stage};

const ENDS: &[(&str, &str)] = &[
    ("done with a promise", "- say: All is there. <promise>COMPLETE</promise>"),
    ("continue", "- say: '<promise>CONTINUE: the tests are next</promise>'"),
    ("blocked", "- say: '<promise>BLOCKED: no key</promise>'"),
    ("nothing changed", "- say: I looked around."),
    (
        "work with tools",
        "- write: { path: hello.txt, content: hi }\n- commit: { message: Say hi }\n- say: Done.",
    ),
    ("a command that fails", "- run: { command: exit 3 }\n- say: Never mind. <promise>COMPLETE</promise>"),
    (
        "a refused tool",
        "- tool: { name: SHELL, input: { command: rm }, end: refused }\n- say: I was not let.",
    ),
    ("auth", "- error: { kind: auth }"),
    ("rate limit", "- rate_limit: {}"),
    ("rate limit with retry_after", "- rate_limit: { retry_after: 30s }"),
    ("quota", "- error: { kind: quota }"),
    ("quota with a reset", "- error: { kind: quota, resets_in: 5h }"),
    ("overloaded", "- error: { kind: overloaded }"),
    ("unreachable", "- error: { kind: unreachable }"),
    ("bad request", "- error: { kind: bad_request }"),
    ("max turns", "- error: { kind: max_turns }"),
    ("budget", "- error: { kind: budget }"),
    ("crash by a signal", "- say: Working.\n- crash: { signal: kill }"),
    ("crash with a status", "- say: Working.\n- crash: { exit: 3 }"),
    ("a status that denies the result", "- say: Done. <promise>COMPLETE</promise>\n- exit: 4"),
    ("no final event", "- say: Working.\n- crash: { exit: 0 }"),
    ("broken JSON, then a proper end", "- broken_json\n- say: Done. <promise>COMPLETE</promise>"),
    ("broken JSON at the end", "- say: Working.\n- broken_json\n- crash: { exit: 0 }"),
    ("broken UTF-8", "- broken_utf8\n- say: Done. <promise>COMPLETE</promise>"),
    ("hang", "- say: Working.\n- hang"),
    ("hang without a word", "- hang"),
    ("linger", "- say: Done. <promise>COMPLETE</promise>\n- linger\n- hang"),
    ("flood of lines", "- flood: { megabytes: 4 }\n- say: Done. <promise>COMPLETE</promise>"),
    (
        "flood without a line",
        "- flood: { megabytes: 4, newline: false }\n- say: Done. <promise>COMPLETE</promise>",
    ),
];

/// What each calls its shell: gemini hides its own tools, and only those, when they are not allowed.
fn shell(kind: &str) -> &'static str {
    match kind {
        "gemini" => "run_shell_command",
        "opencode" | "crew" => "bash",
        _ => "Bash",
    }
}

/// One line an end. Times are told from now on.
async fn table(kind: &str) -> String {
    let mut lines = Vec::new();
    for (name, actions) in ENDS {
        let report = Stage::new().play(kind, &actions.replace("SHELL", shell(kind))).await;
        let outcome = &report.verdict.outcome;
        let until = outcome.until().map(|until| format!(" for {} s", until.since(NOW).as_secs()));
        let told = match outcome {
            Outcome::TimedOut { limit, .. } => format!("timed_out: {limit:?}"),
            // Where it is cut depends on the lengths of random ids and of paths.
            Outcome::ProtocolError { reason } => {
                format!("protocol_error: {}", reason.split(" after column").next().unwrap_or_default())
            }
            outcome => outcome.to_string(),
        };
        lines.push(format!("{name}: {told}{}", until.unwrap_or_default()));
    }
    lines.join("\n")
}

#[tokio::test]
async fn crew() {
    assert_snapshot!(table("crew").await, @r#"
    done with a promise: done
    continue: continue: the tests are next
    blocked: blocked: no key
    nothing changed: no_changes
    work with tools: done
    a command that fails: done
    a refused tool: permission_denied: `bash` was refused (rm)
    auth: auth_failed: invalid x-api-key
    rate limit: rate_limited
    rate limit with retry_after: rate_limited for 30 s
    quota: quota_exhausted
    quota with a reset: quota_exhausted for 18000 s
    overloaded: overloaded
    unreachable: unreachable: Connection refused
    bad request: failed: invalid request
    max turns: needs_continuation: the turn limit was reached
    budget: budget_reached: the agent's own budget limit was reached
    crash by a signal: crashed: signal 9 (SIGKILL)
    crash with a status: crashed: exit status 3
    a status that denies the result: crashed: exit status 4: its output ends with success
    no final event: protocol_error: the output ended without its final event
    broken JSON, then a proper end: done
    broken JSON at the end: protocol_error: the JSON is cut off
    broken UTF-8: done
    hang: timed_out: Idle
    hang without a word: timed_out: Idle
    linger: done
    flood of lines: done
    flood without a line: done
    "#);
}

/// It waits for as long as it is told by itself before it gives up, so a rate limit leaves no time to wait for.
#[tokio::test]
async fn claude() {
    assert_snapshot!(table("claude").await, @r"
    done with a promise: done
    continue: continue: the tests are next
    blocked: blocked: no key
    nothing changed: no_changes
    work with tools: done
    a command that fails: done
    a refused tool: permission_denied: `Bash` was refused (rm)
    auth: auth_failed: Invalid API key · Fix external API key
    rate limit: rate_limited
    rate limit with retry_after: rate_limited
    quota: quota_exhausted
    quota with a reset: quota_exhausted for 18000 s
    overloaded: overloaded
    unreachable: unreachable: API Error: Connection refused (ECONNREFUSED)
    bad request: failed: API Error: 400 bad request
    max turns: needs_continuation: the turn limit was reached
    budget: budget_reached: the agent's own budget limit was reached
    crash by a signal: crashed: signal 9 (SIGKILL)
    crash with a status: crashed: exit status 3
    a status that denies the result: crashed: exit status 4: its output ends with success
    no final event: protocol_error: the output ended without its final event
    broken JSON, then a proper end: done
    broken JSON at the end: protocol_error: the JSON is cut off
    broken UTF-8: done
    hang: timed_out: Idle
    hang without a word: timed_out: Idle
    linger: done
    flood of lines: done
    flood without a line: done
    ");
}

/// A refused tool leaves no trace in its output. It has no limits of its own: such a script is wrong, and the
/// stand-in says so.
#[tokio::test]
async fn codex() {
    assert_snapshot!(table("codex").await, @r"
    done with a promise: done
    continue: continue: the tests are next
    blocked: blocked: no key
    nothing changed: no_changes
    work with tools: done
    a command that fails: done
    a refused tool: no_changes
    auth: auth_failed: unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1/v1/responses
    rate limit: rate_limited
    rate limit with retry_after: rate_limited for 30 s
    quota: quota_exhausted
    quota with a reset: quota_exhausted for 18000 s
    overloaded: overloaded
    unreachable: unreachable: stream disconnected before completion: error sending request for url (http://127.0.0.1/v1/responses)
    bad request: failed: bad request
    max turns: crashed: exit status 2: mock-agent: codex has no such end as `max_turns`
    budget: crashed: exit status 2: mock-agent: codex has no such end as `budget`
    crash by a signal: crashed: signal 9 (SIGKILL)
    crash with a status: crashed: exit status 3
    a status that denies the result: crashed: exit status 4: its output ends with success
    no final event: protocol_error: the output ended without its final event
    broken JSON, then a proper end: done
    broken JSON at the end: protocol_error: the JSON is cut off
    broken UTF-8: done
    hang: timed_out: Idle
    hang without a word: timed_out: Idle
    linger: done
    flood of lines: done
    flood without a line: done
    ");
}

#[tokio::test]
async fn gemini() {
    assert_snapshot!(table("gemini").await, @r"
    done with a promise: done
    continue: continue: the tests are next
    blocked: blocked: no key
    nothing changed: no_changes
    work with tools: done
    a command that fails: done
    a refused tool: permission_denied: `run_shell_command` was refused (rm)
    auth: auth_failed: [API Error: invalid x-api-key]
    rate limit: rate_limited
    rate limit with retry_after: rate_limited for 30 s
    quota: quota_exhausted
    quota with a reset: quota_exhausted for 18000 s
    overloaded: overloaded
    unreachable: unreachable: [API Error: exception TypeError: fetch failed sending request]
    bad request: failed: [API Error: bad request]
    max turns: needs_continuation: the turn limit was reached
    budget: crashed: exit status 2: mock-agent: gemini has no such end as `budget`
    crash by a signal: crashed: signal 9 (SIGKILL)
    crash with a status: crashed: exit status 3
    a status that denies the result: crashed: exit status 4: its output ends with success
    no final event: protocol_error: the output ended without its final event
    broken JSON, then a proper end: done
    broken JSON at the end: protocol_error: the JSON is cut off
    broken UTF-8: done
    hang: timed_out: Idle
    hang without a word: timed_out: Idle
    linger: done
    flood of lines: done
    flood without a line: done
    ");
}

#[tokio::test]
async fn opencode() {
    assert_snapshot!(table("opencode").await, @r"
    done with a promise: done
    continue: continue: the tests are next
    blocked: blocked: no key
    nothing changed: no_changes
    work with tools: done
    a command that fails: done
    a refused tool: permission_denied: `bash` was refused (rm)
    auth: auth_failed: invalid x-api-key
    rate limit: rate_limited
    rate limit with retry_after: rate_limited for 30 s
    quota: quota_exhausted
    quota with a reset: quota_exhausted for 18000 s
    overloaded: overloaded
    unreachable: unreachable: Unable to connect. Is the computer able to access the url?
    bad request: failed: bad request
    max turns: crashed: exit status 2: mock-agent: opencode has no such end as `max_turns`
    budget: crashed: exit status 2: mock-agent: opencode has no such end as `budget`
    crash by a signal: crashed: signal 9 (SIGKILL)
    crash with a status: crashed: exit status 3
    a status that denies the result: crashed: exit status 4: its output ends with success
    no final event: protocol_error: the output ended without its final event
    broken JSON, then a proper end: done
    broken JSON at the end: protocol_error: the JSON is cut off
    broken UTF-8: done
    hang: timed_out: Idle
    hang without a word: timed_out: Idle
    linger: done
    flood of lines: done
    flood without a line: done
    ");
}
