//! `task_done`, `task_block`, `progress`, `decide`.

use insta::assert_snapshot;
use rehearsal_agent::result_file::{read_report, read_result};
use rehearsal_core::{ReportedDecision, ReportedTask};
use rehearsal_crew::{CallEnd, Permissions};
use serde_json::json;

use crate::place::Place;

#[tokio::test]
async fn what_is_reported_is_what_the_engine_reads() {
    let place = Place::new().may(Permissions::default());
    assert_eq!(place.text("task_done", json!({})).await, "reported: `task1` is done");
    assert_eq!(
        place.text("task_block", json!({"id": "t2", "reason": "no key"})).await,
        "reported: `t2` is blocked"
    );
    assert_eq!(place.text("progress", json!({"text": "half way"})).await, "noted");
    let report = read_report(&place.workplace.run_dir);
    let (done, blocked) = (
        ReportedTask::Done { id: "task1".into(), reason: None },
        ReportedTask::Blocked { id: "t2".into(), reason: "no key".into() },
    );
    assert_eq!((report.tasks, report.progress), (vec![done, blocked], vec!["half way".to_owned()]));
}

#[tokio::test]
async fn a_reviewer_decides_and_the_last_decision_counts() {
    let place = Place::new();
    let silent = place.call("decide", json!({"decision": "reject"})).await;
    assert_eq!(silent.end, CallEnd::Malformed);
    assert_eq!(silent.text, "ERROR: who rejects says in `comment` what is to be changed");
    assert!(read_result(&place.workplace.run_dir).is_none());
    place.call("decide", json!({"decision": "reject", "comment": "no test"})).await;
    assert_eq!(place.text("decide", json!({"decision": "approve"})).await, "decided: it may pass");
    let result = read_result(&place.workplace.run_dir).unwrap().unwrap();
    assert_eq!((result.decision, result.comment), (Some(ReportedDecision::Approve), None));
    assert_snapshot!(place.text("decide", json!({"decision": "maybe"})).await, @"ERROR: `decide` cannot be called like this: `decision`: value must be one of 'approve', 'reject'; it takes `comment`, `decision` (required)");
}

/// The run's directory can be written by commands.
#[tokio::test]
async fn a_link_in_the_place_of_the_report_leads_nowhere() {
    let place = Place::new();
    let link = |name: &str| {
        std::os::unix::fs::symlink(place.outside.join("secret.txt"), place.workplace.run_dir.join(name))
            .unwrap();
    };
    link("report.jsonl");
    link("result.json");
    let called = place.call("progress", json!({"text": "x"})).await;
    assert_eq!(called.end, CallEnd::Failed);
    place.call("decide", json!({"decision": "approve"})).await;
    place.assert_outside_is_untouched();
}
