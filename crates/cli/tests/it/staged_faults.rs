//! The real agent CLIs when the vendor fails: how they end, and after how many requests.

use crate::env::TestEnv;
use crate::real_agents::agents;
use crate::staged_agents::{Actor, Played, more_agents};

const ALL_WELL: &str = "  - say: Done.\n";

fn claude(fault: &str, then: &str, vars: &[(&'static str, &'static str)]) -> Option<Played> {
    let directory = agents()?;
    let env = TestEnv::new();
    let actor = Actor::new(&env, "claude", &directory).var("CLAUDE_CODE_MAX_RETRIES", "1");
    let actor = vars.iter().fold(actor, |actor, (name, value)| actor.var(name, value));
    Some(actor.plays(&format!("turns:\n  - {fault}\n{then}")))
}

fn codex(fault: &str, then: &str, args: &[&'static str]) -> Option<Played> {
    let directory = agents()?;
    let env = TestEnv::new();
    let actor = Actor::new(&env, "codex", &directory).args(args);
    Some(actor.plays(&format!("turns:\n  - {fault}\n{then}")))
}

/// Codex tries again of itself, within a request and after a broken stream.
const NO_RETRIES: [&str; 4] = [
    "-c",
    "model_providers.rehearsal.request_max_retries=0",
    "-c",
    "model_providers.rehearsal.stream_max_retries=0",
];

#[test]
fn claude_gives_up_on_a_key_that_is_refused() {
    let fault = "{ fault: { status: { code: 401, retry: false } }, times: any }";
    let Some(played) = claude(fault, "", &[]) else { return };
    played.ends_with(1).says("\"api_error_status\":401");
}

#[test]
fn claude_waits_out_a_rate_limit() {
    let fault = "fault: { status: { code: 429, retry_after: 1s } }";
    let Some(played) = claude(fault, ALL_WELL, &[]) else { return };
    played.ends_with(0).after_requests(2).says("Done.");
}

#[test]
fn claude_tries_again_when_the_vendor_is_overloaded() {
    let Some(played) = claude("fault: { status: { code: 529 } }", ALL_WELL, &[]) else { return };
    played.ends_with(0).after_requests(2).says("Done.");
}

#[test]
fn claude_gives_up_when_the_vendor_stays_overloaded() {
    let Some(played) = claude("{ fault: { status: { code: 529 } }, times: any }", "", &[]) else { return };
    played.ends_with(1).says("\"is_error\":true");
}

#[test]
fn claude_asks_again_after_a_cut_stream() {
    let fault = "{ say: a few words that never end, fault: { cut: 3 } }";
    let Some(played) = claude(fault, ALL_WELL, &[]) else { return };
    played.ends_with(0).after_requests(2).says("Done.");
}

#[test]
fn claude_asks_again_after_a_frame_that_is_none() {
    let fault = "{ say: a few words that never end, fault: { malformed: 3 } }";
    let Some(played) = claude(fault, ALL_WELL, &[]) else { return };
    played.ends_with(0).after_requests(2).says("Done.");
}

#[test]
fn claude_does_not_wait_for_ever() {
    let patience = [("API_TIMEOUT_MS", "1000"), ("CLAUDE_CODE_MAX_RETRIES", "0")];
    let Some(played) = claude("{ fault: hang, times: any }", "", &patience) else { return };
    played.ends_with(1).says("\"is_error\":true");
}

#[test]
fn claude_stops_at_once_when_the_script_has_no_turn() {
    let Some(played) = claude("{ when: { contains: something else }, say: Never. }", "", &[]) else { return };
    // It takes any 400 for a matter of form, and tries the same in six forms; after that it does not try again.
    let played = played.ends_with(1).after_requests(6).says("no turn for this request");
    assert_eq!(played.stage_code, 3);
}

#[test]
fn codex_gives_up_on_a_key_that_is_refused() {
    let fault = "{ fault: { status: { code: 401 } }, times: any }";
    let Some(played) = codex(fault, "", &NO_RETRIES) else { return };
    played.ends_with(1).says("401");
}

#[test]
fn codex_tries_again_when_the_vendor_is_overloaded() {
    let Some(played) = codex("fault: { status: { code: 529 } }", ALL_WELL, &[]) else { return };
    played.ends_with(0).after_requests(2).says("Done.");
}

#[test]
fn codex_gives_up_on_a_rate_limit_without_an_end() {
    let fault = "{ fault: { status: { code: 429 } }, times: any }";
    let Some(played) = codex(fault, "", &NO_RETRIES) else { return };
    played.ends_with(1).says("429");
}

#[test]
fn codex_asks_again_after_a_cut_stream() {
    let fault = "{ say: a few words that never end, fault: { cut: 3 } }";
    let Some(played) = codex(fault, ALL_WELL, &[]) else { return };
    played.ends_with(0).after_requests(2).says("Done.");
}

#[test]
fn codex_does_not_wait_for_ever() {
    let fault = "{ say: a few words that never end, fault: { hang_after: 3 }, times: any }";
    let mut args = NO_RETRIES.to_vec();
    args.extend(["-c", "model_providers.rehearsal.stream_idle_timeout_ms=1000"]);
    let Some(played) = codex(fault, "", &args) else { return };
    played.ends_with(1).says("turn.failed");
}

#[test]
fn codex_stops_at_once_when_the_script_has_no_turn() {
    let Some(played) = codex("{ when: { contains: something else }, say: Never. }", "", &[]) else { return };
    let played = played.ends_with(1).after_requests(1).says("no turn for this request");
    assert_eq!(played.stage_code, 3);
}

/// The CLIs that only `./test --all` installs.
fn another(name: &'static str, fault: &str, then: &str) -> Option<Played> {
    let directory = more_agents()?;
    let env = TestEnv::new();
    Some(Actor::new(&env, name, &directory).plays(&format!("turns:\n  - {fault}\n{then}")))
}

#[test]
fn gemini_gives_up_on_a_key_that_is_refused() {
    let fault = "{ fault: { status: { code: 401 } }, times: any }";
    let Some(played) = another("gemini", fault, "") else { return };
    // What is left of the status in an exit code.
    played.ends_with(401 % 256).says("401");
}

#[test]
fn gemini_tries_again_when_the_vendor_is_overloaded() {
    let Some(played) = another("gemini", "fault: { status: { code: 529 } }", ALL_WELL) else { return };
    played.ends_with(0).says("Done.");
}

#[test]
fn gemini_stops_at_once_when_the_script_has_no_turn() {
    let fault = "{ when: { contains: something else }, say: Never. }";
    let Some(played) = another("gemini", fault, "") else { return };
    let played = played.ends_with(400 % 256).says("no turn for this request");
    assert_eq!(played.stage_code, 3);
}

#[test]
fn opencode_gives_up_on_a_key_that_is_refused() {
    let fault = "{ fault: { status: { code: 401 } }, times: any }";
    let Some(played) = another("opencode", fault, "") else { return };
    played.ends_with(1).says("401");
}

#[test]
fn opencode_tries_again_when_the_vendor_is_overloaded() {
    let Some(played) = another("opencode", "fault: { status: { code: 529 } }", ALL_WELL) else { return };
    played.ends_with(0).says("Done.");
}

#[test]
fn opencode_asks_again_after_a_cut_stream() {
    let fault = "{ say: a few words that never end, fault: { cut: 3 } }";
    let Some(played) = another("opencode", fault, ALL_WELL) else { return };
    played.ends_with(0).says("Done.");
}

#[test]
fn opencode_stops_at_once_when_the_script_has_no_turn() {
    let fault = "{ when: { contains: something else }, say: Never. }";
    let Some(played) = another("opencode", fault, "") else { return };
    let played = played.ends_with(1).says("no turn for this request");
    assert_eq!(played.stage_code, 3);
}
