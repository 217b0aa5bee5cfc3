//! `schema NAME`.

use clap::Args;
use rehearsal_agent::CrewLine;
use rehearsal_agent::mock::ScriptFile;
use rehearsal_core::config::{ConfigFile, TestingFile};
use rehearsal_core::flow::FlowFile;
use rehearsal_core::import::ImportedTask;
use rehearsal_core::{Activity, Event, ResultFile};
use rehearsal_crew::RoleFile;
use rehearsal_crew::plan::PlanFile;
use rehearsal_engine::rehearsal::Scenario;
use rehearsal_engine::{LoopEvent, LoopSummary, WorkEvent, why::Why};
use rehearsal_eval::case::EvalFile;
use rehearsal_eval::summary::Record;
use rehearsal_stage::StageScriptFile;
use rehearsal_testing::{CheckReport, RunTests, RunTestsAnswer};
use schemars::{JsonSchema, Schema, schema_for};

use super::{
    Done, agent, cassette, check, config, crew, demo, doctor, eval, flow, gc, generate, init, lane, logs,
    mcp, plan, promote, record, rehearse, replay, run, runs, session, stage, status, task, test, work,
};
use crate::error::{CliError, ErrorDocument};
use crate::exit::Exit;
use crate::ui::{Document, Ui};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rehearsal schema                # all names\n  rehearsal schema config > config.schema.json"
)]
pub(crate) struct SchemaArgs {
    /// Which; without it all names are listed
    name: Option<String>,
}

/// Makes a schema.
type Make = fn() -> Schema;

fn document<T: JsonSchema>() -> Schema {
    schema_for!(Document<T>)
}

