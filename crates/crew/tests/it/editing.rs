//! `write_file` and `edit_file`.

use insta::assert_snapshot;
use rehearsal_crew::CallEnd;
use serde_json::json;

use crate::place::Place;

#[tokio::test]
async fn a_file_is_made_with_its_directories_and_then_changed() {
    let place = Place::new();
    let written = place.text("write_file", json!({"path": "src/deep/a.txt", "content": "one\ntwo\n"})).await;
    assert_eq!(written, "created `src/deep/a.txt`: 2 lines");
    let edit = json!({"path": "src/deep/a.txt", "old_string": "two", "new_string": "2"});
    assert_eq!(place.text("edit_file", edit).await, "edited `src/deep/a.txt` at line 2");
    assert_eq!(place.read("src/deep/a.txt"), "one\n2\n");
    let again = place.text("write_file", json!({"path": "src/deep/a.txt", "content": ""})).await;
    assert_eq!(again, "replaced `src/deep/a.txt`: 0 lines");
}

#[tokio::test]
async fn what_cannot_be_edited_stays_as_it_is() {
    let place = Place::new().file("latin1", b"caf\xe9 caf\xe9").file("a", "x\nx\n");
    let edit = |path: &str| json!({"path": path, "old_string": "x", "new_string": "y"});
    assert_eq!(
        place.text("edit_file", edit("latin1")).await,
        "ERROR: `latin1` is no UTF-8 text, and cannot be edited"
    );
    assert_eq!(place.text("edit_file", edit("none")).await, "ERROR: `none` does not exist");
    assert_snapshot!(place.text("edit_file", edit("a")).await, @"ERROR: `old_string` is in `a` 2 times (lines 1, 2): add lines around it that make it unique, or set `replace_all`");
    assert_eq!(place.read("a"), "x\nx\n");
}

#[tokio::test]
async fn nothing_is_written_outside_or_where_agents_are_told_what_to_do() {
    let place = Place::new();
    std::os::unix::fs::symlink(&place.outside, place.root.join("link")).unwrap();
    let outside = place.outside.join("new");
    for path in
        ["../outside/new", "link/new", outside.as_str(), ".git/hooks/pre-commit", ".rehearsal/config.yaml"]
    {
        let called = place.call("write_file", json!({"path": path, "content": "x"})).await;
        assert_eq!(called.end, CallEnd::Failed, "{path}: {}", called.text);
        assert!(called.text.starts_with("ERROR: `"), "{}", called.text);
    }
    place.assert_outside_is_untouched();
}
