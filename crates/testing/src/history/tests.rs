use super::*;
use insta::assert_snapshot;
use proptest::prelude::*;

/// Runs from a row of letters: `p` passed, `f` failed, `y` flaky, `s` skipped; a digit is the tree of what follows.
fn records(runs: &str) -> Vec<TestRecord> {
    let test = TestKey {
        root: String::new(),
        framework: "go".to_owned(),
        package: "shop".to_owned(),
        name: "TestA".to_owned(),
    };
    let mut tree = '0';
    let mut records = Vec::new();
    for letter in runs.chars() {
        let status = match letter {
            'p' => TestStatus::Pass,
            'f' => TestStatus::Fail,
            'y' => TestStatus::Flaky,
            's' => TestStatus::Skip,
            digit => {
                tree = digit;
                continue;
            }
        };
        let at = i64::try_from(records.len()).unwrap();
        let tree = Some(tree.to_string());
        records.push(TestRecord { run: format!("r{at}"), at, tree, test: test.clone(), status, ms: 10 });
    }
    records
}

fn of(runs: &str) -> TestHistory {
    histories(&records(runs)).remove(0)
}

#[test]
fn different_results_of_the_same_tree_are_flaky() {
    assert_eq!(of("1ppfp").standing, Standing::Flaky);
    assert_eq!(of("1p2f3p").standing, Standing::Fixed, "the tree changed each time");
    assert_eq!(of("1pp2yp").standing, Standing::Flaky, "a retry within one run shows the same");
    assert_snapshot!(of("1ppfp").words(), @"flaky: failed in 1 of 4 runs, flips 67 % (21 to 94 %) of the time on the same tree");
}

#[test]
fn a_flaky_test_is_trusted_again_after_a_long_row_of_good_results() {
    let good = "p".repeat(TRUSTED_AFTER);
    assert_eq!(of(&format!("1pfp2{good}")).standing, Standing::Healthy);
    assert_eq!(of(&format!("1pf2{}", &good[1..])).standing, Standing::Flaky);
}

#[test]
fn a_failure_is_new_once_and_then_it_lasts() {
    assert_eq!(of("1p2p3f").standing, Standing::NewlyFailing);
    assert_eq!(of("1p2f3f").standing, Standing::Failing);
    let failing = of("1p2p3f4f5f");
    assert_eq!(
        (failing.first_bad.unwrap().run, failing.last_good.unwrap().run),
        ("r2".to_owned(), "r1".to_owned())
    );
    assert_snapshot!(of("1p2p3f4f").words(), @"failing since run r2; run r1 was good");
    assert_snapshot!(of("1f2f").words(), @"failing since run r0, the first that is known");
    assert_snapshot!(of("1f2p").words(), @"passes again; failed in 1 of 2 runs");
}

#[test]
fn a_skipped_run_says_nothing() {
    assert_eq!(of("1p2f3s").standing, Standing::NewlyFailing);
    assert_eq!(histories(&records("sss")), []);
}

#[test]
fn without_a_tree_nothing_is_proven() {
    let mut records = records("pfp");
    for record in &mut records {
        record.tree = None;
    }
    let history = histories(&records).remove(0);
    assert_eq!((history.standing, history.flips), (Standing::Fixed, None));
}

fn timed(ms: &[u64]) -> Option<Slower> {
    let mut records = records(&"p".repeat(ms.len()));
    for (record, ms) in records.iter_mut().zip(ms) {
        record.ms = *ms;
    }
    histories(&records).remove(0).slower
}

#[test]
fn a_test_is_slower_if_the_last_runs_leave_the_usual_spread() {
    let slower = timed(&[100, 110, 105, 95, 100, 400, 390, 410]).unwrap();
    assert_snapshot!(slower.words(), @"takes 400ms, used to take 100ms");
    assert_eq!(timed(&[100, 110, 105, 95, 100, 100, 390, 100]), None, "one slow run");
    assert_eq!(timed(&[100, 400, 105, 350, 100, 400, 390, 410]), None, "it always varied");
    assert_eq!(timed(&[100, 110, 105, 400, 390, 410]), None, "too few to compare with");
    assert_eq!(timed(&[1, 1, 1, 1, 1, 9, 9, 9]), None, "nobody waits for eight milliseconds");
}

proptest! {
    #[test]
    fn the_order_of_records_does_not_matter(runs in "[pfys123]{0,20}", seed in 0usize..20) {
        let ordered = records(&runs);
        let mut turned = ordered.clone();
        turned.rotate_left(seed.min(ordered.len()));
        prop_assert_eq!(histories(&turned), histories(&ordered));
    }
}
