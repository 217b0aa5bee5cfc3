//! The whole report of a run, kept in its directory until the store has it: a worker may die in between.

use camino::Utf8Path;
use rehearsal_agent::RunReport;
use rehearsal_core::{RunEnd, Timestamp};

use crate::findings::last_words;

const FILE: &str = "report.json";

/// Keeps a report.
pub(crate) fn keep(run_dir: &Utf8Path, report: &RunReport) -> std::io::Result<()> {
    let unfinished = run_dir.join("report.json.tmp");
    fs_err::write(&unfinished, serde_json::to_vec(report).map_err(std::io::Error::other)?)?;
    fs_err::rename(&unfinished, run_dir.join(FILE))
}

/// The report that a run had come to before its worker died.
pub(crate) fn find(run_dir: &Utf8Path) -> Option<RunReport> {
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
        tries: report.tries,
        ended_at,
    }
}
