//! `bash`.

use std::time::Duration;

use insta::assert_snapshot;
use rehearsal_crew::{CallEnd, Permissions, Tools};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::place::{ALL, Place, SECRET, call};

#[tokio::test]
async fn a_command_works_in_the_worktree_and_its_output_is_told() {
    let place = Place::new();
    let command = "echo one; echo two >&2; echo three > made.txt";
    assert_eq!(place.text("bash", json!({"command": command})).await, "one\ntwo\n");
    assert_eq!(place.read("made.txt"), "three\n");
    assert_eq!(place.text("bash", json!({"command": "true"})).await, "(nothing was printed)\n");
    let failed = place.call("bash", json!({"command": "echo no; exit 3"})).await;
    assert_eq!((failed.text.as_str(), failed.end), ("ERROR: exit code 3\nno\n", CallEnd::Failed));
    let killed = place.call("bash", json!({"command": "kill -9 $$"})).await;
    assert_eq!(killed.text, "ERROR: ended by signal 9\n");
}

#[tokio::test]
async fn the_environment_has_no_key_and_says_which_run_it_is() {
    let place = Place::new();
    let text = place.text("bash", json!({"command": "env; cat /proc/*/environ | tr '\\0' '\\n'"})).await;
    assert!(!text.contains("ANTHROPIC_API_KEY") && !text.contains(SECRET), "{text}");
    let run = format!("REHEARSAL_RUN_ID={}", place.workplace.run);
    assert!(text.contains(&run) && text.contains("TASK_ID=task1"), "{text}");
}

#[tokio::test]
async fn only_the_worktree_and_what_a_commit_needs_can_be_written() {
    let place = Place::new().file("a", "a").file(".rehearsal/config.yaml", "agents: {}\n");
    let config = place.read(".git/config");
    let command = format!(
        "for file in {}/made .git/hooks/pre-commit .git/config .rehearsal/config.yaml; do echo x >> $file; done; \
         git add a && git -c user.name=Ann -c user.email=ann@example.org commit -qm First && git log --format=%s",
        place.outside
    );
    let text = place.text("bash", json!({"command": command})).await;
    assert!(text.ends_with("First\n"), "{text}");
    assert_eq!(text.lines().count(), 5, "{text}");
    place.assert_outside_is_untouched();
    assert_eq!(
        (place.read(".git/config"), place.read(".rehearsal/config.yaml")),
        (config, "agents: {}\n".into())
    );
    assert!(!place.root.join(".git/hooks/pre-commit").exists());
    assert_eq!(place.git(&["log", "--format=%s"]), "First\n");
}

#[tokio::test]
async fn the_network_is_there_only_for_a_role_that_may_use_the_web() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asks = json!({"command": format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected")});
    let place = Place::new();
    let without = place.call("bash", asks.clone()).await;
    assert_eq!(without.end, CallEnd::Failed, "{}", without.text);
    let with = place.may(Permissions { web: true, ..ALL });
    assert_eq!(with.text("bash", asks).await, "connected\n");
}

#[tokio::test]
async fn what_takes_too_long_is_ended_with_all_that_it_started() {
    let place = Place::new();
    let command = "echo begun; (trap '' TERM; setsid sleep 1000) & sleep 1000";
    let called = place.call("bash", json!({"command": command, "timeout_seconds": 1})).await;
    assert_eq!(called.end, CallEnd::Failed);
    assert!(
        called.text.starts_with("ERROR: killed, since it took longer than 1 s\nbegun\n"),
        "{}",
        called.text
    );
    assert_eq!(place.processes(), 0);
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_killed_and_told() {
    let place = Place::new();
    let text = place.text("bash", json!({"command": "(setsid sleep 1000 &) ; sleep 1000 & echo done"})).await;
    assert_snapshot!(text, @"
    done
    [2 processes were still running, and were killed]
    ");
    assert_eq!(place.processes(), 0);
}

#[tokio::test]
async fn a_command_that_is_cancelled_is_gone_at_once() {
    let place = Place::new();
    let toolbox = place.toolbox().await;
    let cancel = CancellationToken::new();
    let request = call("bash", &json!({"command": "trap '' TERM; touch begun; sleep 1000; sleep 1000"}));
    let stop = async {
        while !place.root.join("begun").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(place.processes() > 0);
        cancel.cancel();
    };
    let (called, ()) = tokio::join!(toolbox.call(&request, &cancel), stop);
    assert_eq!(called.text, "ERROR: stopped, since the run was cancelled");
    assert_eq!(place.processes(), 0);
}

#[tokio::test]
async fn endless_output_is_kept_by_its_beginning_and_its_end() {
    let place = Place::new();
    let command = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done; echo the end";
    let text = place.text("bash", json!({"command": command})).await;
    assert!(text.len() < 32 << 10, "{}", text.len());
    assert!(text.starts_with("line 1\nline 2\n") && text.ends_with("line 20000\nthe end\n"));
    let mark = text.lines().find(|line| line.starts_with("[…")).unwrap();
    assert_snapshot!(mark, @"[… 179218 bytes left out; write to a file, and look at parts of it …]");
    let endless = place.text("bash", json!({"command": "yes", "timeout_seconds": 1})).await;
    assert!(endless.starts_with("ERROR: killed, since it took longer than 1 s\ny\ny\n"));
    assert!(endless.len() < 32 << 10, "{}", endless.len());
}
