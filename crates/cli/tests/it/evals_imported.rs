//! `rehearsal eval import FILE`: what other tools have becomes an eval that runs.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::json::{schema, validate};

/// An agent that answers with what it is asked.
const ECHO: &str = "  implementer:
    driver: command
    program: cat";

const PROMPTFOO: &str = "description: Routing of the orchestrator
prompts:
  - 'Route: {{task}}'
providers:
  - exec:./orchestrator.sh
defaultTest:
  assert:
    - { type: not-icontains, value: sorry }
tests:
  - description: Search routing
    vars: { task: [find tests, find docs] }
    assert:
      - { type: contains, value: '{{task}}' }
      - { type: javascript, value: output.length < 400 }
  - description: Direct answer
    vars: { task: What is it? }
    assert:
      - { type: not-is-json }
      - { type: latency, threshold: 60000 }
  - description: Only for a model
    vars: { task: x }
    assert:
      - { type: similar, value: y, threshold: 0.8 }
";

fn project() -> TestEnv {
    let env = TestEnv::new();
    env.file(".rehearsal/config.yaml", format!("agents:\n{ECHO}\n")).commit("Configure");
    env
}

#[test]
fn a_configuration_of_promptfoo_becomes_an_eval_that_runs() {
    let env = project();
    env.file("promptfoo.yaml", PROMPTFOO);
    assert_snapshot!(env.run(&["eval", "import", "promptfoo.yaml", "--as", "routing"]), @"
    .rehearsal/evals/routing.yaml is written: 4 cases
    next: rehearsal eval run routing
    [stderr]
    warning: promptfoo.yaml:5:5: the provider `exec:./orchestrator.sh` has no counterpart
    warning: promptfoo.yaml:14:9: `javascript` is left out: it has no counterpart
    warning: promptfoo.yaml:20:5: of what is asserted of this case alone, nothing is left
    warning: promptfoo.yaml:23:9: `similar` is left out: it has no counterpart
    left out: 2 assertions, 1 setting
    ");
    assert_snapshot!(env.read(".rehearsal/evals/routing.yaml"), @r#"
    # Imported from promptfoo. `rehearsal schema eval` has the form of this file, `rehearsal eval run` runs it.
    name: routing
    about: Routing of the orchestrator
    assert:
    - {type: not-icontains, value: sorry}
    cases:
    - name: Search-routing
      group: test-1
      prompt: "Route: find tests"
      assert:
      - {type: contains, value: find tests}
    - name: Search-routing-2
      group: test-1
      prompt: "Route: find docs"
      assert:
      - {type: contains, value: find docs}
    - name: Direct-answer
      prompt: "Route: What is it?"
      assert:
      - {type: not-is-json}
      - {type: latency, threshold: 60000}
    - name: Only-for-a-model
      prompt: "Route: x"
    "#);
    let ran = env.run(&["eval", "run", "routing", "--json"]).ends_with(0).document();
    assert_eq!(ran["cells"].as_array().unwrap().len(), 4, "{ran:#}");
}

#[test]
fn an_import_is_told_as_a_document() {
    let env = project();
    env.file("promptfoo.yaml", PROMPTFOO);
    let document = env.json(&["eval", "import", "promptfoo.yaml", "--output", "-"]);
    validate(&schema(&env, "eval-import"), &document);
    assert_eq!((&document["cases"], &document["file"]), (&4.into(), &Value::Null));
    assert_eq!(document["notes"].as_array().unwrap().len(), 4, "{document:#}");
    let text = env.run(&["eval", "import", "promptfoo.yaml", "--output", "-"]).ends_with(0).stdout;
    assert_eq!(document["text"].as_str().unwrap().trim_end(), text.trim_end());
    assert!(!env.repo.join(".rehearsal/evals").exists());
}

/// A configuration, and what promptfoo 0.123.1 made of it with its `echo`: each prompt, and whether its test passed.
const THEIRS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/promptfoo");

#[test]
fn an_imported_eval_asks_and_grades_as_promptfoo_does() {
    let env = project();
    let theirs = |name: &str| std::fs::read_to_string(format!("{THEIRS}/{name}")).unwrap();
    env.file("config.yaml", theirs("config.yaml")).file("table.csv", theirs("table.csv"));
    env.must(&["eval", "import", "config.yaml"]);
    let run = env.run(&["eval", "run", "--json"]).ends_with(3).document();
    let trials =
        env.read(env.state_dir().join(format!("evals/{}/trials.jsonl", run["run"].as_str().unwrap())));
    let result = |line: &str| -> Value {
        let record: Value = serde_json::from_str(line).unwrap();
        json!([record["trial"]["output"], record["verdict"]])
    };
    let mut ours: Vec<String> = trials.lines().map(|line| result(line).to_string()).collect();
    let normal = |line: &str| serde_json::from_str::<Value>(line).unwrap().to_string();
    let mut theirs: Vec<String> = theirs("results.jsonl").lines().map(normal).collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
}

#[test]
fn a_configuration_in_json_and_one_from_a_pipe_are_the_same() {
    let env = project();
    let text = json!({ "prompts": ["Hi"], "tests": [{ "assert": [{ "type": "contains", "value": "Hi" }] }] });
    let import = ["eval", "import", "-", "--output", "-", "--as", "hi"];
    let first = env.run_with_input(&import, text.to_string()).ends_with(0);
    let yaml = "prompts: [Hi]\ntests: [&a { assert: [{ type: contains, value: Hi }] }]\n";
    assert_eq!(env.run_with_input(&import, yaml).stdout, first.stdout);
    let merged =
        "prompts: [Hi]\nbase: &base { assert: [{ type: contains, value: Hi }] }\ntests: [{ <<: *base }]\n";
    assert_eq!(env.run_with_input(&import, merged).stdout, first.stdout);
}

#[test]
fn what_is_there_already_is_not_written_over() {
    let env = project();
    env.file("promptfoo.yaml", PROMPTFOO).file(".rehearsal/evals/promptfoo.yaml", "mine");
    assert_snapshot!(env.run(&["eval", "import", "promptfoo.yaml"]), @"
    [stderr]
    error: `.rehearsal/evals/promptfoo.yaml` is already there
    hint: give it another name: --as NAME, or write it elsewhere: --output FILE
    [exit 2]
    ");
    assert_eq!(env.read(".rehearsal/evals/promptfoo.yaml"), "mine");
    env.run(&["eval", "import", "promptfoo.yaml", "--as", "../x"])
        .ends_with(2)
        .says("`../x` cannot be the name of an eval");
}

#[test]
fn what_cannot_be_imported_is_said_with_its_place() {
    let env = project();
    let import = |text: &str, args: &[&str]| {
        env.file("import.yaml", text);
        env.run(&[&["eval", "import", "import.yaml", "--output", "-"], args].concat()).ends_with(2)
    };
    assert_snapshot!(import("hello: world\n", &[]), @"
    [stderr]
    error: `import.yaml` looks like nothing that can be imported
    hint: say what it is: --format promptfoo, or --format swe-bench
    [exit 2]
    ");
    assert_snapshot!(import("prompts: [a\n", &[]), @"
    [stderr]
    error: unclosed bracket '['
      --> import.yaml:1:10
    [exit 2]
    ");
    assert_snapshot!(import("prompts: [a]\ntests: [{ assert: [{ type: python, value: x }] }]\n", &[]), @"
    [stderr]
    error: nothing can be imported: no case has an assertion that there is here
      --> import.yaml
    hint: line 2: a case is left out: no assertion of it is left; line 2: `python` is left out: it has no counterpart
    [exit 2]
    ");
    assert_snapshot!(import("{\"instance_id\": 1}\n{", &[]), @"
    [stderr]
    error: this is not an object of JSON: EOF while parsing an object
      --> import.yaml:2:1
    [exit 2]
    ");
    assert_snapshot!(import("prompts: [a]\n", &["--format", "swe-bench"]), @"
    [stderr]
    error: this is not an object of JSON: expected value
      --> import.yaml:1:1
    [exit 2]
    ");
    env.run(&["eval", "import", "nothing.yaml"]).ends_with(2).says("there is no file `[REPO]/nothing.yaml`");
    env.run(&["eval", "import", "."]).ends_with(2).says("is not a regular file");
    env.run(&["eval", "import"])
        .ends_with(2)
        .says("there is nothing to import")
        .says("or look for cases in the project's own history with `--history`");
}

#[test]
fn only_files_below_the_imported_one_are_read() {
    let env = project();
    std::fs::write(env.scratch.join("secret.txt"), "a secret").unwrap();
    std::os::unix::fs::symlink(env.scratch.join("secret.txt"), env.repo.join("link.txt")).unwrap();
    env.file("words/word.txt", "below\n").file(
        "import.yaml",
        "prompts: ['Say {{word}}']
tests:
  - vars: { word: file://words/word.txt }
    assert: [{ type: contains, value: below }]
  - vars: { word: file://../secret.txt }
    assert: [{ type: contains, value: x }]
  - vars: { word: file://link.txt }
    assert: [{ type: contains, value: x }]
  - vars: { word: file:///etc/passwd }
    assert: [{ type: contains, value: x }]
",
    );
    assert_snapshot!(env.run(&["eval", "import", "import.yaml", "--output", "-"]), @"
    # Imported from promptfoo. `rehearsal schema eval` has the form of this file, `rehearsal eval run` runs it.
    name: import
    cases:
    - name: test-1
      prompt: Say below
      assert:
      - {type: contains, value: below}
    [stderr]
    warning: import.yaml:5:19: a case is left out: `../secret.txt` is not read: it is outside of the file's directory
    warning: import.yaml:7:19: a case is left out: `link.txt` is not read: a link leads outside of the file's directory
    warning: import.yaml:9:19: a case is left out: `/etc/passwd` is not read: it is outside of the file's directory
    left out: 3 cases
    ");
}

/// Two repositories of instances: one is cloned, one is not.
fn instances(env: &TestEnv) {
    let clone = env.scratch.join("clones/shop__cart");
    std::fs::create_dir_all(clone.join("tests")).unwrap();
    std::fs::write(clone.join("test"), "#!/bin/sh\necho 1..1\nif sh tests/empty.sh; then echo 'ok 1 - empty'; else echo 'not ok 1 - empty'; exit 1; fi\n").unwrap();
    std::fs::write(clone.join("cart.sh"), "echo 4\n").unwrap();
    std::fs::write(clone.join("tests/empty.sh"), "[ \"$(sh cart.sh)\" = 4 ]\n").unwrap();
    let git = |args: &[&str]| {
        let output = env.command("git").current_dir(&clone).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["update-index", "--chmod=+x", "test"]);
    git(&["commit", "--quiet", "--message", "Begin"]);
    let instance = |id: &str, repo: &str| {
        json!({
            "instance_id": id,
            "repo": repo,
            "base_commit": git(&["rev-parse", "HEAD"]),
            "problem_statement": "An empty cart has 0.",
            "patch": "--- a/cart.sh\n+++ b/cart.sh\n@@ -1 +1 @@\n-echo 4\n+echo 0\n",
            "test_patch": "--- a/tests/empty.sh\n+++ b/tests/empty.sh\n@@ -1 +1 @@\n-[ \"$(sh cart.sh)\" = 4 ]\n+[ \"$(sh cart.sh)\" = 0 ]\n",
            "FAIL_TO_PASS": "[\"empty\"]",
            "PASS_TO_PASS": "[]",
        })
    };
    let lines =
        format!("{}\n{}\n", instance("shop__cart-1", "shop/cart"), instance("shop__till-2", "shop/till"));
    env.file("instances.jsonl", lines);
}

#[test]
fn instances_become_cases_that_the_known_patch_passes() {
    let env = project();
    instances(&env);
    let import = ["eval", "import", "instances.jsonl", "--repository", "../clones"];
    assert_snapshot!(env.run(&import), @"
    .rehearsal/evals/instances.yaml is written: 2 cases
    next: rehearsal eval run instances
    [stderr]
    warning: instances.jsonl:2:1: `shop__till-2`: there is no repository `shop/till` at `[SCRATCH]/clones/shop__till`: clone it there
    ");
    let oracle = env.run(&["eval", "oracle", "--json"]).ends_with(3).document();
    let told =
        |number: usize, what: &str| oracle["cases"][number][what]["verdict"].as_str().unwrap().to_owned();
    assert_eq!((told(0, "known_patch"), told(0, "nothing")), ("pass".into(), "fail".into()), "{oracle:#}");
    let missing = oracle["cases"][1]["nothing"]["because"][0].as_str().unwrap();
    assert!(
        missing.starts_with("the repository: there is no directory"),
        "what is not cloned cannot be tried: {missing}"
    );
    let one = [&import[..], &["--most", "1", "--as", "one"]].concat();
    env.run(&one).ends_with(0).says("one.yaml is written: 1 case");
    env.run(&["eval", "oracle", "one"]).ends_with(0);
}
