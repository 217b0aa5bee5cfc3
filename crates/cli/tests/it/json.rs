//! `--json`: one document on standard output, and it has the form that `rehearsal schema` tells.

use std::collections::BTreeSet;

use rehearsal_llm::json_schema::JsonSchema;
use serde_json::Value;

use crate::env::{Output, TestEnv};
use crate::help::leaves;

pub(crate) fn schema(env: &TestEnv, name: &str) -> JsonSchema {
    let document = env.must(&["schema", name, "--json"]).document();
    JsonSchema::compile(&document).unwrap_or_else(|error| panic!("schema {name}: {error}"))
}

#[track_caller]
pub(crate) fn validate(schema: &JsonSchema, document: &Value) {
    let errors: Vec<String> = schema
        .violations(document)
        .into_iter()
        .map(|found| format!("{}: {}", found.place, found.message))
        .collect();
    assert!(errors.is_empty(), "{document:#}\n{errors:#?}");
}

/// Calls of every command, each with the name of its schema.
struct Calls {
    env: TestEnv,
    called: BTreeSet<String>,
}

impl Calls {
    #[track_caller]
    fn call(&mut self, name: &str, args: &[&str]) -> Output {
        self.call_with_input(name, args, "")
    }

    /// What a person does about a task that waits for an answer.
    fn of_answers(&mut self, task: &str) {
        for unblock in [&["task", "unblock", task][..], &["unblock", task, "--answer", "because"]] {
            self.call("task", &["task", "block", task, "--reason", "why"]);
            self.call("tasks", unblock);
        }
        self.call("task-history", &["task", "history", task]);
        self.call("workers", &["workers"]);
    }

    /// What is about workers; the task is over.
    fn of_workers(&mut self, task: &str) {
        self.call("demo", &["demo"]);
        self.call("demo-pull-request", &["demo", "--flow", "pull-request"]);
        self.call("flow-list", &["flow", "list"]);
        self.call("work", &["work", "--once", "--agent", "gatekeeper"]);
        self.call("lane", &["pause", "session:other", "--until", "2h"]);
        self.call("lane", &["resume", "session:other"]);
        self.call("gc", &["gc", "--dry-run"]);
        self.call("task", &["retry", task]);
        self.call("task", &["cancel", task]);
        self.call("error", &["approve", task]);
        self.call("error", &["reject", task, "--comment", "no"]);
        self.call("doctor-store", &["doctor", "--store"]);
        self.call("crew-list", &["crew", "list"]);
        self.call("crew-show", &["crew", "show", "code"]);
    }

    #[track_caller]
    fn call_with_input(&mut self, name: &str, args: &[&str], input: &str) -> Output {
        let output = self.env.run_with_input(&[args, &["--json"]].concat(), input);
        let document = output.document();
        validate(&schema(&self.env, name), &document);
        assert_eq!(document["schema_version"], 1, "{args:?}");
        let command: Vec<&str> = args
            .iter()
            .copied()
            .take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
            .collect();
        self.called.insert(command[..1].join(" "));
        self.called.extend((2..=command.len().min(2)).map(|words| command[..words].join(" ")));
        output
    }
}

/// A line an activity is checked with the logs below; the stage, the crew at work, recordings, cassettes and evals with their
/// stories. A stand-in speaks the language of whom it plays, and the MCP server that of its protocol.
const CHECKED_ELSEWHERE: [&str; 23] = [
    "logs",
    "crew run",
    "mock-agent",
    "mock-gh",
    "mcp",
    "stage",
    "record",
    "replay",
    "cassette show",
    "cassette diff",
    "cassette lint",
    "cassette redact",
    "cassette doctor",
    "eval list",
    "eval run",
    "eval show",
    "eval grade",
    "eval compare",
    "eval oracle",
    "eval import",
    "eval mutate",
    "eval record",
    "eval replay",
];

const PLAN: &str = r#"{"tasks": [{"id": "a", "agent": "code", "description": "Say hi"}]}"#;

