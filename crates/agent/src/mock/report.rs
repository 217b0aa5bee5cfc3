//! What an agent reports about its work: `result.json` and `report.jsonl` of its run directory.

use camino::Utf8PathBuf;
use serde::Serialize;

use super::MockEnv;
use super::error::MockError;
use crate::result_file::{self, append_report};

pub(super) use crate::result_file::ReportLine;

pub(super) fn report(env: &MockEnv, line: &ReportLine) -> Result<(), MockError> {
    append_report(&run_dir(env)?, line).map_err(MockError::file)
}

pub(super) fn write_result(env: &MockEnv, result: &impl Serialize) -> Result<(), MockError> {
    let dir = run_dir(env)?;
    result_file::write_result(&dir, result)
        .map_err(|source| MockError::Io { what: format!("write to `{dir}`"), source })
}

fn run_dir(env: &MockEnv) -> Result<Utf8PathBuf, MockError> {
    let dir = env.var("TASK_DIR").or_else(|| env.var("REHEARSAL_TASK_DIR"));
    dir.map(Utf8PathBuf::from).ok_or(MockError::Variable { name: "TASK_DIR" })
}
