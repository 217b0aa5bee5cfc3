//! What `.rehearsal/config.yaml` and `.rehearsal/testing.yaml` say about tests, and what is answered to slips in them.

use insta::assert_snapshot;

use crate::env::TestEnv;

const SAYS_MOOD: &str = "echo 1..1\necho \"ok 1 - ${MOOD:-no mood}\"";

/// The settings are written as the section `testing`, indented by two spaces.
fn configured(file: &str, section: &str) -> TestEnv {
    let env = TestEnv::new();
    env.script("test", SAYS_MOOD)
        .file(&format!(".rehearsal/{file}.yaml"), format!("testing:\n{section}"))
        .commit("Test");
    env
}

const FILES: [&str; 2] = ["config", "testing"];

#[test]
fn the_command_and_its_variables_are_taken_from_either_file() {
    for file in FILES {
        let env = configured(file, "  command: sh ./test\n  environment: { MOOD: calm }\n");
        let document = env.json(&["test"]);
        assert_eq!(document["tests"][0]["name"], "calm", "{file}");
        assert!(document["command"].as_str().unwrap().contains("sh ./test"), "{document:#}");
        // A flag wins.
        assert_eq!(env.json(&["test", "--env", "MOOD=wild"])["tests"][0]["name"], "wild");
    }
}

#[test]
fn a_file_of_its_own_wins_over_the_section() {
    let env = configured("config", "  command: echo one\n");
    env.file(".rehearsal/testing.yaml", "testing:\n  command: echo two\n");
    assert_eq!(env.json(&["test"])["raw_output"], "two\n");
}

#[test]
fn a_timeout_holds() {
    for file in FILES {
        let env = configured(file, "  command: sleep 600\n  timeout: 1s\n");
        env.run(&["test"]).ends_with(124).says("TIMED OUT");
    }
}

#[test]
fn the_runner_can_be_chosen() {
    let env = configured("testing", "  framework: unittest\n");
    env.file(
        "test_cart.py",
        "import unittest\n\n\nclass Cart(unittest.TestCase):\n    def test_adds(self):\n        pass\n",
    );
    if env.has_tool("python3") {
        assert_eq!(env.json(&["test"])["framework"], "unittest");
    }
}

#[test]
fn patterns_select_and_what_cannot_be_left_out_is_told() {
    let env = configured("testing", "  framework: unittest\n  patterns: [adds]\n  exclude: [slow]\n");
    let test = "import unittest\n\n\nclass Cart(unittest.TestCase):\n    def test_adds(self):\n        pass\n\n    def test_other(self):\n        pass\n";
    env.file("test_cart.py", test);
    if !env.has_tool("python3") {
        return;
    }
    let document = env.json(&["test"]);
    assert_eq!(document["summary"]["total"], 1, "{document:#}");
    assert_eq!(document["tests"][0]["name"], "test_cart.Cart.test_adds");
    assert!(document["notes"].to_string().contains("unittest cannot leave tests out"), "{document:#}");
    // What is asked for on the command line counts instead.
    assert_eq!(env.json(&["test", "other"])["tests"][0]["name"], "test_cart.Cart.test_other");
}

#[test]
fn retries_are_taken_from_the_file() {
    let env = configured("testing", "  retries: 1\n  sandbox: off\n");
    env.script("test", "echo 1..1\nif [ -e seen ]; then echo 'ok 1 - x'; exit 0; fi\ntouch seen\necho 'not ok 1 - x'\nexit 1");
    assert_eq!(env.json(&["test"])["tests"][0]["status"], "flaky");
}

#[test]
fn slips_in_the_files_are_told_with_their_place() {
    let told = |file: &str, section: &str| configured(file, section).run(&["test"]).ends_with(2).to_string();
    assert_snapshot!(told("testing", "  timout: 3m\n"), @"
    [stderr]
    error: unknown field `timout`, expected one of framework, command, timeout, patterns, exclude, environment, retries, parallel, sandbox
      --> .rehearsal/testing.yaml:2:3
    hint: did you mean `timeout`?
    [exit 2]
    ");
    assert_snapshot!(told("testing", "  timeout: 20m\n"), @"
    [stderr]
    error: 20m is too long, at most 15m: run a part of the tests at a time, by a pattern
      --> .rehearsal/testing.yaml:2:12
    [exit 2]
    ");
    assert_snapshot!(told("config", "  retries: 1\n  timeout: 20m\n"), @"
    [stderr]
    error: 20m is too long, at most 15m: run a part of the tests at a time, by a pattern
      --> .rehearsal/config.yaml:3:12
    [exit 2]
    ");
    assert_snapshot!(told("testing", "  sandbox: { max_memory: lots }\n"), @"
    [stderr]
    error: `lots` is not a size: write `512MB` or `2GB`
      --> .rehearsal/testing.yaml:2:26
    [exit 2]
    ");
    assert_snapshot!(told("testing", "  sandbox: sometimes\n"), @"
    [stderr]
    error: unknown variant `sometimes`, expected one of auto, off, best_effort, required
      --> .rehearsal/testing.yaml:2:12
    [exit 2]
    ");
    assert_snapshot!(told("testing", "  framework: pytst\n"), @"
    [stderr]
    error: unknown test framework `pytst`
      --> .rehearsal/testing.yaml:2:14
    hint: did you mean `pytest`?
    [exit 2]
    ");
    assert_snapshot!(told("testing", " - [\n"), @"
    [stderr]
    error: unclosed bracket '['
      --> .rehearsal/testing.yaml:2:4
    [exit 2]
    ");
}
