//! `schema NAME`.
//!
//! The schemas are checked in under `schemas/`, so that the program does not carry the code that derives them. A test
//! with the feature `schema` derives them again and compares.

#[cfg(all(test, feature = "schema"))]
mod derived;

use clap::Args;
use serde::Serialize;

use super::Done;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rehearsal schema                # all names\n  rehearsal schema config > config.schema.json"
)]
pub(crate) struct SchemaArgs {
    /// Schema to print; without it, list all names
    name: Option<String>,
}

/// A JSON Schema of a file that people write, or of a document that `--json` prints.
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    describes: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! schema {
    ($name:literal, $describes:literal) => {
        Schema {
            name: $name,
            describes: $describes,
            text: include_str!(concat!("../../../../schemas/", $name, ".json")),
        }
    };
}

pub(crate) const SCHEMAS: &[Schema] = &[
    schema!("config", ".rehearsal/config.yaml"),
    schema!("flow", ".rehearsal/flows/*.yaml"),
    schema!("scenario", ".rehearsal/scenarios/*.yaml"),
    schema!("role", ".rehearsal/agents/*.yaml"),
    schema!("mock-script", "`mock-agent --script FILE`"),
    schema!("stage-script", "`stage --script FILE`"),
    schema!("import", "a line of `task import`"),
    schema!("result", "result.json, as an agent writes it"),
    schema!("activity", "a line of activity.jsonl in a run's directory"),
    schema!("event", "an event of the log"),
    schema!("error", "any command that fails"),
    schema!("init", "init"),
    schema!("doctor", "doctor"),
    schema!("doctor-store", "doctor --store"),
    schema!("demo", "demo"),
    schema!("demo-pull-request", "demo --flow pull-request"),
    schema!("session", "session new, show, context"),
    schema!("session-list", "session list"),
    schema!("session-progress", "session progress"),
    schema!("task", "task add, edit, done, block, cancel, retry; approve, reject"),
    schema!("tasks", "task unblock"),
    schema!("task-history", "task history"),
    schema!("task-report", "task done, block, from inside a run that cannot see its tasks"),
    schema!("task-list", "task list"),
    schema!("task-show", "task show"),
    schema!("task-import", "task import"),
    schema!("plan", "a plan, as `plan --from FILE` takes it"),
    schema!("plan-document", "plan"),
    schema!("run", "run"),
    schema!("run-event", "a line of run --follow"),
    schema!("run-dry", "run --dry-run"),
    schema!("work", "work"),
    schema!("work-event", "a line of work --follow"),
    schema!("lane", "pause, resume"),
    schema!("gc", "gc"),
    schema!("test", "test"),
    schema!("test-event", "a line of test --follow"),
    schema!("test-explain", "test --explain"),
    schema!("test-history", "test history"),
    schema!("test-list", "test flaky, slow"),
    schema!("check", "check"),
    schema!("check-explain", "check --explain"),
    schema!("test-history-tool", "the tool test_history of mcp"),
    schema!("mcp-run_tests", "the arguments of the tool run_tests of mcp"),
    schema!("mcp-check", "the arguments of the tool check of mcp"),
    schema!("mcp-check-answer", "the tool check of mcp"),
    schema!("mcp-test_history", "the arguments of the tool test_history of mcp"),
    schema!("run-tests", "the request of test --action"),
    schema!("run-tests-answer", "test --action"),
    schema!("testing", ".rehearsal/testing.yaml"),
    schema!("stage", "a line of stage"),
    schema!("promote", "promote"),
    schema!("rehearse", "rehearse"),
    schema!("rehearse-init", "rehearse --init"),
    schema!("eval", ".rehearsal/evals/*.yaml"),
    schema!("eval-run", "eval run, show, grade"),
    schema!("eval-trial", "a line of a run's trials.jsonl"),
    schema!("eval-list", "eval list"),
    schema!("eval-compare", "eval compare"),
    schema!("eval-oracle", "eval oracle"),
    schema!("eval-session", "eval record, replay"),
    schema!("eval-import", "eval import"),
    schema!("eval-mutate", "eval mutate"),
    schema!("status", "status, and a line of status --watch"),
    schema!("workers", "workers"),
    schema!("logs", "a line of logs"),
    schema!("why", "why"),
    schema!("runs", "runs list"),
    schema!("runs-show", "runs show"),
    schema!("agent-list", "agent list"),
    schema!("agent-check", "agent check"),
    schema!("agent-explain", "agent explain"),
    schema!("crew-run", "a line of crew run"),
    schema!("crew-list", "crew list"),
    schema!("crew-show", "crew show"),
    schema!("record", "record"),
    schema!("replay", "replay"),
    schema!("cassette-show", "cassette show"),
    schema!("cassette-diff", "cassette diff"),
    schema!("cassette-lint", "cassette lint"),
    schema!("cassette-doctor", "cassette doctor"),
    schema!("cassette-redact", "cassette redact"),
    schema!("config-show", "config show"),
    schema!("flow-list", "flow list"),
    schema!("flow-check", "flow check"),
    schema!("flow-graph", "flow graph"),
    schema!("schema-list", "schema without a name"),
    schema!("completions", "completions"),
];

/// The schema of this name, which must be in the list.
pub(crate) fn text(name: &str) -> &'static str {
    find(name).map_or("{}", |schema| schema.text)
}

fn find(name: &str) -> Option<&'static Schema> {
    SCHEMAS.iter().find(|schema| schema.name == name)
}

/// `schema --json` without a name.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SchemaNames {
    schemas: Vec<SchemaName>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SchemaName {
    name: &'static str,
    describes: &'static str,
}

pub(crate) fn run(args: &SchemaArgs, ui: Ui) -> Done {
    let Some(name) = &args.name else {
        let rows: Vec<Vec<String>> =
            SCHEMAS.iter().map(|schema| vec![schema.name.to_owned(), schema.describes.to_owned()]).collect();
        ui.say(crate::ui::table(&["NAME", "DESCRIBES"], &rows));
        let schemas =
            SCHEMAS.iter().map(|Schema { name, describes, .. }| SchemaName { name, describes }).collect();
        ui.document(SchemaNames { schemas });
        return Ok(Exit::Ok);
    };
    let schema = find(name).ok_or_else(|| {
        CliError::usage(format!("there is no schema `{name}`")).hint("`rehearsal schema` lists all of them")
    })?;
    // The schema itself is the document; `--json` promises one line.
    ui.say(schema.text.trim_end());
    if ui.json {
        let document: serde_json::Value = serde_json::from_str(schema.text).map_err(std::io::Error::other)?;
        crate::ui::emit(&document);
    }
    Ok(Exit::Ok)
}
