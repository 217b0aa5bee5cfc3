//! `mcp`: the server as clients see it: the official SDK's own client, bare lines, and the real Claude Code.

mod client;
mod crew;
mod real_claude;

use std::time::Duration;

use insta::assert_snapshot;
use rehearsal_llm::json_schema::JsonSchema;
use rmcp::model::{CallToolRequestParams, CancelledNotificationParam, ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};

use crate::env::{PROGRAM, TestEnv};
use crate::json::{schema, validate};
use crate::running::wait_until;
use client::{Lines, connected, text_of};

/// Two tests, one of which fails.
const RED: &str = "
echo 1..2
echo 'ok 1 - adds'
echo 'not ok 2 - subtracts'
echo '  ---'
echo '  message: wrong sum'
echo '  got: 3'
echo '  expected: 4'
echo '  ...'
exit 1
";

/// A test that waits until it is allowed to go on, and leaves word that it runs. Beside it a process in a session of its
/// own, as daemons are.
const WAITS: &str = "
echo 1..3
echo 'ok 1 - adds'
echo 'ok 2 - multiplies'
touch running
( trap '' TERM INT; while :; do sleep 0.05; done ) &
until [ -e go ]; do sleep 0.02; done
echo 'ok 3 - waits'
";

/// A repository whose tests are a script that speaks TAP.
fn repository(script: &str) -> TestEnv {
    let env = TestEnv::new();
    env.file("tests.sh", script)
        .file(
            ".rehearsal/config.yaml",
            "testing: { command: sh tests.sh, framework: tap, sandbox: { project: writable } }\n",
        )
        .commit("Tests");
    env
}

#[expect(clippy::needless_pass_by_value, reason = "arguments are made where the tool is called")]
fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

