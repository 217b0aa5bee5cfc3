use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{Stage, ended};

/// Starts a script and waits until it says that it is ready.
fn started(stage: &Stage, script: &str) -> Child {
    let path = stage.script(script);
    let mut child = stage.mock(&["--script", path.as_str()], &[]).spawn().unwrap();
    drop(child.stdin.take());
    let mut line = String::new();
    // The script says nothing more until it is told to go on, so nothing is lost in the buffer.
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// The id of its session, or 0 if that began outside of this pid namespace, which `getsid` has no word for.
fn session_of(process: &str) -> String {
    let stat = fs_err::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    after_name.split_whitespace().nth(3).unwrap().to_owned()
}

const UNTIL_GO: &str = "  - run: { command: \"until [ -e go ]; do sleep 0.01; done\" }\n";

#[test]
fn sigterm_ends_it_unless_it_ignores_that() {
    let stage = Stage::new();
    let mut mortal = started(&stage, "run:\n  - say: ready\n  - hang\n");
    kill_process(pid_of(&mortal), Signal::TERM).unwrap();
    assert_eq!(mortal.wait().unwrap().signal(), Some(15));

    let script = format!("run:\n  - ignore_sigterm\n  - say: ready\n{UNTIL_GO}  - say: survived\n");
    let stubborn = started(&stage, &script);
    kill_process(pid_of(&stubborn), Signal::TERM).unwrap();
    fs_err::write(stage.repo.join("go"), "").unwrap();
    let output = stubborn.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "survived\n");
    assert!(output.status.success());
}

#[rstest]
#[case::kill("{ signal: kill }", None, Some(9))]
#[case::segv("{ signal: segv }", None, Some(11))]
#[case::abrt("{ signal: abrt }", None, Some(6))]
#[case::term("{ signal: term }", None, Some(15))]
#[case::exit("{ exit: 7 }", Some(7), None)]
fn a_crash_has_no_final_result(#[case] how: &str, #[case] code: Option<i32>, #[case] signal: Option<i32>) {
    let stage = Stage::new();
    let script = format!("run:\n  - say: about to crash\n  - crash: {how}\n");
    let crashed = stage.play_as(Some("gemini"), &[], &script);
    assert_eq!((crashed.status.code(), crashed.status.signal()), (code, signal));
    assert!(crashed.stdout.contains("about to crash"));
    assert!(!crashed.stdout.contains(r#""type":"result""#), "{}", crashed.stdout);
}

#[test]
fn an_exit_status_may_contradict_the_final_result() {
    let stage = Stage::new();
    let ended = stage.play_as(Some("gemini"), &[], "run:\n  - say: fine\n  - exit: 4\n");
    assert_eq!(ended.code(), 4);
    assert!(ended.stdout.contains(r#""status":"success""#), "{}", ended.stdout);
}

#[test]
fn it_can_linger_after_its_final_result() {
    let stage = Stage::new();
    let path = stage.script("run:\n  - say: fine\n  - linger\n  - hang\n");
    let mut child = stage.mock(&["--script", path.as_str(), "--as", "codex"], &[]).spawn().unwrap();
    drop(child.stdin.take());
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let last = lines.map(Result::unwrap).find(|line| line.contains("turn.completed"));
    assert!(last.is_some());
    assert_eq!(child.try_wait().unwrap(), None);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_child_that_it_leaves_behind_is_out_of_reach() {
    let stage = Stage::new();
    let script =
        "run:\n  - spawn_child: { detach: true, ignore_sigterm: true, pid_file: child.pid }\n  - say: done\n";
    assert_eq!(stage.play(script).well().stdout, "done\n");
    let pid: i32 = stage.read("repo/child.pid").parse().unwrap();
    let child = Pid::from_raw(pid).unwrap();
    assert_eq!(session_of(&pid.to_string()), pid.to_string(), "it has a session of its own");
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    assert_ne!(caught & (1 << 14), 0, "SIGTERM is caught");
    kill_process(child, Signal::KILL).unwrap();
}

#[test]
fn a_child_may_stay_in_reach_and_hold_the_output_open() {
    let stage = Stage::new();
    let path =
        stage.script("run:\n  - spawn_child: { hold_output: true, pid_file: child.pid }\n  - say: done\n");
    let mut mock = stage.mock(&["--script", path.as_str()], &[]).spawn().unwrap();
    drop(mock.stdin.take());
    assert!(mock.wait().unwrap().success());
    let pid: i32 = stage.read("repo/child.pid").parse().unwrap();
    let child = Pid::from_raw(pid).unwrap();
    assert_eq!(session_of(&pid.to_string()), session_of("self"));
    let output = fs_err::read_link(format!("/proc/{pid}/fd/1")).unwrap();
    assert!(output.to_string_lossy().starts_with("pipe:"), "{}", output.display());
    kill_process(child, Signal::KILL).unwrap();
}

#[test]
fn it_prints_megabytes_in_lines_or_in_one() {
    let stage = Stage::new();
    let lines = stage.play("run:\n  - flood: { megabytes: 2 }\n").well();
    assert_eq!((lines.raw.len(), lines.stdout.lines().count()), (2 << 20, (2 << 20) / 128));
    let one = stage.play("run:\n  - flood: { megabytes: 2, newline: false }\n").well();
    assert_eq!((one.raw.len(), one.stdout.lines().count()), ((2 << 20) + 1, 1));
}

#[test]
fn it_breaks_utf8_and_json_within_its_format() {
    let stage = Stage::new();
    let broken =
        stage.play_as(Some("claude"), &[], "run:\n  - broken_utf8\n  - broken_json\n  - say: fine\n").well();
    let lines: Vec<&[u8]> = broken.raw.split(|byte| *byte == b'\n').collect();
    assert!(std::str::from_utf8(lines[1]).is_err());
    assert!(lines[1].starts_with(b"{") && lines[1].ends_with(b"}"));
    let half = std::str::from_utf8(lines[2]).unwrap();
    assert!(half.starts_with('{') && serde_json::from_str::<serde_json::Value>(half).is_err(), "{half}");
    assert!(serde_json::from_slice::<serde_json::Value>(lines[3]).is_ok());
}

#[test]
fn raw_text_goes_where_it_is_told() {
    let stage = Stage::new();
    let raw = stage.play("run:\n  - stdout: \"no newline for {task}\"\n  - stderr: \"warning\\n\"\n").well();
    assert_eq!((raw.stdout.as_str(), raw.stderr.as_str()), ("no newline for t42", "warning\n"));
}

#[test]
fn it_writes_outside_its_worktree_when_told() {
    let stage = Stage::new();
    stage.play("run:\n  - write_outside: { path: ../escaped.txt, content: \"{task}\" }\n").well();
    assert_eq!(stage.read("escaped.txt"), "t42");
}

#[test]
fn a_run_can_take_its_time() {
    let stage = Stage::new();
    let before = std::time::Instant::now();
    stage.play("run:\n  - sleep: 50ms\n").well();
    assert!(before.elapsed() >= std::time::Duration::from_millis(50));
}

#[test]
fn a_prompt_is_read_to_its_end_before_anything_is_done() {
    let stage = Stage::new();
    let path = stage.script("run:\n  - expect_prompt: { contains: the last word }\n");
    let mut child = stage.mock(&["--script", path.as_str()], &[]).spawn().unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(&vec![b'p'; 1 << 20]).unwrap();
    ended(child, "the last word").well();
}
