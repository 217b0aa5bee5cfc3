//! What is said about real outputs of real programs: denials of a sandbox, and reports for agents and people.

#![expect(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod agent;
mod denials;
mod snapshots;

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

    fn named(id: &str) -> Self {
        Self::all().into_iter().find(|sample| sample.id == id).unwrap()
    }

    fn paths(&self) -> Vec<Utf8PathBuf> {
        let dir = fixtures().join(&self.dir);
        self.files.values().flatten().map(|name| dir.join(name.trim_end_matches('/'))).collect()
    }

    /// What the runner printed; of one that wrote its report to a file, that file.
    fn printed_bytes(&self) -> u64 {
        let dir = fixtures().join(&self.dir);
        let size = |name: &String| {
            fs_err::metadata(dir.join(name)).map_or(0, |it| if it.is_file() { it.len() } else { 0 })
        };
        let printed: u64 = self
            .files
            .iter()
            .filter(|(kind, _)| kind.starts_with("std"))
            .filter_map(|(_, name)| name.as_ref())
            .map(size)
            .sum();
        let written: u64 = self.files.values().flatten().map(size).sum();
        if printed < written / 10 { written } else { printed }
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