#[tokio::test]
async fn a_client_finds_tools_with_the_form_of_what_they_take_and_give() {
    let env = repository(RED);
    let client = connected(&env).await;
    let info = client.peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "rehearsal");
    assert!(info.instructions.as_ref().unwrap().contains("`run_tests`"));
    let tools = client.list_all_tools().await.unwrap();
    let line = |tool: &rmcp::model::Tool| {
        let takes = tool.input_schema["properties"].as_object().unwrap().keys().cloned();
        format!("{}({})", tool.name, takes.collect::<Vec<_>>().join(", "))
    };
    assert_snapshot!(tools.iter().map(line).collect::<Vec<_>>().join("\n"), @r"
    run_tests(budget, framework, retries, test_pattern, timeout_seconds)
    check(build, lint)
    test_history(last, test)
    ");
    for tool in &tools {
        assert_eq!(tool.input_schema.get("required"), None, "`{}` can be called without anything", tool.name);
        // Clients insist on objects, in both directions.
        let output = tool.output_schema.as_ref().unwrap();
        assert_eq!((&tool.input_schema["type"], &output["type"]), (&json!("object"), &json!("object")));
        assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
        for form in [&tool.input_schema, output] {
            assert!(JsonSchema::compile(&Value::Object(form.as_ref().clone())).is_ok());
        }
    }
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_failing_test_comes_back_as_words_and_as_the_document_of_test() {
    let env = repository(RED);
    let client = connected(&env).await;
    let result = client.call_tool(call("run_tests", json!({}))).await.unwrap();
    assert_eq!(result.is_error, Some(false), "red tests are an answer, no error of the tool");
    assert_snapshot!(stable(&env, &text_of(&result)), @r"
    Test execution completed:
    Framework: tap
    Status: FAILED (1/2 passed)
    Duration: [TIME]

    Failed Tests:
    1. subtracts
       Error: wrong sum

    Log: [STATE]/tests/[KEPT]/output-0.log
    ");
    let document = result.structured_content.unwrap();
    validate(&schema(&env, "test"), &document);
    assert_eq!(document["verdict"], "failed");
    assert_eq!(document["tests"][0]["name"], "subtracts", "failures are first");
    assert_eq!(document["analysis"]["failed_tests"][0]["error"], "wrong sum");
    assert!(document["agent_report"].as_str().unwrap().contains("subtracts"));
    client.cancel().await.unwrap();
    assert_eq!(env.json(&["test", "history"])["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_thousand_passed_tests_do_not_fill_the_models_context() {
    let script = "echo 1..1001; i=1; while [ $i -le 1000 ]; do echo \"ok $i - t$i\"; i=$((i+1)); done; \
                  echo 'not ok 1001 - last'; exit 1";
    let env = repository(script);
    let client = connected(&env).await;
    let result = client.call_tool(call("run_tests", json!({"budget": 200}))).await.unwrap();
    let document = result.structured_content.as_ref().unwrap();
    assert_eq!(document["summary"]["total"], 1001);
    assert_eq!(document["tests"].as_array().unwrap().len(), 20);
    assert_eq!(document["tests"][0]["name"], "last");
    assert!(text_of(&result).len() <= 800, "{}", text_of(&result));
    assert!(document.to_string().len() < 10_000, "{document:#}");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_done_is_an_answer_with_a_hint() {
    let env = repository(RED);
    let client = connected(&env).await;
    let mut told = Vec::new();
    for arguments in [
        json!({"pattern": "x"}),
        json!({"framework": "jst"}),
        json!({"timeout_seconds": 3600}),
        json!({"timeout_seconds": -1}),
    ] {
        let result = client.call_tool(call("run_tests", arguments)).await.unwrap();
        assert_eq!(result.is_error, Some(true));
        told.push(text_of(&result));
    }
    env.file(".rehearsal/config.yaml", "testing: { comand: x }\n");
    let result = client.call_tool(call("run_tests", json!({}))).await.unwrap();
    told.push(text_of(&result));
    assert_snapshot!(told.join("\n\n"), @r"
    error: `run_tests` cannot be called like this: unknown field `pattern`, expected one of `test_pattern`, `framework`, `timeout_seconds`, `retries`, `budget`
    hint: it takes `budget`, `framework`, `retries`, `test_pattern`, `timeout_seconds`; all of them may be left out

    error: unknown test framework `jst`
    hint: did you mean `jest`?

    error: 1h is too long, at most 15m: run a part of the tests at a time, by a pattern

    error: `run_tests` cannot be called like this: invalid value: integer `-1`, expected u64
    hint: it takes `budget`, `framework`, `retries`, `test_pattern`, `timeout_seconds`; all of them may be left out

    error: unknown field `comand`, expected one of framework, command, timeout, patterns, exclude, environment, retries, parallel, sandbox
      --> .rehearsal/config.yaml:1:12
    hint: did you mean `command`?
    ");
    let error = client.call_tool(call("run_test", json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("there is no tool `run_test`"), "{error}");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn outside_of_a_repository_the_server_starts_and_says_what_is_missing() {
    let env = TestEnv::without_repository();
    let client = connected(&env).await;
    let result = client.call_tool(call("test_history", json!({}))).await.unwrap();
    assert_snapshot!(env.stable().text(&text_of(&result)), @r"
    error: `[REPO]` is not inside a git repository
    hint: run `git init`, or go to a repository, or name one with `--repo DIR`
    ");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn history_tells_what_failed_since_when() {
    let env = repository(RED);
    let client = connected(&env).await;
    let none = client.call_tool(call("test_history", json!({}))).await.unwrap();
    assert_snapshot!(text_of(&none), @"No runs are remembered yet; `run_tests` makes one.");
    for _ in 0..2 {
        client.call_tool(call("run_tests", json!({}))).await.unwrap();
    }
    let result = client.call_tool(call("test_history", json!({"test": "adds", "last": 1}))).await.unwrap();
    let document = result.structured_content.unwrap();
    validate(&schema(&env, "test-history-tool"), &document);
    assert_eq!(document["runs"].as_array().unwrap().len(), 1);
    assert_eq!(document["tests"][0]["test"]["name"], "adds");
    assert_eq!(document["failing"], json!([]), "only what was asked for");
    let result = client.call_tool(call("test_history", json!({}))).await.unwrap();
    assert_eq!(result.structured_content.as_ref().unwrap()["failing"][0]["test"]["name"], "subtracts");
    assert!(text_of(&result).contains("subtracts  failing since run "), "{}", text_of(&result));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_check_comes_back_with_what_is_to_be_mended() {
    let env = repository(RED);
    env.file(
        ".rehearsal/config.yaml",
        "testing: { command: sh tests.sh, framework: tap }\ncheck: { build: [sh build.sh] }\n",
    )
    .file("build.sh", "echo 'main.c:3:5: error: expected ;' >&2; exit 1\n");
    let client = connected(&env).await;
    let result = client.call_tool(call("check", json!({}))).await.unwrap();
    assert_eq!(result.is_error, Some(false), "{}", text_of(&result));
    let document = result.structured_content.as_ref().unwrap();
    assert_eq!(document["verdict"], "failed", "{document:#}");
    assert_eq!(document["stages"][0]["diagnostics"][0]["line"], 3, "{document:#}");
    assert_eq!(document["not_run"][0]["name"], "test", "a build that fails is the end of it: {document:#}");
    assert!(text_of(&result).contains("main.c:3"), "{}", text_of(&result));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn progress_is_told_while_tests_run_and_never_after_the_answer() {
    let env = repository(WAITS);
    let client = connected(&env).await;
    let params = call("run_tests", json!({}));
    let request = ClientRequest::CallToolRequest(Request::new(params));
    let handle = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    client.service().until_told(|progress| progress.progress >= 1.0).await;
    let seen = client.service().progress();
    assert!(seen[0].message.as_ref().unwrap().contains("sh tests.sh"), "{seen:?}");
    assert_eq!(seen.last().unwrap().total, Some(3.0));
    env.file("go", "");
    handle.await_response().await.unwrap();
    let told = client.service().progress();
    assert!(told.is_sorted_by(|a, b| a.progress < b.progress), "{told:?}");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_second_call_waits_for_its_turn() {
    let env = repository(WAITS);
    let client = connected(&env).await;
    let first = client.call_tool(call("run_tests", json!({})));
    let second = async {
        wait_async(|| env.repo.join("running").exists()).await;
        let second = client.call_tool(call("run_tests", json!({})));
        let history = async {
            // Reading is not held up; the first run has not ended.
            let history = client.call_tool(call("test_history", json!({}))).await.unwrap();
            assert_eq!(history.structured_content.unwrap()["runs"], json!([]));
            env.file("go", "");
        };
        tokio::join!(second, history).0
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.unwrap().structured_content.unwrap()["verdict"], "passed");
    assert_eq!(second.unwrap().structured_content.unwrap()["verdict"], "passed");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn cancelling_stops_the_run_and_leaves_no_process() {
    let env = repository(WAITS);
    let client = connected(&env).await;
    let request = ClientRequest::CallToolRequest(Request::new(call("run_tests", json!({}))));
    let handle = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    wait_async(|| env.repo.join("running").exists()).await;
    assert!(!processes_in(&env).is_empty());
    client.notify_cancelled(CancelledNotificationParam::new(Some(handle.id.clone()), None)).await.unwrap();
    wait_async(|| processes_in(&env).is_empty()).await;
    // The server goes on.
    env.file("tests.sh", RED);
    let result = client.call_tool(call("run_tests", json!({}))).await.unwrap();
    assert_eq!(result.structured_content.unwrap()["verdict"], "failed");
    client.cancel().await.unwrap();
}

#[test]
fn a_client_that_goes_away_takes_the_run_and_the_server_with_it() {
    let env = repository(WAITS);
    let mut lines = Lines::start(&env);
    lines.begin();
    lines.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "run_tests", "arguments": {}}}));
    wait_until("the tests to run", || env.repo.join("running").exists());
    assert_eq!(lines.hang_up(), 0);
    assert_eq!(processes_in(&env), Vec::<String>::new());
}

#[test]
fn a_server_that_is_told_to_end_stops_the_run_first() {
    let env = repository(WAITS);
    let mut lines = Lines::start(&env);
    lines.begin();
    lines.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "run_tests", "arguments": {}}}));
    wait_until("the tests to run", || env.repo.join("running").exists());
    assert_eq!(lines.terminate(), 143);
    assert_eq!(processes_in(&env), Vec::<String>::new());
}

#[test]
fn nonsense_is_answered_or_passed_over_and_the_server_goes_on() {
    let env = repository(RED);
    let mut lines = Lines::start(&env);
    lines.begin();
    lines.send_text("this is not JSON");
    lines.send_text("{\"jsonrpc\": \"2.0\", \"id\": 5}");
    assert_eq!(lines.next()["error"]["code"], -32600);
    lines.send(&json!({"jsonrpc": "2.0", "id": 6, "method": "no/such/method"}));
    let answer = lines.next();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(6), &json!(-32601)));
    lines.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "nothing"}}));
    assert_eq!(lines.next()["error"]["message"], "there is no tool `nothing`");
    lines.send(&json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call",
        "params": {"name": "run_tests", "arguments": {"retries": "many"}}}));
    assert_eq!(lines.next()["result"]["isError"], true);
    lines.send(&json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}));
    assert_eq!(lines.next()["result"]["tools"].as_array().unwrap().len(), 3);
    assert_eq!(lines.hang_up(), 0);
}

