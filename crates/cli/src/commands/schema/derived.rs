//! Derives every schema again and compares it with the one under `schemas/`.
//!
//! After a change: `UPDATE_SCHEMAS=1 cargo test -p rehearsal --features schema schemas`.

use rehearsal_agent::CrewLine;
use rehearsal_agent::mock::ScriptFile;
use rehearsal_app::{
    agents, cassettes, crew, flows, gc, init, lanes, logs, runs, scenarios, sessions, status, tasks, testing,
    work,
};
use rehearsal_core::config::{Settings, TestingFile};
use rehearsal_core::flow::FlowFile;
use rehearsal_core::import::ImportedTask;
use rehearsal_core::{ActivityLine, Event, ResultFile};
use rehearsal_crew::RoleFile;
use rehearsal_crew::plan::PlanFile;
use rehearsal_engine::WorkSummary;
use rehearsal_eval::case::EvalFile;
use rehearsal_eval::summary::Record;
use rehearsal_scenario::Scenario;
use rehearsal_stage::StageScriptFile;
use rehearsal_testing::{CheckReport, RunTests, RunTestsAnswer};
use schemars::{JsonSchema, Schema, schema_for};

use super::{SCHEMAS, SchemaNames};
use crate::commands::{
    self, cassette, check, completions, config, demo, doctor, eval, mcp, plan, record, rehearse, replay,
    stage, test, why,
};
use crate::error::ErrorDocument;
use crate::ui::Document;

type Derive = fn() -> Schema;

fn document<T: JsonSchema>() -> Schema {
    schema_for!(Document<T>)
}

const DERIVED: &[(&str, Derive)] = &[
    ("config", || schema_for!(Settings)),
    ("flow", || schema_for!(FlowFile)),
    ("scenario", || schema_for!(Scenario)),
    ("role", || schema_for!(RoleFile)),
    ("mock-script", || schema_for!(ScriptFile)),
    ("stage-script", || schema_for!(StageScriptFile)),
    ("import", || schema_for!(ImportedTask)),
    ("result", || schema_for!(ResultFile)),
    ("activity", || schema_for!(ActivityLine)),
    ("event", || schema_for!(Event)),
    ("error", document::<ErrorDocument>),
    ("init", document::<init::InitDocument>),
    ("doctor", document::<doctor::DoctorDocument>),
    ("doctor-store", document::<rehearsal_app::doctor::StoreDocument>),
    ("demo", document::<demo::DemoDocument>),
    ("demo-pull-request", document::<demo::PullRequestDemo>),
    ("session", document::<sessions::SessionDocument>),
    ("session-list", document::<sessions::SessionList>),
    ("session-progress", document::<sessions::ProgressDocument>),
    ("task", document::<tasks::TaskDocument>),
    ("tasks", document::<tasks::TaskDocuments>),
    ("task-history", document::<tasks::TaskHistory>),
    ("task-report", document::<tasks::TaskReport>),
    ("task-list", document::<tasks::TaskList>),
    ("task-show", document::<tasks::TaskDetails>),
    ("task-import", document::<tasks::ImportDocument>),
    ("plan", || schema_for!(PlanFile)),
    ("plan-document", document::<plan::PlanDocument>),
    ("run", document::<WorkSummary>),
    ("run-event", document::<commands::work::EventDocument>),
    ("run-dry", document::<commands::run::DryRun>),
    ("work", document::<work::WorkDocument>),
    ("work-event", document::<commands::work::EventDocument>),
    ("lane", document::<lanes::LaneDocument>),
    ("gc", document::<gc::GcDocument>),
    ("test", document::<test::TestDocument>),
    ("test-event", document::<test::TestEvent>),
    ("test-explain", document::<test::ExplainDocument>),
    ("test-history", document::<testing::HistoryDocument>),
    ("test-list", document::<testing::TestsDocument>),
    ("check", document::<CheckReport>),
    ("check-explain", document::<check::CheckExplanation>),
    ("test-history-tool", document::<testing::TestHistoryDocument>),
    ("mcp-run_tests", || schema_for!(mcp::RunTestsArguments)),
    ("mcp-check", || schema_for!(mcp::CheckArguments)),
    ("mcp-check-answer", document::<mcp::CheckAnswer>),
    ("mcp-test_history", || schema_for!(mcp::TestHistoryArguments)),
    ("run-tests", || schema_for!(RunTests)),
    ("run-tests-answer", document::<RunTestsAnswer>),
    ("testing", || schema_for!(TestingFile)),
    ("stage", document::<stage::StageEvent>),
    ("promote", document::<scenarios::PromoteDocument>),
    ("rehearse", document::<rehearse::RehearseDocument>),
    ("rehearse-init", document::<rehearse::StarterDocument>),
    ("eval", || schema_for!(EvalFile)),
    ("eval-run", document::<eval::EvalDocument>),
    ("eval-trial", || schema_for!(Record)),
    ("eval-list", document::<eval::EvalListDocument>),
    ("eval-compare", document::<eval::CompareDocument>),
    ("eval-oracle", document::<rehearsal_eval::oracle::OracleDocument>),
    ("eval-session", document::<rehearsal_eval::recorded_run::SessionDocument>),
    ("eval-import", document::<rehearsal_app::evals::ImportDocument>),
    ("eval-mutate", document::<rehearsal_eval::mutation_test::MutateDocument>),
    ("status", document::<status::Status>),
    ("workers", document::<rehearsal_app::workers::WorkerList>),
    ("logs", document::<logs::LogLine>),
    ("why", document::<why::WhyDocument>),
    ("runs", document::<runs::RunList>),
    ("runs-show", document::<runs::RunDocument>),
    ("agent-list", document::<agents::AgentList>),
    ("agent-check", document::<agents::CheckDocument>),
    ("agent-explain", || schema_for!(rehearsal_agent::driver::Explanation)),
    ("crew-run", document::<CrewLine>),
    ("crew-list", document::<crew::RoleList>),
    ("crew-show", document::<crew::RoleDocument>),
    ("record", document::<record::RecordDocument>),
    ("replay", document::<replay::ReplayDocument>),
    ("cassette-show", document::<cassettes::ShowDocument>),
    ("cassette-diff", document::<cassettes::DiffDocument>),
    ("cassette-lint", document::<cassettes::LintDocument>),
    ("cassette-doctor", document::<cassette::CassetteDoctorDocument>),
    ("cassette-redact", document::<cassettes::RedactDocument>),
    ("config-show", document::<config::ConfigDocument>),
    ("flow-list", document::<flows::FlowList>),
    ("flow-check", document::<flows::FlowCheck>),
    ("flow-graph", document::<flows::FlowGraph>),
    ("schema-list", document::<SchemaNames>),
    ("completions", document::<completions::Completions>),
];

#[test]
fn the_schemas_are_what_the_types_say() {
    let directory = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas"));
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    for (name, derive) in DERIVED {
        let text = serde_json::to_string_pretty(&derive()).unwrap() + "\n";
        if update {
            fs_err::write(directory.join(format!("{name}.json")), text).unwrap();
        } else {
            let hint = "UPDATE_SCHEMAS=1 cargo test -p rehearsal --features schema schemas";
            assert_eq!(super::text(name), text, "schemas/{name}.json is out of date: {hint}");
        }
    }
    let listed: Vec<&str> = SCHEMAS.iter().map(|schema| schema.name).collect();
    let derived: Vec<&str> = DERIVED.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, derived);
}
