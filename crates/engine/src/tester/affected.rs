//! Only the tests that a change can reach; and none of a project that passed with these very files before.

use std::collections::HashSet;

use rehearsal_core::TestResult;
use rehearsal_core::TestStatus;
use rehearsal_git::Git;
use rehearsal_store::TestQuery;
use rehearsal_testing::{
    Affected, Candidate, Changes, EarlierRun, Framework, KnownDependencies, Project, Since, TestReport,
    TestRequest, WorkingTree, affected, dependencies, needs_dependencies,
};
use tokio_util::sync::CancellationToken;

use super::{Tester, TesterError};

/// Since when changes count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedSince {
    /// Where the work left the base branch; on that branch itself, the last commit.
    BaseBranch,
    /// Where the work left this branch or commit.
    Revision(String),
}

/// What is to be run, and what need not be.
#[derive(Debug, Default)]
pub struct Choice {
    /// Projects to run.
    pub projects: Vec<Project>,
    /// The others, with what there is to report of them.
    pub not_run: Vec<TestReport>,
    /// What is to be said about the choice.
    pub notes: Vec<String>,
}

/// So many runs are looked through for tests that failed.
const LOOKED_THROUGH: u32 = 50;

impl Tester {
    /// The projects to run: all that were found, or only what a change can reach of them.
    pub async fn choose(
        &self,
        request: &TestRequest,
        since: Option<&ChangedSince>,
        tree: Option<&WorkingTree>,
        cancel: &CancellationToken,
    ) -> Result<Choice, TesterError> {
        let (candidates, notes) = request.candidates();
        let mut choice = Choice { notes, ..Choice::default() };
        let Some(since) = since else {
            choice.projects.extend(candidates.into_iter().map(Project::from));
            return Ok(choice);
        };
        let changes = Changes::read(&self.root, self.since(since).await).await?;
        for candidate in candidates {
            let earlier = self.passed_before(request, &candidate, tree).await?;
            if !earlier.is_empty() {
                choice.not_run.extend(earlier);
                continue;
            }
            let affected = self.reached(request, &candidate, &changes, cancel).await?;
            if affected.is_nothing() {
                let root = request.root.join(&candidate.root);
                choice.not_run.push(TestReport::unaffected(&root, affected));
            } else {
                choice.projects.push(Project { candidate, affected: Some(affected) });
            }
        }
        Ok(choice)
    }

    async fn since(&self, since: &ChangedSince) -> Since {
        match since {
            ChangedSince::Revision(revision) => Since::Base(revision.clone()),
            ChangedSince::BaseBranch => self.base_revision().await.map_or(Since::LastCommit, Since::Base),
        }
    }

    /// The branch that the work is to go into; none if it is the one that is checked out, or nobody knows.
    async fn base_revision(&self) -> Option<String> {
        let git = Git::at(&self.root);
        let base = match &self.base_branch {
            Some(base) => base.clone(),
            None => git.default_base().await.ok()??,
        };
        let current = git.symbolic("HEAD").await.ok()?.unwrap_or_default();
        (base.trim_start_matches("origin/") != current).then_some(base)
    }

    async fn reached(
        &self,
        request: &TestRequest,
        candidate: &Candidate,
        changes: &Changes,
        cancel: &CancellationToken,
    ) -> Result<Affected, TesterError> {
        let (framework, place) = (candidate.framework, &candidate.root);
        let root = request.root.join(place);
        if let Some(file) = request.patterns.iter().find(|pattern| pattern.is_file(&root)) {
            let reason = format!("`{}` was asked for, whether the change reaches it or not", file.text());
            return Ok(Affected::everything(framework, reason));
        }
        let failed = self.failed_before(candidate).await?;
        let known = if candidate.invocation.shell.is_some() {
            KnownDependencies::not_told("a command cannot be told which tests to run")
        } else if needs_dependencies(framework, changes, place, &failed) {
            dependencies(request, candidate, &self.spawner(), cancel).await
        } else {
            KnownDependencies::unknown()
        };
        Ok(affected(framework, changes, place, known.told(), &failed))
    }

    /// The tests of a project that failed when they ran last, as far back as the last run of all of them.
    async fn failed_before(&self, candidate: &Candidate) -> Result<Vec<TestResult>, TesterError> {
        let root = Some(candidate.root.to_string());
        let query = TestQuery { root, limit: Some(LOOKED_THROUGH), ..TestQuery::default() };
        let (mut seen, mut failed) = (HashSet::new(), Vec::new());
        for tested in self.store.test_runs(&query).await? {
            if !is_of(candidate.framework, &tested.run.framework) {
                continue;
            }
            for result in tested.results.into_iter().filter(|result| result.status != TestStatus::NotRun) {
                let is_last = seen.insert((result.package.clone(), result.name.clone()));
                if is_last && (result.status.is_failure() || result.status == TestStatus::Timeout) {
                    failed.push(result);
                }
            }
            // One that was stopped half-way does not tell of all.
            if tested.run.whole && ["passed", "failed"].contains(&tested.run.verdict.as_str()) {
                break;
            }
        }
        Ok(failed)
    }

    /// The results of an earlier run of the whole project with the same files, if it passed and none failed since.
    async fn passed_before(
        &self,
        request: &TestRequest,
        candidate: &Candidate,
        tree: Option<&WorkingTree>,
    ) -> Result<Vec<TestReport>, TesterError> {
        let Some(tree) = tree.filter(|_| !request.coverage) else { return Ok(Vec::new()) };
        let key = Some(self.key(request, candidate));
        let (root, hash) = (candidate.root.to_string(), tree.hash.clone());
        let query = TestQuery { root: Some(root), tree: Some(hash), ..TestQuery::default() };
        let runs = self.store.test_runs(&query).await?;
        let own: Vec<_> =
            runs.iter().filter(|tested| is_of(candidate.framework, &tested.run.framework)).collect();
        let passed = own.iter().take_while(|tested| tested.run.verdict == "passed");
        let Some(at) = passed.map(|it| &it.run).find(|run| run.passed_with == key).map(|run| run.at) else {
            return Ok(Vec::new());
        };
        let of_that_run = own.iter().filter(|tested| tested.run.at == at);
        let reports = of_that_run.filter_map(|tested| {
            let mut report = self.report_of(&tested.run, &tested.results)?;
            report.earlier_run = Some(EarlierRun { run: tested.run.id.clone(), at });
            Some(report)
        });
        Ok(reports.collect())
    }

    /// Names all that a project's tests run with beside the files.
    pub(super) fn key(&self, request: &TestRequest, candidate: &Candidate) -> String {
        let sandbox = &self.settings.sandbox;
        let confined = (sandbox.level, sandbox.project, sandbox.allow_network);
        format!("{}{confined:?}", request.fingerprint(candidate))
    }
}

/// Whether a remembered run is of a project with this runner: cargo runs the documentation's tests for nextest.
pub(super) fn is_of(framework: Framework, name: &str) -> bool {
    framework.name() == name || framework == Framework::Nextest && name == Framework::CargoTest.name()
}