#[test]
fn a_person_who_starts_it_is_told_what_it_is_for() {
    let env = repository(RED);
    let first = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    assert_snapshot!(env.run_with_input(&["mcp"], first), @r"
    [stderr]
    error: what came first on standard input is no `initialize` of an MCP client
    hint: `rehearsal mcp --help` shows how to register it with one
    [exit 2]
    ");
    env.run(&["mcp"]).ends_with(0);
    env.run(&["mcp", "--help"]).says("claude mcp add rehearsal -- rehearsal mcp");
}

/// What differs from run to run is replaced.
fn stable(env: &TestEnv, text: &str) -> String {
    let text = env.stable().text(text);
    let text = regex::Regex::new(r"Duration: \S+").unwrap().replace(&text, "Duration: [TIME]");
    regex::Regex::new(r"/tests/\w+/").unwrap().replace(&text, "/tests/[RUN]/").into_owned()
}

/// Processes that run in the repository, but for the server.
fn processes_in(env: &TestEnv) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ours = all.filter(|entry| {
        let inside = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&env.repo));
        inside
            && std::fs::read_link(entry.path().join("exe"))
                .is_ok_and(|exe| exe != std::path::Path::new(PROGRAM))
    });
    ours.map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    })
    .collect()
}

/// Waits for a condition while the client goes on listening.
async fn wait_async(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
}
