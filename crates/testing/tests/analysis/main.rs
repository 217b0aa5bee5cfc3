//! What is said about real outputs of real programs: denials of a sandbox, and reports for agents and people.

#![expect(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod denials;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Exit;
use rehearsal_testing::{Ending, Recorded, TestReport, read};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A recorded run with its truth.
#[derive(Debug, Deserialize)]
struct Sample {
    id: String,
    dir: String,
    exit_code: Option<i32>,
    #[serde(default)]
    signal: Option<i32>,
    files: BTreeMap<String, Option<String>>,
    truth: Truth,
}

#[derive(Debug, Deserialize)]
struct Truth {
    sandbox_denial: Option<String>,
    #[serde(default)]
    mechanism: String,
}

impl Sample {
    fn all() -> Vec<Self> {
        let index = fs_err::read_to_string(fixtures().join("index.jsonl")).unwrap();
        index.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn paths(&self) -> Vec<Utf8PathBuf> {
        let dir = fixtures().join(&self.dir);
        self.files.values().flatten().map(|name| dir.join(name.trim_end_matches('/'))).collect()
    }

    fn report(&self, out_of_memory: bool) -> TestReport {
        let exit = self.exit_code.map(Exit::Code).or(self.signal.map(Exit::Signal));
        let ending = Ending { exit, out_of_memory, ..Ending::default() };
        read(&Recorded { files: self.paths(), framework: None, root: None, ending }).unwrap()
    }
}

fn fixtures() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}
