//! Results go into the store, so that later runs can be compared with them.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Actor, RunId, TestResult, TestRun, Timestamp};
use rehearsal_store::{Change, TestQuery};
use rehearsal_testing::{TestHistory, TestRecord, TestReport, WorkingTree, histories};

use super::{Tester, TesterError};
use crate::random_bits;

impl Tester {
    /// Remembers each project's results. That history cannot be written is no reason to lose a run: it is a note.
    pub(super) async fn remember(
        &self,
        reports: &[TestReport],
        tree: Option<&WorkingTree>,
        began: Timestamp,
        whole: bool,
        notes: &mut Vec<String>,
    ) {
        let mut changes = Vec::new();
        for report in reports.iter().filter(|report| report.summary.total > 0) {
            let run = Box::new(self.record(report, tree, began, whole));
            changes.push(Change::AddTestRun { run, results: results_of(report) });
        }
        if changes.is_empty() {
            return;
        }
        if let Err(error) = self.store.commit(Actor::User, self.clock.now(), changes).await {
            notes.push(format!("these results are not remembered: {error}"));
        }
    }

    fn record(
        &self,
        report: &TestReport,
        tree: Option<&WorkingTree>,
        began: Timestamp,
        whole: bool,
    ) -> TestRun {
        TestRun {
            id: RunId::from_random(random_bits()),
            at: began,
            root: report.root.as_deref().map_or_else(String::new, |root| self.inside(Utf8Path::new(root))),
            framework: report.framework.to_string(),
            tree: tree.map(|tree| tree.hash.clone()),
            commit: tree.filter(|tree| tree.clean).and_then(|tree| tree.commit.clone()),
            whole,
            verdict: report.verdict.to_string(),
            duration: report.duration,
            total: report.summary.total,
            failed: report.summary.failed,
        }
    }

    /// A directory of the repository, relative to its root; empty for the root itself.
    fn inside(&self, directory: &Utf8Path) -> String {
        directory.strip_prefix(&self.root).map_or_else(|_| directory.to_string(), Utf8Path::to_string)
    }

    /// What past runs tell of each test.
    pub async fn histories(&self) -> Result<Vec<TestHistory>, TesterError> {
        let mut records = Vec::new();
        for tested in self.store.test_runs(&TestQuery::default()).await? {
            records.extend(TestRecord::of_run(&tested.run, &tested.results));
        }
        Ok(histories(&records))
    }
}

/// As many as the report has: of a very large run, failures before others.
fn results_of(report: &TestReport) -> Vec<TestResult> {
    let result = |test: &rehearsal_testing::TestCase| TestResult {
        package: test.package.clone(),
        name: test.name.clone(),
        status: test.status,
        duration: test.duration,
    };
    report.tests.iter().map(result).collect()
}

/// Whole outputs of so many runs are kept.
const KEPT_OUTPUTS: usize = 20;

/// A directory for the output of one run. The oldest ones make room for it.
pub(crate) fn directory(keep: &Utf8Path) -> std::io::Result<Utf8PathBuf> {
    fs_err::create_dir_all(keep)?;
    let mut earlier = Vec::new();
    for entry in keep.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            earlier.push((entry.metadata().and_then(|metadata| metadata.modified()).ok(), entry.into_path()));
        }
    }
    earlier.sort();
    let too_many = (earlier.len() + 1).saturating_sub(KEPT_OUTPUTS);
    for (_, old) in earlier.into_iter().take(too_many) {
        // Another run may be doing the same.
        let _ = fs_err::remove_dir_all(old);
    }
    let directory = keep.join(RunId::from_random(random_bits()).as_str());
    fs_err::create_dir_all(&directory)?;
    Ok(directory)
}
