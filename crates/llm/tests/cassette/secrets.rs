//! What never gets into a cassette.

use insta::assert_snapshot;
use rehearsal_agent::clis::KNOWN;
use rehearsal_llm::cassette::{Cassette, Matching, Player, Secrets, lint, redacted};
use serde_json::json;

use crate::scene::{FIRST, Studio, claude_rules, play, session, stream};

const VARIABLES: [(&str, &str); 2] = [("DEPLOY_TOKEN", "hunter2-hunter2"), ("HOME", "/root")];

#[test]
fn keys_and_values_of_secret_variables_become_placeholders() {
    let studio = Studio { secrets: Secrets::of(VARIABLES), ..Studio::new() };
    let mut question = session(&FIRST).remove(0).0;
    question.body["messages"][0]["content"] =
        json!("use hunter2-hunter2 and ghp_abcdefghijklmnopqrstuvwxyz and hunter2-hunter2 again");
    studio.record(&FIRST, &[(question.clone(), stream("the token is hunter2-hunter2 I think"))]);
    let text = studio.text();
    for secret in ["hunter2", "ghp_", "sk-ant", "not-for-anyone"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("use ⟦secret:1⟧ and ⟦secret:2⟧ and ⟦secret:1⟧ again"), "{text}");
    assert!(text.contains("\"secrets\":2"), "{text}");

    let cassette = Cassette::open(&studio.path()).unwrap();
    let player =
        Player::new(cassette, Matching::Strict, &KNOWN.model_clients(), &FIRST.place(), &studio.secrets)
            .unwrap();
    play(&player, &question).unwrap();
}

#[test]
fn a_secret_that_was_missed_keeps_the_file_from_getting_its_name() {
    let studio = Studio::new();
    let recorder = {
        use rehearsal_llm::cassette::{Normaliser, Recorder};
        let ignorant = Normaliser::new(&claude_rules(), &FIRST.place(), &Secrets::default()).unwrap();
        Recorder::create(&studio.path(), "claude", None, ignorant, &Secrets::of(VARIABLES)).unwrap()
    };
    let (mut question, answer) = session(&FIRST).remove(0);
    question.body["messages"][0]["content"] = json!("hunter2-hunter2");
    crate::scene::exchange(&recorder, &question, &answer);
    assert_snapshot!(recorder.finish().unwrap_err(), @"line 2 holds the value of DEPLOY_TOKEN");
    assert_eq!(studio.files(), Vec::<String>::new());
}

#[test]
fn lint_finds_secrets_and_machines_and_redact_removes_the_secrets() {
    let studio = Studio::new();
    let mut question = session(&FIRST).remove(0).0;
    question.body["messages"][0]["content"] = json!("hunter2-hunter2 in /home/alice/x");
    studio.record(&FIRST, &[(question, stream("ok"))]);
    let secrets = Secrets::of(VARIABLES);
    let told = |path: &std::path::Path| -> Vec<String> {
        let findings = lint(path, &secrets).unwrap();
        findings
            .iter()
            .map(|finding| format!("{:?} {:?} {}", finding.severity, finding.line, finding.message))
            .collect()
    };
    assert_snapshot!(told(&studio.path()).join("\n"), @"
    Error Some(2) holds the value of DEPLOY_TOKEN
    Warning Some(2) names the home `/home/alice` of a machine
    ");
    let cassette = Cassette::open(&studio.path()).unwrap();
    let written = redacted(&cassette, &studio.path(), &secrets).unwrap();
    assert_eq!(written.secrets, 1);
    assert_snapshot!(told(&studio.path()).join("\n"), @"Warning Some(2) names the home `/home/alice` of a machine");
    assert!(studio.text().contains("⟦secret:1⟧ in /home/alice/x"));
}

#[test]
fn headers_that_are_not_allowed_are_not_kept() {
    let studio = Studio::new();
    studio.record(&FIRST, &session(&FIRST)[..1]);
    let request = studio.text().lines().find(|line| line.starts_with("{\"request\"")).unwrap().to_owned();
    let value: serde_json::Value = serde_json::from_str(&request).unwrap();
    let names: Vec<&String> = value["request"]["headers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["anthropic-version", "content-type"]);
}
