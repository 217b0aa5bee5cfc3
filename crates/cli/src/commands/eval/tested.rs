//! The tests of a trial's repository, as they end.

use std::collections::BTreeMap;
use std::sync::Arc;

use rehearsal_core::config::TestingSettings;
use rehearsal_core::{Clock, TestStatus};
use rehearsal_engine::{Draws, Tester, Wanted};
use rehearsal_eval::run::Unmade;
use rehearsal_store::Store;
use rehearsal_testing::RunWatcher;
use tokio_util::sync::CancellationToken;

use super::scene::{Scene, failed};
use crate::context::variables;

/// All tests by name, as the project's configuration runs them.
pub(super) async fn by_name(
    scene: &Scene,
    settings: TestingSettings,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    cancel: &CancellationToken,
) -> Result<BTreeMap<String, TestStatus>, Unmade> {
    let tester = Tester {
        root: scene.repository.clone(),
        settings,
        base_branch: None,
        keep: scene.run.join("tests"),
        variables: variables(),
        store,
        clock,
        draws: Draws::random(),
    };
    let tested = tester.test(&Wanted::default(), &RunWatcher::none(), cancel).await;
    let tested = tested.map_err(|error| failed("the tests", &error))?;
    let tests = tested.projects.into_iter().flat_map(|project| project.report.tests);
    Ok(tests.map(|test| (test.name, test.status)).collect())
}
