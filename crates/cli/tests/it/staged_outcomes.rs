//! What becomes of a run when the vendor fails: the real agent CLIs against a stage with faults, as one table.

use std::sync::Mutex;

use insta::assert_snapshot;
use rehearsal_core::Outcome;
use serde_json::Value;

use crate::env::TestEnv;
use crate::real_agents::agents;
use crate::stage::OpenStage;
use crate::staged_agents::more_agents;

/// Every fault, with what the stage does.
const FAULTS: [(&str, &str); 12] = [
    ("429", "fault: { status: { code: 429 } }"),
    ("429, retry after 10 min", "fault: { status: { code: 429, retry_after: 10m } }"),
    ("529", "fault: { status: { code: 529 } }"),
    ("500", "fault: { status: { code: 500 } }"),
    ("401", "fault: { status: { code: 401, message: invalid key } }"),
    ("403", "fault: { status: { code: 403, message: no access } }"),
    ("400, unknown model", "fault: { status: { code: 400, message: 'model: no-such-model' } }"),
    ("404, unknown model", "fault: { status: { code: 404, message: 'model: no-such-model' } }"),
    ("stream cut", "say: a few words that never end, fault: { cut: 3 }"),
    ("stream malformed", "say: a few words that never end, fault: { malformed: 3 }"),
    ("no answer", "fault: hang"),
    ("connection refused", ""),
];

/// Whoever does not end by itself is ended.
struct Patience {
    /// Without a word, where it is known to wait for longer than anyone would.
    stuck: &'static str,
    /// In all. A busy machine needs seconds for what takes one.
    total: &'static str,
}

