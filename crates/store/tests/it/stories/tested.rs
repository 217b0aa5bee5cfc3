use rehearsal_core::{EventKind, RunId, TestResult, TestRun, TestStatus, Timestamp};
use rehearsal_store::{Change, EventQuery, TestQuery};

use crate::bench::Bench;

fn run(number: u32, root: &str, tree: &str) -> TestRun {
    TestRun {
        id: RunId::new(format!("t{number}")).unwrap(),
        at: Timestamp(i64::from(number)),
        root: root.to_owned(),
        framework: "go".to_owned(),
        tree: Some(tree.to_owned()),
        commit: None,
        whole: true,
        verdict: "failed".to_owned(),
        duration: 12,
        total: 1,
        failed: 1,
        passed_with: None,
    }
}

fn result(name: &str) -> TestResult {
    TestResult { package: "calc".to_owned(), name: name.to_owned(), status: TestStatus::Fail, duration: 3 }
}

async fn add(bench: &Bench, run: TestRun, results: Vec<TestResult>) {
    bench.commit(vec![Change::AddTestRun { run: Box::new(run), results }]).await.unwrap();
}

pub(crate) async fn runs_of_tests_come_newest_first_and_of_one_project(bench: &Bench) {
    add(bench, run(1, "", "a"), vec![result("TestA")]).await;
    add(bench, run(2, "web", "a"), vec![]).await;
    add(bench, run(3, "", "b"), vec![result("TestB")]).await;
    let of_root = TestQuery { root: Some(String::new()), ..TestQuery::default() };
    let found = bench.store.test_runs(&of_root).await.unwrap();
    let ids: Vec<&str> = found.iter().map(|tested| tested.run.id.as_str()).collect();
    assert_eq!((ids, &found[0].results), (vec!["t3", "t1"], &vec![result("TestB")]));
    let of_tree = TestQuery { tree: Some("a".to_owned()), limit: Some(1), ..TestQuery::default() };
    assert_eq!(bench.store.test_runs(&of_tree).await.unwrap()[0].run.root, "web");
}

pub(crate) async fn a_run_of_tests_is_in_the_log_without_its_tests(bench: &Bench) {
    add(bench, run(1, "", "a"), vec![result("TestA")]).await;
    let events = bench.store.events(&EventQuery::default()).await.unwrap();
    assert_eq!(events.last().unwrap().kind, EventKind::TestsRan { run: Box::new(run(1, "", "a")) });
}

pub(crate) async fn history_forgets_what_is_old_and_what_is_too_large(bench: &Bench) {
    for number in 1..=203 {
        add(bench, run(number, "", "a"), vec![]).await;
    }
    let remembered = bench.store.test_runs(&TestQuery::default()).await.unwrap();
    assert_eq!((remembered.len(), remembered[199].run.id.as_str()), (200, "t4"));
    let huge = || vec![result(&"x".repeat(9 << 20))];
    add(bench, run(300, "", "a"), huge()).await;
    add(bench, run(301, "", "a"), huge()).await;
    let remembered = bench.store.test_runs(&TestQuery::default()).await.unwrap();
    let ids: Vec<&str> = remembered.iter().map(|tested| tested.run.id.as_str()).collect();
    assert_eq!(ids, ["t301"], "the newest is always kept");
}
