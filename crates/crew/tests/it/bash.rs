//! `bash`.

use insta::assert_snapshot;
use rehearsal_crew::CallEnd;
use serde_json::json;

use crate::place::{Place, SECRET};

#[tokio::test]
async fn a_command_works_in_the_worktree_and_its_output_is_told() {
    let place = Place::new();
    let command = "echo one; echo two >&2; echo three > made.txt";
    assert_eq!(place.text("bash", json!({"command": command})).await, "one\ntwo\n");
    assert_eq!(place.read("made.txt"), "three\n");
    assert_eq!(place.text("bash", json!({"command": "true"})).await, "(nothing was printed)\n");
    let failed = place.call("bash", json!({"command": "echo no; exit 3"})).await;
    assert_eq!((failed.text.as_str(), failed.end), ("ERROR: exit code 3\nno\n", CallEnd::Failed));
}

#[tokio::test]
async fn the_environment_has_no_key_and_says_which_run_it_is() {
    let place = Place::new();
    let text = place.text("bash", json!({"command": "env; cat /proc/*/environ | tr '\\0' '\\n'"})).await;
    assert!(!text.contains("ANTHROPIC_API_KEY") && !text.contains(SECRET), "{text}");
    assert!(text.contains("REHEARSAL_RUN_ID=run1") && text.contains("TASK_ID=task1"), "{text}");
}

#[tokio::test]
async fn what_takes_too_long_is_ended_with_all_that_it_started() {
    let place = Place::new();
    let command = "echo begun; setsid sleep 1000 & sleep 1000";
    let called = place.call("bash", json!({"command": command, "timeout_seconds": 1})).await;
    assert_eq!(called.end, CallEnd::Failed);
    assert!(
        called.text.starts_with("ERROR: killed, since it took longer than 1 s\nbegun\n"),
        "{}",
        called.text
    );
}

#[tokio::test]
async fn endless_output_is_kept_by_its_beginning_and_its_end() {
    let place = Place::new();
    let command = "i=0; while :; do i=$((i+1)); echo line $i; [ $i = 20000 ] && break; done; echo the end";
    let text = place.text("bash", json!({"command": command})).await;
    assert!(text.len() < 32 << 10, "{}", text.len());
    assert!(text.starts_with("line 1\nline 2\n") && text.ends_with("line 20000\nthe end\n"));
    let mark = text.lines().find(|line| line.starts_with("[…")).unwrap();
    assert_snapshot!(mark, @"[… 179218 bytes left out; write to a file, and look at parts of it …]");
}