/// The cases of a table, played several at once; they mostly wait.
fn table(clis: &[(&'static str, String)], patience: &Patience) -> String {
    let cases: Vec<_> = FAULTS.iter().flat_map(|fault| clis.iter().map(move |cli| (*fault, cli))).collect();
    let (next, rows) = (Mutex::new(cases.iter().enumerate()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let Some((number, ((name, fault), (cli, directory)))) = next.lock().unwrap().next()
                    else {
                        return;
                    };
                    let outcome = outcome(cli, directory, fault, patience);
                    rows.lock().unwrap().push((number, [(*name).to_owned(), (*cli).to_owned(), outcome]));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort();
    let row = |(_, [fault, cli, outcome]): &(usize, [String; 3])| format!("{fault:25}{cli:10}{outcome}\n");
    rows.iter().map(row).collect()
}

/// What a run of this CLI with this fault came to, as a person sees it.
fn outcome(cli: &'static str, directory: &str, fault: &str, patience: &Patience) -> String {
    let env = TestEnv::outside_tmp().session("greet").task("Greet the world");
    let stage_env = TestEnv::without_repository();
    let turns = if fault.is_empty() {
        "turns: []\n".to_owned()
    } else {
        format!("turns:\n  - {{ {fault}, times: any }}\n")
    };
    let stage = OpenStage::open(&stage_env, &turns);
    let url = stage.url().to_owned();
    configure(&env, cli, directory, stage.setup(cli));
    if fault.is_empty() {
        drop(stage.close());
    }
    let is_stuck = fault.contains("hang") || fault.contains("retry_after");
    let idle = if is_stuck { patience.stuck } else { patience.total };
    let limits = ["--idle-timeout", idle, "--timeout", patience.total];
    env.run(&[&["run", "--iterations=1", "--max-wait=0s"], &limits[..]].concat());
    let Some(run) = env.runs().pop() else { return "no run".to_owned() };
    let run = env.json(&["runs", "show", &run]);
    let end = &run["run"]["end"];
    let outcome: Outcome = serde_json::from_value(end["verdict"]["outcome"].clone()).unwrap();
    let tries = end["tries"].as_u64().unwrap_or(1);
    let until = if outcome.until().is_some() { ", and says until when" } else { "" };
    let tries = if tries > 1 { format!(" ({tries} tries)") } else { String::new() };
    let text = match &outcome {
        Outcome::TimedOut { limit, .. } => format!("timed_out: {limit:?}").to_lowercase(),
        other => other.to_string(),
    };
    let text = text.replace(&url, "[URL]").replace(url.trim_start_matches("http://"), "[URL]");
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(110).collect();
    format!("{}{until}{tries}", text.trim_end())
}

fn configure(env: &TestEnv, cli: &str, directory: &str, setup: &Value) {
    if ["gemini", "opencode"].contains(&cli) {
        assert!(env.has_tool("node"));
    }
    let mut variables: serde_json::Map<String, Value> = setup["variables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].clone()))
        .collect();
    variables.insert("CLAUDE_CODE_MAX_RETRIES".to_owned(), "0".into());
    let retries = |argument: &Value| {
        let argument = argument.as_str().unwrap();
        let fast = "wire_api=\"responses\",request_max_retries=0,stream_max_retries=0";
        argument.replace("wire_api=\"responses\"", fast)
    };
    let arguments: Vec<String> = setup["arguments"].as_array().unwrap().iter().map(retries).collect();
    let arguments = serde_json::to_string(&arguments).unwrap();
    let profile = format!(
        "agents:\n  implementer:\n    driver: {cli}\n    program: {directory}/{cli}\n    sandbox: off\n    args: {arguments}\n    env: {}\n",
        Value::Object(variables)
    );
    env.file(".rehearsal/config.yaml", profile).commit("Configure");
    for file in setup["files"].as_array().unwrap() {
        let path = env.scratch.join("home").join(file[0].as_str().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let fast = r#""general":{"maxAttempts":1,"retryFetchErrors":false,"#;
        std::fs::write(path, file[1].as_str().unwrap().replace("\"general\":{", fast)).unwrap();
    }
}

#[test]
fn every_fault_of_a_vendor_has_its_outcome() {
    let Some(directory) = agents() else { return };
    let patience = Patience { stuck: "12s", total: "60s" };
    let table = table(&[("claude", directory.clone()), ("codex", directory)], &patience);
    assert_snapshot!(table, @r"
    429                      claude    rate_limited (3 tries)
    429                      codex     rate_limited (3 tries)
    429, retry after 10 min  claude    rate_limited (3 tries)
    429, retry after 10 min  codex     rate_limited (3 tries)
    529                      claude    overloaded (3 tries)
    529                      codex     overloaded (3 tries)
    500                      claude    overloaded (3 tries)
    500                      codex     overloaded (3 tries)
    401                      claude    auth_failed: Failed to authenticate. API Error: 401 invalid key
    401                      codex     auth_failed: unexpected status 401 Unauthorized: invalid key, url: [URL]/v1/responses
    403                      claude    auth_failed: Failed to authenticate. API Error: 403 no access
    403                      codex     auth_failed: unexpected status 403 Forbidden: no access, url: [URL]/v1/responses
    400, unknown model       claude    failed: API Error: 400 model: no-such-model
    400, unknown model       codex     failed: model: no-such-model
    404, unknown model       claude    failed: There's an issue with the selected model (claude-opus-5-5). It may not exist or you may not have acces
    404, unknown model       codex     failed: unexpected status 404 Not Found: model: no-such-model, url: [URL]/v1/responses
    stream cut               claude    unreachable: API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again. (3 tries)
    stream cut               codex     unreachable: stream disconnected before completion: Transport error: network error: error decoding response bo (3 tries)
    stream malformed         claude    no_changes
    stream malformed         codex     unreachable: stream disconnected before completion: stream closed before response.completed (3 tries)
    no answer                claude    timed_out: idle
    no answer                codex     timed_out: idle
    connection refused       claude    unreachable: API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED) (3 tries)
    connection refused       codex     unreachable: Connection failed: error sending request (3 tries)
    ");
}

#[test]
fn every_fault_of_a_vendor_has_its_outcome_with_gemini_and_opencode() {
    let Some(directory) = more_agents() else { return };
    let patience = Patience { stuck: "45s", total: "60s" };
    let table = table(&[("gemini", directory.clone()), ("opencode", directory)], &patience);
    assert_snapshot!(table, @r#"
    429                      gemini    rate_limited (3 tries)
    429                      opencode  unreachable: a request failed: this error is in the script
    429, retry after 10 min  gemini    rate_limited (3 tries)
    429, retry after 10 min  opencode  unreachable: a request failed: this error is in the script
    529                      gemini    overloaded (3 tries)
    529                      opencode  unreachable: a request failed: this error is in the script
    500                      gemini    overloaded (3 tries)
    500                      opencode  unreachable: a request failed: this error is in the script
    401                      gemini    auth_failed: invalid key
    401                      opencode  auth_failed: invalid key
    403                      gemini    auth_failed: no access
    403                      opencode  auth_failed: no access
    400, unknown model       gemini    failed: model: no-such-model
    400, unknown model       opencode  failed: model: no-such-model
    404, unknown model       gemini    failed: [API Error: model: no-such-model]
    404, unknown model       opencode  failed: model: no-such-model
    stream cut               gemini    unreachable: [API Error: terminated] (3 tries)
    stream cut               opencode  unreachable: a request failed: Cannot connect to API: The socket connection was closed unexpectedly. For more
    stream malformed         gemini    no_changes
    stream malformed         opencode  protocol_error: JSON parsing failed: Text: {"id":"msg_b7dab2780c94edcc2ef73ab3","object":"chat.completion.chun
    no answer                gemini    timed_out: idle
    no answer                opencode  timed_out: idle
    connection refused       gemini    unreachable: [API Error: exception TypeError: fetch failed sending request] (3 tries)
    connection refused       opencode  unreachable: a request failed: Cannot connect to API: Unable to connect. Is the computer able to access the ur
    "#);
}
