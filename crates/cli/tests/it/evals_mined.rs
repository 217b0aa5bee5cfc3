//! `rehearsal eval import --history`: a repository's own commits become cases, and each was really tried.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;

use crate::env::TestEnv;
use crate::json::{schema, validate};
use crate::running::wait_until;

/// Runs each of `tests/*.sh` as a test.
const RUNNER: &str = "count=0; bad=0
for file in tests/*.sh; do
  count=$((count + 1)); name=${file#tests/}
  if sh $file >/dev/null 2>&1; then echo \"ok $count - ${name%.sh}\"; else echo \"not ok $count - ${name%.sh}\"; bad=1; fi
done
echo 1..$count
exit $bad";

/// A runner and a program, and then a test.
fn begin(env: &TestEnv) {
    env.script("test", RUNNER).file("add.sh", "echo 4\n").commit("Begin");
    env.file("tests/runs.sh", "sh add.sh\n").commit("Test it");
}

/// A project with a commit of every kind.
fn project() -> TestEnv {
    let env = TestEnv::new();
    begin(&env);
    env.file("add.sh", "echo 5\n").file("tests/adds.sh", "[ \"$(sh add.sh)\" = 5 ]\n");
    env.file("NOTES.md", "5\n").commit("Add 2 and 3\n\nIt said 4.\n\nSigned-off-by: Ada <ada@example.org>");
    env.file("README.md", "# Sums\n").file("tests/more.sh", "true\n").commit("Tell of it, and test more");
    env.file("add.sh", "echo  5\n").file("tests/more.sh", "true # yes\n").commit("Tidy up");
    env.file("sub.sh", "echo 1\n").commit("Subtract without a test");
    std::fs::remove_file(env.repo.join("test")).unwrap();
    env.file("tests/more.sh", "true\n").file("sub.sh", "echo 2\n").commit("Lose the runner");
    env.script("test", RUNNER).commit("Find it again");
    env
}

#[test]
fn commits_whose_tests_fail_before_and_pass_after_become_cases() {
    let env = project();
    assert_snapshot!(env.run(&["eval", "import", "--history"]), @"
    .rehearsal/evals/history.yaml is written: 1 case
    next: rehearsal eval run history
    [stderr]
    looked at 8 commits: 3 touch tests and sources; 1 found, 1 without a test that fails before and passes after, 1 whose tests cannot be run (no test was run)
    ");
    let text = env.read(".rehearsal/evals/history.yaml");
    let shown = text
        .replace(&env.git(&["rev-parse", "HEAD~6"]), "[PARENT]")
        .replace(&env.git(&["rev-parse", "--short=8", "HEAD~5"]), "[COMMIT]");
    let shown: String = shown
        .lines()
        .filter(|line| !line.trim_start().starts_with("index "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_snapshot!(shown, @r#"
    # From the history of this repository: the tests of each commit fail before it and pass after it.
    # `rehearsal eval oracle` tries each case with the commit itself.
    name: history
    cases:
    - name: [COMMIT]-Add-2-and-3
      prompt: |
        Add 2 and 3
        
        It said 4.
        
        The tests for it are there already; make them pass.
      repository:
        path: '.'
        at: [PARENT]
        patch: |
          diff --git a/tests/adds.sh b/tests/adds.sh
          new file mode 100644
          --- /dev/null
          +++ b/tests/adds.sh
          @@ -0,0 +1 @@
          +[ "$(sh add.sh)" = 5 ]
      assert:
      - {type: tests, value: {fail_to_pass: [adds], pass_to_pass: all}}
      known_patch: |
        diff --git a/NOTES.md b/NOTES.md
        new file mode 100644
        --- /dev/null
        +++ b/NOTES.md
        @@ -0,0 +1 @@
        +5
        diff --git a/add.sh b/add.sh
        --- a/add.sh
        +++ b/add.sh
        @@ -1 +1 @@
        -echo 4
        +echo 5
    "#);
    assert_snapshot!(env.run(&["eval", "oracle", "history"]).ends_with(0).to_string().replace(&env.git(&["rev-parse", "--short=8", "HEAD~5"]), "[COMMIT]"), @"✓ history, [COMMIT]-Add-2-and-3: the known patch passes; doing nothing fails");
}

#[test]
fn what_was_looked_at_is_told_as_a_document() {
    let env = project();
    let document = env.json(&["eval", "import", "--history", "--most", "1", "--as", "own"]);
    validate(&schema(&env, "eval-import"), &document);
    assert_eq!(document["file"], ".rehearsal/evals/own.yaml");
    let looked = &document["history"];
    let counts =
        ["commits", "candidates", "without_effect", "untestable"].map(|key| looked[key].as_u64().unwrap());
    assert_eq!(counts, [6, 3, 1, 1], "{document:#}");
}

#[test]
fn an_eval_outside_of_the_repository_names_it() {
    let env = project();
    env.must(&["eval", "import", "--history", "--most", "1", "--output", "../own.yaml"]);
    let text = std::fs::read_to_string(env.scratch.join("own.yaml")).unwrap();
    assert!(text.contains(&format!("path: {}\n", env.repo)), "{text}");
    env.run(&["eval", "oracle", "../own.yaml"])
        .ends_with(0)
        .says("the known patch passes; doing nothing fails");
}

#[test]
fn a_history_without_such_a_commit_is_told_and_nothing_is_written() {
    let env = project();
    assert_snapshot!(env.run(&["eval", "import", "--history", "--last", "2"]), @"
    [stderr]
    looked at 2 commits: 1 touch tests and sources; 0 found, 1 whose tests cannot be run (no test was run)
    error: no commit was found whose tests fail before and pass after
    hint: look further back: --last N; `rehearsal test` shows whether the tests run at all
    [exit 3]
    ");
    assert!(!env.repo.join(".rehearsal/evals").exists());
    env.run(&["eval", "import", "--history", "file.yaml"]).ends_with(2).says("cannot be used with");
}

#[test]
fn a_commit_whose_tests_do_not_end_is_given_up() {
    let env = TestEnv::new();
    begin(&env);
    env.file("add.sh", "echo 5\n").file("tests/hangs.sh", "sleep 600\n").commit("Hang");
    env.run(&["eval", "import", "--history", "--last", "1", "--timeout", "1s"])
        .ends_with(3)
        .says("looked at 1 commit: 1 touch tests and sources; 0 found, 1 that took too long");
}

#[test]
fn whoever_is_interrupted_keeps_what_was_found() {
    let env = TestEnv::new();
    let mark = env.scratch.join("agent/ready");
    begin(&env);
    env.file("add.sh", "echo 6\n")
        .file("tests/hangs.sh", format!("touch {mark}; sleep 600\n"))
        .commit("Hang");
    std::fs::remove_file(env.repo.join("tests/hangs.sh")).unwrap();
    env.file("add.sh", "echo 5\n").file("tests/adds.sh", "[ \"$(sh add.sh)\" = 5 ]\n").commit("Add 2 and 3");
    env.file(".rehearsal/config.yaml", "testing: { sandbox: off }\n");
    let running = env.start(&["eval", "import", "--history", "--json"]);
    wait_until("the second commit is tried", || mark.exists());
    running.signal(Signal::INT);
    let output = running.finish();
    assert_eq!(output.code, 130, "{output}");
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document["cases"], 1, "{output}");
    assert!(output.stderr.contains("stopped: what was found until then is written"), "{output}");
    assert!(env.read(".rehearsal/evals/history.yaml").contains("fail_to_pass: [adds]"));
}
