//! Commands of the user around each call.

use std::time::Duration;

use insta::assert_snapshot;
use rehearsal_core::config::HumanDuration;
use rehearsal_crew::{CallEnd, Hook, Toolbox};
use serde_json::json;

use crate::place::{Place, SECRET};

fn hook(matcher: Option<&str>, command: &str) -> Hook {
    Hook { matcher: matcher.map(str::to_owned), command: command.into(), timeout: None }
}

#[tokio::test]
async fn hooks_see_the_call_and_what_came_of_it() {
    let mut place = Place::new().file("a.txt", "hello\n");
    let tell = |file: &str| {
        format!("env | grep -E '^(REHEARSAL_(HOOK|TOOL)|TOOL_|AGENT_TYPE|TASK_ID)' | sort > {file}")
    };
    place.workplace.hooks.pre_tool = vec![hook(None, &tell("before.txt"))];
    place.workplace.hooks.post_tool = vec![hook(Some("read_*"), &tell("after.txt"))];
    assert_eq!(place.text("read_file", json!({"path": "a.txt"})).await, "     1\thello\n");
    assert_snapshot!(place.read("before.txt"), @r#"
    AGENT_TYPE=code
    REHEARSAL_HOOK_EVENT=pre_tool
    REHEARSAL_TOOL_ARGUMENTS={"path":"a.txt"}
    REHEARSAL_TOOL_NAME=read_file
    TASK_ID=task1
    TOOL_ARGS={"path":"a.txt"}
    TOOL_NAME=read_file
    "#);
    assert_snapshot!(place.read("after.txt"), @r#"
    AGENT_TYPE=code
    REHEARSAL_HOOK_EVENT=post_tool
    REHEARSAL_TOOL_ARGUMENTS={"path":"a.txt"}
    REHEARSAL_TOOL_FAILED=false
    REHEARSAL_TOOL_NAME=read_file
    REHEARSAL_TOOL_RESULT=     1	hello
    TASK_ID=task1
    TOOL_ARGS={"path":"a.txt"}
    TOOL_NAME=read_file
    TOOL_RESULT=     1	hello
    "#);
}

#[tokio::test]
async fn exit_code_2_refuses_the_call_and_the_model_reads_why() {
    let mut place = Place::new();
    place.workplace.hooks.pre_tool = vec![hook(
        Some("write_file|bash"),
        r#"case $TOOL_ARGS in *rm*) echo "no deleting here" >&2; exit 2;; esac"#,
    )];
    let refused = place.call("bash", json!({"command": "rm -rf x; touch made"})).await;
    assert_eq!((refused.text.as_str(), refused.end), ("ERROR: no deleting here", CallEnd::Denied));
    assert!(!place.root.join("made").exists());
    assert_eq!(place.text("bash", json!({"command": "echo fine"})).await, "fine\n");
    let long = place.call("bash", json!({"command": format!("true {}", "x".repeat(200_000))})).await;
    assert_eq!(long.end, CallEnd::Denied);
    assert_snapshot!(long.text, @"ERROR: arguments of 200019 bytes cannot be shown to a hook, which wants to see them; at most 102400 can");
}

#[tokio::test]
async fn a_call_is_refused_while_the_hook_before_it_fails_or_hangs() {
    let hangs = Hook { timeout: Some(HumanDuration(Duration::from_millis(100))), ..hook(None, "sleep 1000") };
    let broken = [
        (
            hook(None, "echo oh >&2; exit 7"),
            "the pre_tool hook `echo oh >&2; exit 7` failed with exit code 7: oh",
        ),
        (hook(None, "kill -9 $$"), "the pre_tool hook `kill -9 $$` was killed"),
        (hangs, "the pre_tool hook `sleep 1000` took too long"),
    ];
    for (hook, why) in broken {
        let mut place = Place::new();
        place.workplace.hooks.pre_tool = vec![hook];
        let called = place.call("bash", json!({"command": "touch made"})).await;
        assert_eq!((called.text, called.end), (format!("ERROR: {why}"), CallEnd::Denied));
        assert!(!place.root.join("made").exists());
    }
}

#[tokio::test]
async fn a_hook_that_fails_after_a_call_is_noted() {
    let mut place = Place::new();
    place.workplace.hooks.post_tool = vec![hook(None, "exit 3")];
    let called = place.call("bash", json!({"command": "echo fine"})).await;
    assert_eq!(called.end, CallEnd::Done);
    assert_snapshot!(called.text, @"
    fine
    [the post_tool hook `exit 3` failed with exit code 3]
    ");
}

#[tokio::test]
async fn hooks_see_no_key_and_are_confined_as_the_role_is() {
    let mut place = Place::new();
    let spy = format!("env > spied.txt; echo x > {}/made", place.outside);
    place.workplace.hooks.pre_tool = vec![hook(None, &spy)];
    place.call("bash", json!({"command": "true"})).await;
    assert!(!place.read("spied.txt").contains(SECRET));
    place.assert_outside_is_untouched();
}

#[tokio::test]
async fn a_matcher_that_is_none_is_told() {
    let mut place = Place::new();
    place.workplace.hooks.post_tool = vec![hook(Some("read_["), "true")];
    assert_snapshot!(Toolbox::open(&place.workplace).await.err().unwrap(), @"`read_[` does not say which tools a hook is for");
}
