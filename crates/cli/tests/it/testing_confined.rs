//! The sandbox around tests, seen from the command.

use serde_json::Value;

use crate::env::{PROGRAM, TestEnv};

fn project(test: &str) -> TestEnv {
    let env = TestEnv::new();
    env.script("test", test).commit("Test");
    env
}

/// Whether a layer of the sandbox holds on this machine. Says aloud if not.
fn holds(document: &Value, layer: &str) -> bool {
    let state = &document["sandbox"]["layers"][layer]["state"];
    let holds = state == "enforced";
    if !holds {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "left out: the layer `{layer}` is {state} on this machine");
    }
    holds
}

const WRITES: &str = "echo 1..1\necho made > made.txt\necho more >> README.md\necho 'ok 1 - writes'";

#[test]
fn what_tests_write_is_listed_and_the_files_stay_as_they_were() {
    let env = project(WRITES);
    let document = env.json(&["test"]);
    if !holds(&document, "files") {
        return;
    }
    let written: Vec<String> = document["files_written"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| format!("{} {}", file["path"].as_str().unwrap(), file["change"].as_str().unwrap()))
        .collect();
    assert_eq!(written, ["README.md modified", "made.txt created"]);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn without_a_sandbox_writes_stay() {
    let env = project(WRITES);
    let document = env.json(&["test", "--sandbox", "off"]);
    assert_eq!(document["sandbox"]["requested"], "off");
    assert_eq!(document["notes"], Value::Null, "nobody misses what was not asked for");
    assert_eq!(env.read("made.txt"), "made\n");
}

#[test]
fn a_project_can_be_writable_or_not() {
    let env = project(WRITES);
    env.file(".rehearsal/testing.yaml", "testing: { sandbox: { project: writable } }\n");
    env.must(&["test"]);
    assert_eq!(env.read("made.txt"), "made\n");
    let env = project("echo 1..1\nif touch made.txt; then echo 'not ok 1'; exit 1; fi\necho ok 1");
    env.file(".rehearsal/testing.yaml", "testing: { sandbox: { project: read_only } }\n");
    let document = env.run(&["test", "--json"]).document();
    if holds(&document, "files") {
        assert_eq!(document["success"], true, "{document:#}");
    }
}

#[test]
fn nothing_outside_can_be_written_and_no_home_is_seen() {
    let env = project(
        "echo 1..2
echo x > \"$SCRATCH/home/left\"
if touch /usr/left-by-a-test; then echo 'not ok 1 - writes'; else echo 'ok 1 - writes'; fi
if grep -q secret \"$HOME/.netrc\"; then echo 'not ok 2 - reads'; else echo 'ok 2 - reads'; fi",
    );
    std::fs::write(env.scratch.join("home/.netrc"), "secret").unwrap();
    let scratch = format!("SCRATCH={}", env.scratch);
    let document = env.run(&["test", "--env", &scratch, "--json"]).document();
    if holds(&document, "files") {
        assert_eq!(document["success"], true, "{document:#}");
        assert!(!env.scratch.join("home/left").exists());
        assert!(!std::path::Path::new("/usr/left-by-a-test").exists());
    }
}

/// Tries a host of a network that no machine has.
const FETCHES: &str = "import socket, unittest


class Fetch(unittest.TestCase):
    def test_fetches(self):
        socket.create_connection(('192.0.2.1', 80), 5)
";

#[test]
fn a_network_that_is_off_is_told_as_such_and_not_as_a_fault_of_the_code() {
    let env = TestEnv::new();
    env.file("test_fetch.py", FETCHES).commit("Test");
    if !env.has_tool("python3") {
        return;
    }
    let document = env.run(&["test", "--json"]).ends_with(3).document();
    if !holds(&document, "network") {
        return;
    }
    assert_eq!(document["verdict"], "sandbox_blocked", "{document:#}");
    assert_eq!(document["analysis"]["denials"][0]["kind"], "network", "{document:#}");
    env.run(&["test"]).says("denied: network access is off in the sandbox").says("`allow_network: true`");
    env.run(&["test", "--agent"]).says("network access is off in the sandbox");
    // One test that fails for another reason, and it is a failure.
    env.file("test_other.py", "import unittest\n\n\nclass Other(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(1, 2)\n");
    assert_eq!(env.run(&["test", "--json"]).document()["verdict"], "failed");
}

#[test]
fn who_uses_too_much_memory_is_told_so() {
    let env = TestEnv::new();
    env.script(
        "test",
        "echo 1..2\necho 'ok 1 - small'\npython3 -c 'bytearray(600 << 20)' || exit 137\necho 'ok 2'",
    );
    env.file(".rehearsal/testing.yaml", "testing: { sandbox: { max_memory: 100MB } }\n").commit("Test");
    if !env.has_tool("python3") {
        return;
    }
    let document = env.run(&["test", "--json"]).ends_with(3).document();
    if holds(&document, "memory") {
        assert_eq!(document["verdict"], "out_of_memory", "{document:#}");
        assert_eq!(document["tests"][0]["status"], "pass");
    }
}

#[test]
fn a_sandbox_that_is_required_and_whole_runs_the_tests() {
    let env = project("echo 1..1\necho ok 1");
    let doubtful = env.json(&["test"]);
    let whole = ["files", "network", "memory", "processes", "cpu", "kill", "syscalls", "privileges"]
        .iter()
        .all(|layer| holds(&doubtful, layer));
    let output = env.run(&["test", "--sandbox", "required"]);
    if whole {
        output.ends_with(0).says("PASSED").never_says("layer");
    } else {
        output.ends_with(9).says("the sandbox is required, and cannot be had");
    }
}

/// The repository belongs to `nobody`, who has no control groups; nothing if only root could arrange that.
fn of_nobody(test: &str) -> Option<TestEnv> {
    use std::io::Write;
    let env = project(test);
    let may = rustix::process::geteuid().is_root() && give_away(env.scratch.as_std_path()).is_ok();
    if may && as_nobody(&env, &["--version"]).is_some_and(|output| output.status.success()) {
        return Some(env);
    }
    let _ = writeln!(std::io::stderr(), "left out: the program cannot be run as `nobody` here");
    None
}

const NOBODY: u32 = 65534;

fn give_away(path: &std::path::Path) -> std::io::Result<()> {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY))?;
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path)? {
            give_away(&entry?.path())?;
        }
    }
    Ok(())
}

fn as_nobody(env: &TestEnv, args: &[&str]) -> Option<std::process::Output> {
    use std::os::unix::process::CommandExt;
    env.command(PROGRAM).args(args).uid(NOBODY).gid(NOBODY).output().ok()
}

#[test]
fn a_layer_that_is_missing_is_a_note_and_where_it_is_required_nothing_runs() {
    let Some(env) = of_nobody("echo 1..1\necho ok 1") else { return };
    let output = as_nobody(&env, &["test"]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("note: the sandbox's layer `memory`"), "{said}");
    let output = as_nobody(&env, &["test", "--sandbox", "required"]).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(said.starts_with("error: the sandbox is required, and cannot be had: "), "{said}");
    assert!(said.contains("memory"), "{said}");
    assert!(said.contains("hint: `rehearsal doctor` shows which layer is missing"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).is_empty());
}
