//! The same tests on the base: read from history if that very commit was tested, else run in a checkout of its own.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{TestResult, TestRun};
use rehearsal_git::{Git, GitError, Oid};
use rehearsal_store::TestQuery;
use rehearsal_testing::{Framework, RunWatcher, TestCase, TestReport, TestRequest, Verdict, compare};
use tokio_util::sync::CancellationToken;

use super::remember::Ran;
use super::{TestedProject, Tester, TesterError};

/// What the failures are compared with.
pub(super) struct Base {
    /// As it was named.
    revision: String,
    commit: Oid,
}

impl Tester {
    /// Finds the commit, before anything runs: a slip would cost the whole run.
    pub(super) async fn baseline(&self, revision: &str) -> Result<Base, TesterError> {
        let commit = Git::at(&self.root).commit(revision).await;
        let commit = commit.map_err(|error| baseline_error(revision, &error))?;
        Ok(Base { revision: revision.to_owned(), commit })
    }

    /// Compares each project with itself on the base.
    pub(super) async fn compare(
        &self,
        base: &Base,
        request: &TestRequest,
        projects: &mut [TestedProject],
        notes: &mut Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<(), TesterError> {
        let Base { revision: base, commit } = base;
        let mut before = self.remembered(commit).await?;
        if before.is_empty() {
            before = self.run_on(base, commit, request, cancel).await?;
        } else {
            notes.push(format!("the results on `{base}` are those of an earlier run of that commit"));
        }
        for project in projects {
            let same = |report: &&TestReport| {
                report.framework == project.report.framework
                    && place(report, &self.root) == place(&project.report, &self.root)
            };
            match before.iter().find(same) {
                Some(report) => project.comparison = Some(compare(base, report, &project.report)),
                None => {
                    notes.push(format!("on `{base}` there are no {} tests here", project.report.framework))
                }
            }
        }
        Ok(())
    }

    /// Whole runs of this very commit, the newest of each project.
    async fn remembered(&self, commit: &Oid) -> Result<Vec<TestReport>, TesterError> {
        let mut reports: Vec<TestReport> = Vec::new();
        for tested in self.store.test_runs(&TestQuery::default()).await? {
            let run = &tested.run;
            let known = reports.iter().any(|report| {
                report.framework.name() == run.framework && place(report, &self.root) == run.root
            });
            if run.whole && run.commit.as_ref() == Some(commit) && !known {
                reports.extend(self.report_of(run, &tested.results));
            }
        }
        Ok(reports)
    }

    pub(super) fn report_of(&self, run: &TestRun, results: &[TestResult]) -> Option<TestReport> {
        let mut report = TestReport::empty(Framework::named(&run.framework)?);
        let verdict = Verdict::named(&run.verdict)?;
        (report.verdict, report.success) = (verdict, verdict.is_green());
        report.root = Some(self.root.join(&run.root).to_string().trim_end_matches('/').to_owned());
        report.duration = run.duration;
        for result in results {
            report.summary.add(result.status);
            report.tests.push(TestCase {
                name: result.name.clone(),
                package: result.package.clone(),
                status: result.status,
                duration: result.duration,
                ..TestCase::default()
            });
        }
        Some(report)
    }

    async fn run_on(
        &self,
        base: &str,
        commit: &Oid,
        request: &TestRequest,
        cancel: &CancellationToken,
    ) -> Result<Vec<TestReport>, TesterError> {
        let scratch = tempfile::Builder::new().prefix("rehearsal-baseline-").tempdir()?;
        let checkout = Utf8PathBuf::try_from(scratch.path().join("tree"))
            .map_err(camino::FromPathBufError::into_io_error)?;
        let git = Git::at(&self.root);
        let args = ["worktree", "add", "--detach", "--force", checkout.as_str(), commit.as_str()];
        git.run(&args).await.map_err(|error| baseline_error(base, &error))?;
        let began = self.clock.now();
        let mut there = request.clone();
        there.root.clone_from(&checkout);
        let run = rehearsal_testing::run(&there, &self.spawner(), &RunWatcher::none(), cancel).await;
        // Whether it worked or not: a checkout that stays would be in everybody's way.
        let _ = git.run(&["worktree", "remove", "--force", checkout.as_str()]).await;
        let mut reports = run.projects;
        for report in &mut reports {
            let place = place(report, &checkout);
            report.root = Some(self.root.join(place).to_string().trim_end_matches('/').to_owned());
        }
        let tree = rehearsal_testing::WorkingTree {
            commit: Some(commit.clone()),
            hash: commit.to_string(),
            clean: true,
        };
        let ran = Ran { request, projects: &[], tree: Some(&tree), began };
        self.remember(&reports, &ran, &mut Vec::new()).await;
        Ok(reports)
    }
}

/// Where a project is within its checkout.
fn place(report: &TestReport, checkout: &Utf8Path) -> String {
    let root = Utf8Path::new(report.root.as_deref().unwrap_or_default());
    root.strip_prefix(checkout).unwrap_or(root).to_string()
}

fn baseline_error(base: &str, error: &GitError) -> TesterError {
    let reason = match error {
        GitError::UnknownRevision { .. } => "there is no such commit".to_owned(),
        error => error.to_string(),
    };
    TesterError::Baseline { revision: base.to_owned(), reason }
}
