//! Results go into the store, so that later runs can be compared with them.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Actor, RunId, TestResult, TestRun, TestStatus, Timestamp};
use rehearsal_store::{Change, TestQuery};
use rehearsal_testing::{
    Candidate, Project, TestHistory, TestRecord, TestReport, TestRequest, Verdict, WorkingTree, histories,
};

use super::{Tester, TesterError};
use crate::Draws;

/// What results are the results of.
pub(super) struct Ran<'a> {
    pub request: &'a TestRequest,
    /// What ran; nothing of it if its results are not to be used again.
    pub projects: &'a [Project],
    /// The files as they were before.
    pub tree: Option<&'a WorkingTree>,
    pub began: Timestamp,
}

impl Tester {
    /// Remembers each project's results. That history cannot be written is no reason to lose a run: it is a note.
    pub(super) async fn remember(&self, reports: &[TestReport], ran: &Ran<'_>, notes: &mut Vec<String>) {
        let keys = self.keys(reports, ran).await;
        let mut changes = Vec::new();
        for report in reports.iter().filter(|report| report.summary.total > 0) {
            let mut run = Box::new(self.record(report, ran));
            let key = keys.iter().find(|(candidate, _)| self.is_of(candidate, report));
            run.passed_with = key.map(|(_, key)| key.clone());
            changes.push(Change::AddTestRun { run, results: results_of(report) });
        }
        if changes.is_empty() {
            return;
        }
        if let Err(error) = self.store.commit(Actor::User, self.clock.now(), changes).await {
            notes.push(format!("these results are not remembered: {error}"));
        }
    }

    fn record(&self, report: &TestReport, ran: &Ran<'_>) -> TestRun {
        TestRun {
            id: RunId::from_random(self.draws.next()),
            at: ran.began,
            root: report.root.as_deref().map_or_else(String::new, |root| self.inside(Utf8Path::new(root))),
            framework: report.framework.to_string(),
            tree: ran.tree.map(|tree| tree.hash.clone()),
            commit: ran.tree.filter(|tree| tree.clean).and_then(|tree| tree.commit.clone()),
            whole: is_whole(report, ran.request) && !report.partial,
            verdict: report.verdict.to_string(),
            duration: report.duration,
            total: report.summary.total,
            failed: report.summary.failed,
            passed_with: None,
        }
    }

    /// The projects that passed as a whole, each with the name of all that they ran with.
    async fn keys<'a>(&self, reports: &[TestReport], ran: &Ran<'a>) -> Vec<(&'a Candidate, String)> {
        let is_good = |report: &TestReport| {
            let flaky = report.tests.iter().any(|test| test.status == TestStatus::Flaky);
            report.verdict == Verdict::Passed && !flaky && is_whole(report, ran.request)
        };
        let passed = |candidate: &&Candidate| {
            let mut own = reports.iter().filter(|report| self.is_of(candidate, report)).peekable();
            own.peek().is_some() && own.all(is_good)
        };
        let projects = ran.projects.iter().map(|project| &project.candidate);
        let passed: Vec<&Candidate> = projects.filter(passed).collect();
        // Somebody may have edited meanwhile, and the tests themselves may have.
        if passed.is_empty()
            || ran.tree.is_none()
            || WorkingTree::read(&self.root).await.ok().as_ref() != ran.tree
        {
            return Vec::new();
        }
        passed.into_iter().map(|candidate| (candidate, self.key(ran.request, candidate))).collect()
    }

    fn is_of(&self, candidate: &Candidate, report: &TestReport) -> bool {
        let root = report.root.as_deref().map_or_else(String::new, |root| self.inside(Utf8Path::new(root)));
        candidate.root == root && super::affected::is_of(candidate.framework, report.framework.name())
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

/// Whether all tests were asked for.
fn is_whole(report: &TestReport, request: &TestRequest) -> bool {
    let everything = report.affected.as_ref().is_none_or(|affected| affected.all);
    everything && request.patterns.is_empty() && request.exclude.is_empty()
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
pub(crate) fn directory(keep: &Utf8Path, draws: &Draws) -> std::io::Result<Utf8PathBuf> {
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
    let directory = keep.join(RunId::from_random(draws.next()).as_str());
    fs_err::create_dir_all(&directory)?;
    Ok(directory)
}
