//! `outcome.json` in a run's directory: what the run came to, for people, and for the next worker if this one dies
//! before the store has it.

use camino::Utf8Path;
use rehearsal_agent::RunReport;
use rehearsal_core::{RunEnd, RunStart, Timestamp};
use serde::Serialize;

use crate::findings::last_words;

const FILE: &str = "outcome.json";
/// More are in the run's files.
const DENIALS_KEPT: usize = 20;
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct OutcomeFile<'a> {
    schema_version: u32,
    run: &'a str,
    task: &'a str,
    driver: &'a str,
    started_at: Timestamp,
    ended_at: Timestamp,
    #[serde(flatten)]
    report: &'a RunReport,
}

/// Writes the file, whole or not at all.
pub(crate) fn write(
    run_dir: &Utf8Path,
    start: &RunStart,
    report: &RunReport,
    ended_at: Timestamp,
) -> std::io::Result<()> {
    let file = OutcomeFile {
        schema_version: SCHEMA_VERSION,
        run: start.id.as_str(),
        task: start.task.as_str(),
        driver: &start.driver,
        started_at: start.started_at,
        ended_at,
        report,
    };
    let unfinished = run_dir.join("outcome.json.tmp");
    fs_err::write(&unfinished, serde_json::to_vec_pretty(&file).map_err(std::io::Error::other)?)?;
    fs_err::rename(&unfinished, run_dir.join(FILE))
}

/// The report that a run had come to before its worker died.
pub(crate) fn read(run_dir: &Utf8Path) -> Option<RunReport> {
    let bytes = fs_err::read(run_dir.join(FILE)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// What of a report goes into the store.
pub(crate) fn end_of(report: &RunReport, ended_at: Timestamp) -> RunEnd {
    let wire = &report.evidence.wire;
    let git = report.evidence.git.clone().unwrap_or_default();
    RunEnd {
        verdict: report.verdict.clone(),
        exit: report.evidence.exit,
        promise: report.promise.clone(),
        cost_usd: wire.cost_usd,
        tokens: wire.tokens,
        turns: wire.turns,
        agent_session: wire.session_id.clone(),
        commits: git.commits,
        files_changed: git.files_changed,
        said: last_words(&wire.final_text),
        model: wire.model.clone(),
        denials: wire.denials.iter().take(DENIALS_KEPT).cloned().collect(),
        tries: report.tries,
        notices: report.warnings.clone(),
        ended_at,
        took_ms: None,
    }
}
