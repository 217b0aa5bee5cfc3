//! What people type, and pipe.

use std::os::unix::ffi::OsStrExt;

use insta::assert_snapshot;

use crate::scene::{SESSION, Scene, watch};

#[test]
fn a_text_from_standard_input_is_bounded_and_must_be_text() {
    let scene = Scene::new();
    let set = ["session", "context", SESSION, "--set", "-"];
    scene.succeed(&["session", "context", SESSION, "--set", "as it was"]);
    assert_snapshot!(scene.told(&scene.rehearsal_reading(&set, b"ok\n\xff\n", 1)), @r"
    error: this is not text: it is not valid UTF-8
      --> standard input:2:1
    ");
    let endless = scene.rehearsal_reading(&set, &vec![0; 1 << 20], 1_000);
    assert_snapshot!(scene.told(&endless), @"error: `standard input` is too large: at most 4 MiB are read");
    assert_eq!(scene.succeed(&["session", "context", SESSION]), "as it was\n");
}

#[test]
fn a_task_of_ten_megabytes_is_refused_and_none_is_added() {
    let scene = Scene::new();
    let add = ["task", "add", "big", "--body", "-"];
    let megabyte = vec![b'x'; 1 << 20];
    assert_snapshot!(scene.told(&scene.rehearsal_reading(&add, &megabyte, 10)), @"error: `standard input` is too large: at most 4 MiB are read");
    assert_snapshot!(scene.told(&scene.rehearsal_reading(&add, &megabyte, 1)), @"error: the description is too long: 1048576 characters, at most 1000000 are allowed");
    assert!(scene.succeed(&["task", "list"]).starts_with("no tasks"));
}

#[test]
fn tricks_with_paths_lead_nowhere() {
    let scene = Scene::new();
    assert_snapshot!(scene.refused(&["--repo", "/no/such/place", "status"]), @"error: there is no directory `/no/such/place`");
    assert_snapshot!(scene.refused(&["--repo", "/etc/passwd", "status"]), @"error: there is no directory `/etc/passwd`");
    let told = scene.refused(&["flow", "check", "/etc/passwd"]);
    assert!(told.contains("--> /etc/passwd:1:1\n") && !told.contains("root:"), "{told}");
    assert_snapshot!(scene.refused(&["schema", "../../etc/passwd"]), @r"
    error: there is no schema `../../etc/passwd`
    hint: `rehearsal schema` lists all of them
    ");
    assert_snapshot!(scene.refused(&["logs", "../.."]), @r"
    error: there is no run `../..`
    hint: `rehearsal runs list` shows what there is
    ");
    let told = scene.refused(&["session", "new", "../x"]);
    assert!(
        told.contains("`../x` is not a valid session name: it must begin with a letter or a digit"),
        "{told}"
    );
}

#[test]
fn an_argument_that_is_no_text_is_refused() {
    let scene = Scene::new();
    let mut command = scene.command(&["task", "add"]);
    command.arg(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let told = scene.told(&watch(command.spawn().unwrap()));
    assert!(told.starts_with("error: invalid UTF-8 was detected in one or more arguments\n"), "{told}");
}

/// What would take over a terminal: clear it, rename it, write over the line.
const ESCAPES: &str = "evil \u{1b}[2J\u{1b}]0;owned\u{7}\r\u{9b}31m title";

#[test]
fn control_characters_never_reach_a_terminal() {
    let scene = Scene::new();
    scene.succeed(&["task", "add", ESCAPES, "--body", ESCAPES, "--criterion", ESCAPES]);
    scene.succeed(&["session", "progress", ESCAPES]);
    let list = scene.succeed(&["task", "list", "--json"]);
    let task = list.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
    for args in [
        &["task", "list"][..],
        &["task", "show", task],
        &["why", task],
        &["session", "show", SESSION],
        &["session", "progress"],
        &["status"],
        &["task", "show", ESCAPES],
        &["schema", ESCAPES],
        &["--repo", ESCAPES, "status"],
    ] {
        let mut command = scene.command(args);
        // As on a terminal: nothing is stripped on the way out.
        let said = watch(command.env("CLICOLOR_FORCE", "1").spawn().unwrap());
        let shown = format!("{}{}", said.out, said.err);
        let ours = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];
        let rest = ours.iter().fold(shown.clone(), |text, style| text.replace(style, ""));
        let raw = rest.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(raw, None, "{args:?}: {shown:?}");
    }
}
