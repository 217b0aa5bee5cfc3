//! Builds, lints and tests a repository: what it takes to say that a change is good. The command line and the MCP
//! server come here.

use rehearsal_agent::environment::tool_environment;
use rehearsal_core::BoxFuture;
use rehearsal_core::config::CheckSettings;
use rehearsal_testing::{CheckReport, CheckRequest, CheckedTests, Machine, NotRun, RunWatcher, Stage, check};
use tokio_util::sync::CancellationToken;

use crate::tester::{Tester, TesterError, Wanted};

/// Checks one repository.
pub struct Checker {
    /// How its tests run; its sandbox and its time limit also hold for each compiler and linter.
    pub tester: Tester,
    /// How it is built and linted.
    pub settings: CheckSettings,
}

/// What is wanted of one check.
#[derive(Debug, Clone)]
pub struct CheckWanted {
    /// Which stages; they run in their own order.
    pub stages: Vec<Stage>,
    /// Which tests; none: the configured ones.
    pub tests: Wanted,
}

impl Default for CheckWanted {
    /// Everything.
    fn default() -> Self {
        Self { stages: Stage::ALL.to_vec(), tests: Wanted::default() }
    }
}

impl Checker {
    /// Builds, then lints, then tests; a build that fails is the end of it.
    pub fn check<'a>(
        &'a self,
        wanted: &'a CheckWanted,
        watcher: &'a RunWatcher,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<CheckReport, TesterError>> {
        Box::pin(async move {
            let mut request = self.request(wanted);
            request.keep = Some(crate::tester::directory_for_output(&self.tester.keep, &self.tester.draws)?);
            let mut report = check(&request, &self.tester.spawner(), watcher, cancel).await?;
            if !wanted.stages.contains(&Stage::Test) {
                return Ok(report);
            }
            if let Some(why) = report.stops(cancel) {
                report.add_not_run(NotRun { name: Stage::Test, tools: Vec::new(), why });
                return Ok(report);
            }
            let tested = self.tester.test(&wanted.tests, watcher, cancel).await?;
            report.notes.extend(tested.notes);
            let tests = tested.projects.into_iter();
            let tests: Vec<CheckedTests> =
                tests.map(|project| CheckedTests::of(project.report, project.analysis.groups)).collect();
            report.duration += tests.iter().map(|tests| tests.duration).sum::<u64>();
            report.add_tests(tests);
            Ok(report)
        })
    }

    /// What would be built and linted.
    pub fn request(&self, wanted: &CheckWanted) -> CheckRequest {
        let testing = &self.tester.settings;
        CheckRequest {
            root: self.tester.root.clone(),
            machine: Machine::new(tool_environment(&self.tester.variables)),
            environment: testing.environment.clone(),
            stages: wanted.stages.clone(),
            build: self.settings.build.clone(),
            lint: self.settings.lint.clone(),
            timeout: testing.timeout.0,
            keep: None,
        }
    }
}
