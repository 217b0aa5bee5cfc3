//! `rehearsal eval mutate`: an assertion that nothing can break says nothing.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::json::{schema, validate};

/// Mends the program, and commits it.
const AGENT: &str = "agents:
  implementer:
    driver: command
    program: sh
    args: [-c, 'cat >/dev/null; echo \"echo 5\" > add.sh; git commit -qam Mend; echo I mended add.sh']
";

const EVAL: &str = "name: mending
cases:
  - name: addition
    prompt: Make add.sh print 5
    repository: { files: { add.sh: \"echo 4\\n\" } }
    assert:
      - { type: contains, value: mended }
      - { type: git, value: { commits: 1, clean: true } }
      - { type: diff-scope, value: [add.sh] }
      - { type: command, value: '[ \"$(sh add.sh)\" = 5 ]' }
";

const PATCH: &str = "    known_patch: |\n      --- a/add.sh\n      +++ b/add.sh\n      @@ -1 +1 @@\n      -echo 4\n      +echo 5\n";

fn project(eval: &str) -> TestEnv {
    let env = TestEnv::new();
    env.file(".rehearsal/config.yaml", AGENT).file(".rehearsal/evals/mending.yaml", eval).commit("Measure");
    env
}

#[test]
fn assertions_that_can_fail_are_good_and_what_they_overlook_is_named() {
    let env = project(EVAL);
    env.run(&["eval", "run"]).ends_with(0);
    assert_snapshot!(env.run(&["eval", "mutate"]).ends_with(0), @"
    ✓ mending, addition: 4 assertions can fail (19 mutants)
        survives: the words are in reverse order
        survives: the answer is negated
        survives: the run crashes
        survives: the answer ends in an error
        survives: one call goes round in a loop
        survives: a file is edited at the very end
        survives: nobody works
        survives: the commits say nothing
        survives: ten times the time
        survives: a run that does not end
    ");
    let document = env.json(&["eval", "mutate", "mending"]);
    validate(&schema(&env, "eval-mutate"), &document);
    assert_eq!(document["cases"][0]["of"], "trials");
}

#[test]
fn an_assertion_that_cannot_fail_is_named() {
    let toothless = EVAL
        .replace("{ type: contains, value: mended }", "{ type: contains, value: '' }")
        .replace("value: [add.sh]", "value: ['**']");
    let env = project(&toothless);
    env.run(&["eval", "run"]).ends_with(0);
    let told = env.run(&["eval", "mutate"]).ends_with(3);
    let told: Vec<&str> = told.stdout.lines().filter(|line| !line.contains("survives")).collect();
    assert_snapshot!(told.join("\n"), @r#"
    ✗ mending, addition: 2 of 4 assertions cannot fail (19 mutants)
        cannot fail: contains: 
        cannot fail: diff-scope: ["**"]
    "#);
}

#[test]
fn without_a_trial_the_known_patch_is_made_worse() {
    let env = project(&format!("{EVAL}{PATCH}"));
    let document = env.run(&["eval", "mutate", "--json"]).ends_with(0).document();
    let case = &document["cases"][0];
    assert_eq!(case["of"], "known_patch", "{document:#}");
    let names: Vec<&str> = case["teeth"]["assertions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["diff-scope: [\"add.sh\"]", "command: [ \"$(sh add.sh)\" = 5 ]"]);
}

#[test]
fn where_nothing_passed_nothing_can_be_tried() {
    let env = project(EVAL);
    assert_snapshot!(env.run(&["eval", "mutate"]), @"
    ? mending, addition: no trial passed, and there is no known patch
    [stderr]
    error: nothing can be tried: no trial passed, and no case has a known patch
    hint: `rehearsal eval run` makes trials
    [exit 2]
    ");
    let env = project(&format!("{EVAL}{}", PATCH.replace("+echo 5", "+echo 6")));
    env.run(&["eval", "mutate"]).ends_with(2).says("no trial passed, and the known patch does not pass");
}