#[test]
fn every_command_answers_with_one_document_of_its_schema() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(
        "
        runs:
          - - write: { path: hello.txt, content: hi }
            - commit: { message: Say hi }
            - usage: { input: 1200, output: 340, cost_usd: 0.05 }
            - progress: halfway
            - task_done: current
            - say: One is done.
        ",
    );
    let (one, two) = (env.task_id(1), env.task_id(2));
    let mut calls = Calls { env, called: BTreeSet::new() };
    calls.call("run-dry", &["run", "--dry-run"]);
    calls.call("run", &["run", "--iterations", "1"]).ends_with(0);
    let run = calls.env.runs()[0].clone();
    calls.call("runs", &["runs", "list"]);
    calls.call("runs-show", &["runs", "show", &run]);
    calls.call("status", &["status"]);
    calls.call("why", &["why", &two]);
    calls.call("session", &["session", "new", "other"]);
    calls.call("session", &["session", "show", "greet"]);
    calls.call("session", &["session", "context", "greet"]);
    calls.call("session-list", &["session", "list"]);
    calls.call("session-progress", &["session", "progress", "--session", "greet"]);
    calls.call("task", &["task", "add", "Third", "--session", "greet"]);
    calls.call("task", &["task", "edit", &two, "--priority", "low"]);
    calls.of_answers(&two);
    calls.call("task", &["task", "done", &two]);
    calls.call("task", &["task", "retry", &two]);
    calls.call("task", &["task", "cancel", &two]);
    calls.call("task-list", &["task", "list", "--all"]);
    calls.call("task-show", &["task", "show", &one]);
    let import = ["task", "import", "-", "--format", "markdown", "--session", "greet"];
    calls.call_with_input("task-import", &import, "- [ ] More\n");
    calls.call_with_input("plan-document", &["plan", "--from", "-"], PLAN).ends_with(7);
    calls.call("config-show", &["config", "show"]);
    calls.call("flow-check", &["flow", "check"]);
    calls.of_workers(&two);
    calls.call("flow-graph", &["flow", "graph", "loop"]);
    calls.call("agent-list", &["agent", "list"]);
    calls.call("agent-check", &["agent", "check", "implementer"]);
    calls.call_with_input(
        "agent-explain",
        &["agent", "explain", "claude", "--stdout", "-", "--exit", "1"],
        "junk",
    );
    calls.call("check-explain", &["check", "--explain"]);
    calls.call("check", &["check"]).ends_with(3);
    let affected = ["test", "--affected", "--framework", "tap", "--command", "echo 1..1; echo ok 1 - adds"];
    calls.call("test", &affected);
    calls.call("test", &affected);
    calls.call("test-explain", &[&affected[..], &["--explain"]].concat());
    calls.call("doctor", &["doctor"]);
    calls.call("promote", &["promote", &run]);
    calls.call("rehearse", &["rehearse"]).ends_with(0);
    calls.call("init", &["init", "--force"]);
    calls.call("schema-list", &["schema"]);
    calls.call("completions", &["completions", "bash"]);
    calls.env.script("test", "echo 1..1\necho ok 1 - adds");
    calls.call("test", &["test"]).ends_with(0);
    calls.call("test-explain", &["test", "--explain"]);
    calls.call("test-history", &["test", "history"]);
    calls.call("test-list", &["test", "flaky"]);
    calls.call("test-list", &["test", "slow"]);
    calls.called.extend(CHECKED_ELSEWHERE.map(str::to_owned));
    let missing: Vec<String> = leaves(&calls.env)
        .into_iter()
        .map(|path| path.join(" "))
        .filter(|command| !calls.called.contains(command))
        .collect();
    assert!(missing.is_empty(), "not called: {missing:?}");

    let line = schema(&calls.env, "logs");
    let logs = calls.env.must(&["logs", &run, "--json"]);
    assert!(logs.stdout.lines().count() > 3, "{logs}");
    for text in logs.stdout.lines() {
        validate(&line, &serde_json::from_str(text).unwrap());
    }
}

#[test]
fn errors_are_documents_too() {
    let env = TestEnv::new().session("greet").task("Say hello");
    let error = schema(&env, "error");
    for (args, code) in [
        (&["task", "show", "nosuchid"][..], 2),
        (&["session", "show", "gret"], 2),
        (&["run"], 6),
        (&["run", "--agent", "nobody"], 2),
        (&["schema", "nothing"], 2),
        (&["task", "list", "--no-such-flag"], 2),
        (&["taks"], 2),
    ] {
        let output = env.run(&[args, &["--json"]].concat()).ends_with(code);
        let document = output.document();
        validate(&error, &document);
        assert_eq!(document["error"]["code"], code, "{document}");
        assert!(output.stderr.starts_with("error: "), "{output}");
    }
    let document = env.run(&["session", "show", "gret", "--json"]).document();
    assert_eq!(document["error"]["hints"][0], "did you mean `greet`?");
    env.file(".rehearsal/config.yaml", "agnts: {}\n");
    let document = env.run(&["config", "show", "--json"]).document();
    assert_eq!(document["error"]["place"], ".rehearsal/config.yaml:1:1");
}

#[test]
fn files_that_people_write_have_schemas_that_fit_them() {
    let env = TestEnv::without_repository();
    let config = schema(&env, "config");
    validate(
        &config,
        &serde_json::json!({
            "agents": { "implementer": { "driver": "claude", "timeout": "45m", "budget": { "usd": 5 } } },
            "loop": { "iterations": 3 }, "testing": { "command": "./test" },
        }),
    );
    assert!(!config.violations(&serde_json::json!({ "agnts": {} })).is_empty());
    let testing = schema(&env, "testing");
    validate(
        &testing,
        &serde_json::json!({
            "testing": {
                "framework": "go", "timeout": "300s", "patterns": ["Test*"], "environment": { "CGO_ENABLED": "0" },
                "sandbox": { "allow_network": false, "max_memory": "1GB" },
            },
        }),
    );
    validate(&testing, &serde_json::json!({ "testing": { "sandbox": "required" } }));
    assert!(!testing.violations(&serde_json::json!({ "testing": { "timout": "5m" } })).is_empty());
    let script = schema(&env, "mock-script");
    validate(
        &script,
        &serde_json::json!({
            "runs": [
                [{ "say": "hi" }, { "task_done": "current" }, { "sleep": "2s" }, "hang"],
                [{ "rate_limit": { "retry_after": 30 } }],
            ],
        }),
    );
    assert!(!script.violations(&serde_json::json!({ "run": [{ "sya": "hi" }] })).is_empty());
}

#[test]
fn a_document_that_does_not_get_out_is_an_error_and_a_reader_that_went_away_is_none() {
    let env = TestEnv::new();
    let shell = |line: &str| {
        let line = line.replace("PROGRAM", crate::env::PROGRAM);
        std::process::Command::new("sh").args(["-c", &line]).current_dir(&env.repo).output().unwrap()
    };
    let full = shell("PROGRAM task list --json > /dev/full");
    assert_eq!(full.status.code(), Some(1));
    let said = String::from_utf8_lossy(&full.stderr);
    assert_eq!(
        said.matches("error: standard output cannot be written: No space left on device").count(),
        1,
        "{said}"
    );
    let gone = shell("{ PROGRAM task list --json; echo $? >&2; } | true");
    assert_eq!(String::from_utf8_lossy(&gone.stderr).trim(), "0");
}
