//! `git_diff`.

use insta::assert_snapshot;
use serde_json::json;

use crate::place::Place;

fn project() -> Place {
    let mut place = Place::new().file("a.txt", "one\n").file("b.txt", "b\n");
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "First"]);
    place.git(&["checkout", "-qb", "work"]);
    place.workplace.base = Some("main".into());
    let place = place.file("a.txt", "two\n");
    place.git(&["commit", "-qam", "Second"]);
    place.file("b.txt", "c\n").file("new.txt", "n\n")
}

#[tokio::test]
async fn everything_since_the_work_began_is_shown_or_only_what_is_not_committed() {
    let place = project();
    assert_snapshot!(place.text("git_diff", json!({})).await, @"
    diff --git a/a.txt b/a.txt
    index 5626abf..f719efd 100644
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -one
    +two
    diff --git a/b.txt b/b.txt
    index 6178079..f2ad6c7 100644
    --- a/b.txt
    +++ b/b.txt
    @@ -1 +1 @@
    -b
    +c
    New files that git does not know yet:
    new.txt
    ");
    assert_snapshot!(place.text("git_diff", json!({"against": "head"})).await, @"
    diff --git a/b.txt b/b.txt
    index 6178079..f2ad6c7 100644
    --- a/b.txt
    +++ b/b.txt
    @@ -1 +1 @@
    -b
    +c
    New files that git does not know yet:
    new.txt
    ");
    assert_snapshot!(place.text("git_diff", json!({"stat": true, "paths": ["a.txt"]})).await, @"
    a.txt | 2 +-
    1 file changed, 1 insertion(+), 1 deletion(-)
    ");
    assert_snapshot!(place.text("git_diff", json!({"paths": ["../outside"]})).await, @"ERROR: `../outside` is outside of the worktree: only files below it can be used");
}

#[tokio::test]
async fn nothing_has_changed_is_an_answer_and_an_unknown_base_is_none() {
    let mut place = Place::new().file("a", "a\n");
    place.workplace.base = None;
    assert_snapshot!(place.text("git_diff", json!({})).await, @"
    New files that git does not know yet:
    a
    ");
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "First"]);
    assert_eq!(place.text("git_diff", json!({})).await, "nothing has changed\n");
    assert_snapshot!(place.text("git_diff", json!({"against": "base"})).await, @"ERROR: nobody said what the work began from; `head` is known");
    place.workplace.base = Some("gone".into());
    assert_snapshot!(place.text("git_diff", json!({})).await, @"ERROR: git failed: fatal: Not a valid object name gone");
}

/// Where tasks work: the repository itself is elsewhere, and in a place that the sandbox hides.
#[tokio::test]
async fn in_a_linked_worktree_it_is_the_same_and_commits_are_made() {
    let mut place = project();
    place.git(&["worktree", "add", "-q", "-b", "task", "../linked", "work"]);
    let linked = place.root.parent().unwrap().join("linked");
    place.workplace.worktree = linked.clone();
    let command = "echo three > a.txt; git -c user.name=Ann -c user.email=ann@example.org commit -qam Third && git log -1 --format=%s; \
                   echo x > $(git rev-parse --git-common-dir)/hooks/pre-commit || echo no hooks";
    let text = place.text("bash", json!({"command": command})).await;
    assert!(text.starts_with("Third\n") && text.ends_with("no hooks\n"), "{text}");
    assert_eq!(place.git(&["log", "-1", "--format=%s", "task"]), "Third\n");
    assert_snapshot!(place.text("git_diff", json!({"stat": true})).await, @"
    a.txt | 2 +-
    1 file changed, 1 insertion(+), 1 deletion(-)
    ");
    place.workplace.permissions.write = false;
    assert_eq!(place.text("bash", json!({"command": "git log -1 --format=%s"})).await, "Third\n");
    let absolute = json!({"path": linked.join("a.txt")});
    assert_eq!(place.text("read_file", absolute).await, "     1\tthree\n");
    let pointer = place.text("read_file", json!({"path": ".git"})).await;
    assert_eq!(pointer, "ERROR: `.git` belongs to git: it can be neither read nor changed as a file");
}

/// A repository can name programs that git is to run; a reviewer who may only read must not run them.
#[tokio::test]
async fn programs_that_the_repository_names_are_not_run() {
    let place = project().file(".gitattributes", "*.txt diff=evil\n");
    for key in ["diff.evil.textconv", "diff.evil.command", "diff.external", "core.fsmonitor", "core.pager"] {
        place.git(&["config", key, "echo EVIL"]);
    }
    let text = place.text("git_diff", json!({})).await;
    assert!(text.contains("-one\n+two") && !text.contains("EVIL"), "{text}");
}
