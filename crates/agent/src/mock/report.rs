//! What an agent reports about its work: `result.json` and `report.jsonl` of its run directory.

use std::io::Write;

use camino::Utf8PathBuf;
use serde::Serialize;

use super::MockEnv;
use super::error::MockError;

/// A line of `report.jsonl`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ReportLine {
    TaskDone { id: String },
    TaskBlocked { id: String, reason: String },
    Progress { text: String },
}

pub(super) fn report(env: &MockEnv, line: &ReportLine) -> Result<(), MockError> {
    let path = run_dir(env)?.join("report.jsonl");
    let mut file =
        fs_err::OpenOptions::new().create(true).append(true).open(path).map_err(MockError::file)?;
    // One write, so that lines of others who report at the same time are not torn.
    file.write_all(json_line(line)?.as_bytes()).map_err(MockError::file)
}

/// Puts `result.json` in place whole: a reader never sees half of it.
pub(super) fn write_result(env: &MockEnv, result: &impl Serialize) -> Result<(), MockError> {
    let dir = run_dir(env)?;
    let mut file = tempfile::NamedTempFile::new_in(&dir)
        .map_err(|source| MockError::Io { what: format!("write to `{dir}`"), source })?;
    file.write_all(json_line(result)?.as_bytes()).map_err(MockError::file)?;
    file.persist(dir.join("result.json")).map_err(|error| MockError::file(error.error))?;
    Ok(())
}

fn run_dir(env: &MockEnv) -> Result<Utf8PathBuf, MockError> {
    let dir = env.var("TASK_DIR").or_else(|| env.var("REHEARSAL_TASK_DIR"));
    dir.map(Utf8PathBuf::from).ok_or(MockError::Variable { name: "TASK_DIR" })
}

fn json_line(value: &impl Serialize) -> Result<String, MockError> {
    let mut line = serde_json::to_string(value).map_err(|error| MockError::file(error.into()))?;
    line.push('\n');
    Ok(line)
}
