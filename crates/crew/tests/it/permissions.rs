//! What a role may do holds where the tool runs, whatever the model was offered.

use insta::assert_snapshot;
use rehearsal_crew::{CallEnd, Permissions, Toolbox, Tools};
use rehearsal_llm::chat::{Arguments, ToolCall};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::place::{ALL, Place, call};

const READ: Permissions = Permissions { read: true, write: false, execute: false, web: false };

#[tokio::test]
async fn a_model_is_told_only_of_what_its_role_may_use() {
    let names = async |place: &Place| {
        place.toolbox().await.definitions().into_iter().map(|tool| tool.name).collect::<Vec<_>>().join(" ")
    };
    assert_snapshot!(names(&Place::new()).await, @"read_file glob grep git_diff edit_file write_file bash task_done task_block progress decide");
    assert_snapshot!(names(&Place::new().may(READ)).await, @"read_file glob grep git_diff task_done task_block progress decide");
    assert_snapshot!(names(&Place::new().may(Permissions::default())).await, @"task_done task_block progress decide");
}

#[tokio::test]
async fn what_a_role_may_not_do_is_refused_at_the_call() {
    let place = Place::new().file("a", "a").may(READ);
    for (tool, arguments) in [
        ("write_file", json!({"path": "a", "content": "b"})),
        ("edit_file", json!({"path": "a", "old_string": "a", "new_string": "b"})),
        ("bash", json!({"command": "echo b > a"})),
    ] {
        let called = place.call(tool, arguments).await;
        assert_eq!(called.end, CallEnd::Denied);
        assert!(
            called.text.starts_with(&format!("ERROR: `{tool}` needs the permission `")),
            "{}",
            called.text
        );
    }
    assert_eq!(place.read("a"), "a");
    let blind = place.may(Permissions { read: false, ..ALL });
    let called = blind.call("read_file", json!({"path": "a"})).await;
    assert_snapshot!(called.text, @"ERROR: `read_file` needs the permission `read`, which the role `code` does not have");
}

#[tokio::test]
async fn a_tool_that_the_role_lacks_is_refused_and_an_unknown_one_gets_the_nearest() {
    let mut place = Place::new();
    place.workplace.tools = vec!["read_file".into(), "grep".into()];
    let lacks = place.call("bash", json!({"command": "true"})).await;
    assert_eq!(lacks.end, CallEnd::Denied);
    assert_snapshot!(lacks.text, @"ERROR: the role `code` does not have the tool `bash` here");
    let unknown = place.call("readfile", json!({"path": "a"})).await;
    assert_eq!(unknown.end, CallEnd::Malformed);
    assert_snapshot!(unknown.text, @"ERROR: there is no tool `readfile`; did you mean `read_file`?");
    assert_snapshot!(place.text("fly", json!({})).await, @"ERROR: there is no tool `fly`");
    place.workplace.tools.push("gerp".into());
    assert_snapshot!(Toolbox::open(&place.workplace).await.err().unwrap(), @"there is no tool `gerp`; did you mean `grep`?");
}

/// Builds and tests work without the permission to write; nothing of it stays.
#[tokio::test]
async fn a_role_that_may_execute_and_not_write_changes_nothing() {
    let place = Place::new().file("a", "a\n").may(Permissions { write: false, ..ALL });
    let text = place.text("bash", json!({"command": "echo b > a; cat a"})).await;
    assert_eq!(text, "b\n");
    assert_eq!(place.read("a"), "a\n");
}

#[tokio::test]
async fn arguments_that_are_giant_deep_or_no_json_are_refused() {
    let place = Place::new();
    let toolbox = place.toolbox().await;
    let refused = async |arguments: String| {
        let call = ToolCall { arguments: Arguments::Text(arguments), ..call("read_file", &Value::Null) };
        let called = toolbox.call(&call, &CancellationToken::new()).await;
        assert_eq!(called.end, CallEnd::Malformed);
        called.text
    };
    assert_snapshot!(refused(format!("{{\"path\": \"{}\"}}", "x".repeat(3 << 20))).await, @"ERROR: the arguments have 3145740 bytes, and may have 2097152");
    assert_snapshot!(refused("{\"path\": ".into()).await, @"ERROR: the arguments of `read_file` are no JSON: EOF while parsing a value at line 1 column 9");
    assert_snapshot!(refused("[".repeat(100_000)).await, @"ERROR: the arguments of `read_file` are no JSON: recursion limit exceeded at line 1 column 128");
    assert_snapshot!(refused("[1]".into()).await, @"ERROR: `read_file` cannot be called like this: want object, but got array; it takes `limit`, `offset`, `path` (required)");
    let long = refused(format!("{{\"path\": 1, \"{}\": 1}}", "y".repeat(10_000))).await;
    assert!(long.len() < 1000, "{long}");
}

#[tokio::test]
async fn only_what_changes_nothing_runs_beside_others() {
    let toolbox = Place::new().toolbox().await;
    let reads: Vec<&str> =
        rehearsal_crew::TOOL_NAMES.into_iter().filter(|name| toolbox.only_reads(name)).collect();
    assert_snapshot!(reads.join(" "), @"read_file glob grep git_diff run_tests web_search");
    assert!(toolbox.only_reads("unknown"));
}

#[tokio::test]
async fn a_run_that_was_cancelled_calls_nothing_more() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let called = place.toolbox().await.call(&call("bash", &json!({"command": "touch made"})), &cancel).await;
    assert_eq!(
        (called.text.as_str(), called.end),
        ("ERROR: stopped, since the run was cancelled", CallEnd::Failed)
    );
    assert!(!place.root.join("made").exists());
}
