//! `glob` and `grep`.

use insta::assert_snapshot;
use serde_json::json;

use crate::place::Place;

fn project() -> Place {
    Place::new()
        .file(".gitignore", "target/\n*.log\n!keep.log\n")
        .file("src/main.rs", "fn main() {\n    greet();\n}\n")
        .file("src/lib.rs", "pub fn greet() {\n    println!(\"Hello\");\n}\n")
        .file("src/.gitignore", "generated.rs\n")
        .file("src/generated.rs", "fn greet() {}\n")
        .file("target/out.rs", "fn greet() {}\n")
        .file("a.log", "greet\n")
        .file("keep.log", "greet\n")
        .file("logo.png", b"greet\0greet\n")
}

#[tokio::test]
async fn files_are_found_by_name_and_what_git_ignores_is_not() {
    let place = project();
    assert_snapshot!(place.text("glob", json!({"pattern": "**/*.rs"})).await, @"
    src/lib.rs
    src/main.rs
    ");
    assert_eq!(place.text("glob", json!({"pattern": "*.rs"})).await, "src/lib.rs\nsrc/main.rs\n");
    assert_eq!(place.text("glob", json!({"pattern": "*.log"})).await, "keep.log\n");
    assert_eq!(place.text("glob", json!({"pattern": "m*.rs", "path": "src"})).await, "src/main.rs\n");
    assert_eq!(place.text("glob", json!({"pattern": "*.md"})).await, "no file in `.` fits `*.md`\n");
    assert_snapshot!(place.text("glob", json!({"pattern": "a[", "path": "src"})).await, @"ERROR: `a[` is no pattern: unclosed character class; missing ']'");
    assert_snapshot!(place.text("glob", json!({"pattern": "*", "path": "../outside"})).await, @"ERROR: `../outside` is outside of the worktree: only files below it can be used");
}

#[tokio::test]
async fn lines_are_found_by_what_is_in_them() {
    let place = project();
    assert_snapshot!(place.text("grep", json!({"pattern": "greet\\(\\)"})).await, @"
    src/lib.rs:1:pub fn greet() {
    src/main.rs:2:    greet();
    ");
    assert_snapshot!(place.text("grep", json!({"pattern": "HELLO", "ignore_case": true, "context": 1})).await, @r#"
    src/lib.rs-1-pub fn greet() {
    src/lib.rs:2:    println!("Hello");
    src/lib.rs-3-}
    "#);
    assert_snapshot!(place.text("grep", json!({"pattern": "greet", "files_only": true})).await, @"
    keep.log
    src/lib.rs
    src/main.rs
    ");
    assert_snapshot!(place.text("grep", json!({"pattern": "greet", "path": "src/main.rs"})).await, @"src/main.rs:2:    greet();");
    assert_snapshot!(place.text("grep", json!({"pattern": "greet", "glob": "main.*"})).await, @"src/main.rs:2:    greet();");
    assert_snapshot!(place.text("grep", json!({"pattern": "nowhere"})).await, @"nothing in `.` fits `nowhere`");
    assert_snapshot!(place.text("grep", json!({"pattern": "(", "path": "src"})).await, @"
    ERROR: the pattern is no regular expression: regex parse error:
        (?:()
        ^
    error: unclosed group
    ");
    assert_snapshot!(place.text("grep", json!({"pattern": "x", "path": "none"})).await, @"ERROR: `none` does not exist");
}

#[tokio::test]
async fn too_much_is_cut_and_says_so() {
    let mut place = Place::new()
        .file("many", "needle\n".repeat(5000))
        .file("wide", format!("{}needle", "x".repeat(100_000)));
    for number in 0..600 {
        place = place.file(&format!("files/{number:04}"), "");
    }
    let lines = place.text("grep", json!({"pattern": "needle"})).await;
    assert_eq!(lines.lines().count(), 301);
    assert_snapshot!(lines.lines().last().unwrap(), @"[… stopped after 300 results; narrow the pattern, `path` or `glob` …]");
    let wide = place.text("grep", json!({"pattern": "needle", "path": "wide"})).await;
    assert!(wide.len() < 400 && wide.ends_with("x[…]\n"), "{wide}");
    let files = place.text("glob", json!({"pattern": "files/*"})).await;
    assert_snapshot!(files.lines().last().unwrap(), @"[… more than 500 files fit; narrow the pattern …]");
}

/// Each of these would make a careless search wait for ever, fill the memory, or look outside.
#[tokio::test]
async fn traps_in_the_tree_are_passed_over() {
    let place = Place::new()
        .file("a.txt", "needle\n")
        .file("fifo/b.txt", "needle\n")
        .file("huge/c.txt", "needle\n")
        .file("device/d.txt", "needle\n");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    for fifo in ["fifo/.gitignore", "fifo/pipe"] {
        let path = place.root.join(fifo);
        rustix::fs::mknodat(rustix::fs::CWD, path.as_str(), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    for sparse in ["huge/.gitignore", "huge/sparse"] {
        fs_err::File::create(place.root.join(sparse)).unwrap().set_len(10 << 30).unwrap();
    }
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, place.root.join(name)).unwrap();
    link("/dev/zero", "device/.gitignore");
    link(place.outside.as_str(), "outside");
    link(place.outside.join("secret.txt").as_str(), "secret");
    link(".", "loop");
    assert_snapshot!(place.text("grep", json!({"pattern": "needle|secret"})).await, @"
    a.txt:1:needle
    device/d.txt:1:needle
    fifo/b.txt:1:needle
    huge/c.txt:1:needle
    [left out: ignore rules, since `device/.gitignore` is outside of the worktree: only files below it can be used]
    [left out: ignore rules, since `fifo/.gitignore` is a pipe, and no regular file]
    [left out: ignore rules, since `huge/.gitignore` has 10737418240 bytes, and more than 65536 cannot be handled at once]
    [left out: `huge/.gitignore`, which has 10737418240 bytes]
    [left out: `huge/sparse`, which has 10737418240 bytes]
    ");
    assert_snapshot!(place.text("glob", json!({"pattern": "**"})).await, @"
    a.txt
    device/d.txt
    fifo/b.txt
    huge/.gitignore
    huge/c.txt
    huge/sparse
    [left out: ignore rules, since `device/.gitignore` is outside of the worktree: only files below it can be used]
    [left out: ignore rules, since `fifo/.gitignore` is a pipe, and no regular file]
    [left out: ignore rules, since `huge/.gitignore` has 10737418240 bytes, and more than 65536 cannot be handled at once]
    ");
}