/// Every file that people write, and every document that `--json` prints.
pub(crate) const SCHEMAS: &[(&str, &str, Make)] = &[
    ("config", ".rehearsal/config.yaml", || schema_for!(ConfigFile)),
    ("flow", ".rehearsal/flows/*.yaml", || schema_for!(FlowFile)),
    ("scenario", ".rehearsal/scenarios/*.yaml", || schema_for!(Scenario)),
    ("role", ".rehearsal/agents/*.yaml", || schema_for!(RoleFile)),
    ("mock-script", "`mock-agent --script FILE`", || schema_for!(ScriptFile)),
    ("stage-script", "`stage --script FILE`", || schema_for!(StageScriptFile)),
    ("import", "a line of `task import`", || schema_for!(ImportedTask)),
    ("result", "result.json, as an agent writes it", || schema_for!(ResultFile)),
    ("activity", "a line of activity.jsonl in a run's directory", || schema_for!(Activity)),
    ("event", "an event of the log", || schema_for!(Event)),
    ("error", "any command that fails", document::<ErrorDocument>),
    ("init", "init", document::<init::InitDocument>),
    ("doctor", "doctor", document::<doctor::DoctorDocument>),
    ("doctor-store", "doctor --store", document::<doctor::StoreDocument>),
    ("demo", "demo", document::<demo::DemoDocument>),
    ("demo-pull-request", "demo --flow pull-request", document::<demo::PullRequestDemo>),
    ("session", "session new, show, context", document::<session::SessionDocument>),
    ("session-list", "session list", document::<session::SessionList>),
    ("session-progress", "session progress", document::<session::ProgressDocument>),
    (
        "task",
        "task add, edit, done, block, unblock, cancel, retry; approve, reject",
        document::<task::TaskDocument>,
    ),
    (
        "task-report",
        "task done, block, from inside a run that cannot see its tasks",
        document::<task::TaskReport>,
    ),
    ("task-list", "task list", document::<task::TaskList>),
    ("task-show", "task show", document::<task::TaskDetails>),
    ("task-import", "task import", document::<task::ImportDocument>),
    ("plan", "a plan, as `plan --from FILE` takes it", || schema_for!(PlanFile)),
    ("plan-document", "plan", document::<plan::PlanDocument>),
    ("run", "run", document::<LoopSummary>),
    ("run-event", "a line of run --follow", document::<LoopEvent>),
    ("run-dry", "run --dry-run", document::<run::DryRun>),
    ("work", "work", document::<work::WorkDocument>),
    ("work-event", "a line of work --follow", document::<WorkEvent>),
    ("lane", "pause, resume", document::<lane::LaneDocument>),
    ("gc", "gc", document::<gc::GcDocument>),
    ("test", "test", document::<test::TestDocument>),
    ("test-event", "a line of test --follow", document::<test::TestEvent>),
    ("test-explain", "test --explain", document::<test::ExplainDocument>),
    ("test-history", "test history", document::<test::HistoryDocument>),
    ("test-list", "test flaky, slow", document::<test::TestsDocument>),
    ("check", "check", document::<CheckReport>),
    ("check-explain", "check --explain", document::<check::CheckExplanation>),
    ("test-history-tool", "the tool test_history of mcp", document::<mcp::TestHistoryDocument>),
    ("run-tests", "the request of test --action", || schema_for!(RunTests)),
    ("run-tests-answer", "test --action", document::<RunTestsAnswer>),
    ("testing", ".rehearsal/testing.yaml", || schema_for!(TestingFile)),
    ("stage", "a line of stage", document::<stage::StageEvent>),
    ("promote", "promote", document::<promote::PromoteDocument>),
    ("rehearse", "rehearse", document::<rehearse::RehearseDocument>),
    ("rehearse-init", "rehearse --init", document::<rehearse::StarterDocument>),
    ("eval", ".rehearsal/evals/*.yaml", || schema_for!(EvalFile)),
    ("eval-run", "eval run, show, grade", document::<eval::EvalDocument>),
    ("eval-trial", "a line of a run's trials.jsonl", || schema_for!(Record)),
    ("eval-list", "eval list", document::<eval::EvalListDocument>),
    ("eval-compare", "eval compare", document::<eval::CompareDocument>),
    ("eval-oracle", "eval oracle", document::<eval::OracleDocument>),
    ("eval-session", "eval record, replay", document::<eval::SessionDocument>),
    ("eval-import", "eval import", document::<eval::ImportDocument>),
    ("eval-mutate", "eval mutate", document::<eval::MutateDocument>),
    ("status", "status, and a line of status --watch", document::<status::Status>),
    ("logs", "a line of logs", document::<logs::LogLine>),
    ("why", "why", document::<Why>),
    ("runs", "runs list", document::<runs::RunList>),
    ("runs-show", "runs show", document::<runs::RunDocument>),
    ("agent-list", "agent list", document::<agent::AgentList>),
    ("agent-check", "agent check", document::<agent::CheckDocument>),
    ("agent-explain", "agent explain", || schema_for!(rehearsal_agent::driver::Explanation)),
    ("crew-run", "a line of crew run", document::<CrewLine>),
    ("crew-list", "crew list", document::<crew::RoleList>),
    ("crew-show", "crew show", document::<crew::RoleDocument>),
    ("record", "record", document::<record::RecordDocument>),
    ("replay", "replay", document::<replay::ReplayDocument>),
    ("cassette-show", "cassette show", document::<cassette::ShowDocument>),
    ("cassette-diff", "cassette diff", document::<cassette::DiffDocument>),
    ("cassette-lint", "cassette lint", document::<cassette::LintDocument>),
    ("cassette-doctor", "cassette doctor", document::<cassette::CassetteDoctorDocument>),
    ("cassette-redact", "cassette redact", document::<cassette::RedactDocument>),
    ("config-show", "config show", document::<config::ConfigDocument>),
    ("flow-list", "flow list", document::<flow::FlowList>),
    ("flow-check", "flow check", document::<flow::FlowCheck>),
    ("flow-graph", "flow graph", document::<flow::FlowGraph>),
    ("schema-list", "schema without a name", document::<SchemaNames>),
    ("generate", "generate", document::<generate::Generated>),
    ("completions", "completions", document::<generate::Completions>),
];

/// `schema --json` without a name.
#[derive(Debug, serde::Serialize, JsonSchema)]
struct SchemaNames {
    schemas: Vec<SchemaName>,
}

#[derive(Debug, serde::Serialize, JsonSchema)]
struct SchemaName {
    name: &'static str,
    describes: &'static str,
}

pub(crate) fn run(args: &SchemaArgs, ui: Ui) -> Done {
    let Some(name) = &args.name else {
        let rows: Vec<Vec<String>> =
            SCHEMAS.iter().map(|(name, what, _)| vec![(*name).to_owned(), (*what).to_owned()]).collect();
        ui.say(crate::ui::table(&["NAME", "DESCRIBES"], &rows));
        let schemas = SCHEMAS.iter().map(|(name, describes, _)| SchemaName { name, describes }).collect();
        ui.document(SchemaNames { schemas });
        return Ok(Exit::Ok);
    };
    let Some((_, _, make)) = SCHEMAS.iter().find(|(known, _, _)| known == name) else {
        return Err(CliError::usage(format!("there is no schema `{name}`"))
            .hint("`rehearsal schema` lists all of them"));
    };
    // The schema itself is the answer, for people and for programs.
    crate::ui::emit(&make());
    Ok(Exit::Ok)
}
