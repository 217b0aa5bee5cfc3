//! `rehearsal eval`, with agents that are shell scripts.

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::TestEnv;
use crate::json::{schema, validate};

/// Two agents: one mends the program, one only says so.
const AGENTS: &str = "  mender:
    driver: command
    program: sh
    args: [-c, 'cat >/dev/null; echo \"echo 5\" > add.sh; git commit -qam Mend; echo I mended add.sh']
  talker:
    driver: command
    program: sh
    args: [-c, 'cat >/dev/null; echo I mended add.sh']";

const EVAL: &str = "name: mending
about: Whether agents really mend what they say they mend
agents: [mender, talker]
repeat: 2
cases:
  - name: addition
    prompt: Make add.sh print 5
    repository: { files: { add.sh: 'echo 4' } }
    assert:
      - { type: contains, value: mended }
      - { type: files-modified, value: 1 }
      - { type: diff-contains, value: '\\+echo 5' }
      - { type: git, value: { commits: 1, clean: true } }
      - { type: command, value: '[ \"$(sh add.sh)\" = 5 ]' }
";

fn project(eval: &str) -> TestEnv {
    let env = TestEnv::new().config(AGENTS);
    env.file(".rehearsal/evals/mending.yaml", eval).commit("Measure");
    env
}

fn runs(env: &TestEnv) -> Vec<String> {
    let document = env.json(&["eval", "list"]);
    document["runs"].as_array().unwrap().iter().map(|run| run.as_str().unwrap().to_owned()).collect()
}

fn trials(env: &TestEnv, run: &str) -> Vec<Value> {
    let text = env.read(env.state_dir().join(format!("evals/{run}/trials.jsonl")));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn who_only_says_so_fails_by_what_is_in_the_repository() {
    let env = project(EVAL);
    let told = env.run(&["eval", "run", "--jobs", "1"]).ends_with(3).to_string();
    let run = &runs(&env)[0];
    assert_snapshot!(told.replace(run.as_str(), "[RUN]"), @r#"
    CASE      AGENT   PASSED  RATE   95 %           TIME   COST
    addition  mender  2/2     100 %  34 % to 100 %  [TIME]  $0.00
    addition  talker  0/2     0 %    0 % to 66 %    [TIME]  $0.00
    fail addition, talker, trial 1
      files-modified: 1: 0 files are another, 1 wanted
      diff-contains: \+echo 5: `\+echo 5` is not in the difference
      git: {"clean":true,"commits":1}: 0 commits, 1 wanted
      command: [ "$(sh add.sh)" = 5 ]: exit status 1, 0 wanted: ""
    fail addition, talker, trial 2
      files-modified: 1: 0 files are another, 1 wanted
      diff-contains: \+echo 5: `\+echo 5` is not in the difference
      git: {"clean":true,"commits":1}: 0 commits, 1 wanted
      command: [ "$(sh add.sh)" = 5 ]: exit status 1, 0 wanted: ""
    ✓ mender: pass rate 1: 2 of 2 passed
    ✗ talker: pass rate 1: 0 of 2 passed
    run [RUN]: [STATE]/evals/[RUN]/report.html
    [exit 3]
    "#);
}

#[test]
fn every_file_of_a_run_conforms_to_its_schema() {
    let env = project(EVAL);
    let document = env.run(&["eval", "run", "--json"]).ends_with(3).document();
    validate(&schema(&env, "eval-run"), &document);
    assert_eq!(document["holds"], false, "{document:#}");
    let run = document["run"].as_str().unwrap();
    validate(&schema(&env, "eval-list"), &env.json(&["eval", "list"]));
    for again in ["show", "grade"] {
        validate(&schema(&env, "eval-run"), &env.run(&["eval", again, "--json"]).ends_with(3).document());
    }
    let pair = [format!("{run}:mender"), format!("{run}:talker")];
    validate(&schema(&env, "eval-compare"), &env.json(&["eval", "compare", &pair[0], &pair[1]]));
    let trials = trials(&env, run);
    assert_eq!(trials.len(), 4);
    let of_a_trial = schema(&env, "eval-trial");
    for trial in &trials {
        validate(&of_a_trial, trial);
    }
    assert!(trials.iter().all(|trial| trial["trial"]["source"]["kind"] == "scripted"));
    let last: Value =
        serde_json::from_str(&env.read(env.state_dir().join("evals/last-report.json"))).unwrap();
    assert_eq!(last["cells"], document["cells"]);
    let cell = &last["cells"][0];
    assert_eq!(cell["pass_rate"], 1.0, "{cell:#}");
    assert!(cell["latency_ms"]["mean"].as_f64().unwrap() > 0.0, "{cell:#}");
    assert!(env.read(env.state_dir().join(format!("evals/{run}/report.html"))).contains("<svg"));
}

#[test]
fn runs_are_listed_also_when_their_evals_are_gone() {
    let env = project(EVAL);
    env.run(&["eval", "run", "--repeat", "1"]).ends_with(3);
    std::fs::remove_dir_all(env.repo.join(".rehearsal/evals")).unwrap();
    let document = env.json(&["eval", "list"]);
    assert_eq!((&document["evals"], document["runs"].as_array().unwrap().len()), (&serde_json::json!([]), 1));
    env.run(&["eval", "show"]).ends_with(3);
}

#[test]
fn a_project_without_evals_has_an_empty_list_and_nothing_to_run() {
    let env = TestEnv::new();
    env.run(&["eval", "list"])
        .ends_with(0)
        .says("no evals; write one: `rehearsal schema eval` tells its form");
    assert_eq!(env.json(&["eval", "list"])["evals"], serde_json::json!([]));
    env.run(&["eval", "run"]).ends_with(2).says("there is no eval in .rehearsal/evals");
}

#[test]
fn only_what_is_missing_is_tried_again() {
    let env = project(EVAL);
    env.run(&["eval", "run", "--repeat", "1"]).ends_with(3);
    env.run(&["eval", "run", "--resume"]).ends_with(3);
    let all = runs(&env);
    assert_eq!(all.len(), 1, "{all:?}");
    let made: Vec<u64> =
        trials(&env, &all[0]).iter().map(|trial| trial["id"]["trial"].as_u64().unwrap()).collect();
    assert_eq!(made, [1, 1, 2, 2]);
}

#[test]
fn an_agent_that_spends_tokens_is_not_tried_without_the_users_word() {
    let env = project(&EVAL.replace("[mender, talker]", "[implementer]"));
    let told = env.run(&["eval", "run"]).ends_with(3);
    told.says(
        "skipped addition, implementer, trial 1: `implementer` (claude) spends tokens; run it with --live",
    );
}

#[test]
fn a_run_is_graded_again_with_what_is_asserted_now() {
    let env = project(EVAL);
    env.run(&["eval", "run"]).ends_with(3);
    let lenient = EVAL.replace("      - { type: files-modified, value: 1 }\n", "");
    let lenient = lenient.replace("      - { type: git, value: { commits: 1, clean: true } }\n", "");
    let lenient = lenient.replace("      - { type: diff-contains, value: '\\+echo 5' }\n", "");
    let lenient = lenient.replace("      - { type: command, value: '[ \"$(sh add.sh)\" = 5 ]' }\n", "");
    env.file(".rehearsal/evals/mending.yaml", lenient);
    let graded = env.run(&["eval", "grade", "--json"]).ends_with(0).document();
    assert_eq!(graded["cells"][1]["passed"], 2, "{graded:#}");
    env.run(&["eval", "show"]).ends_with(3);
}

#[test]
fn two_agents_are_compared_case_by_case() {
    let env = project(EVAL);
    env.run(&["eval", "run"]).ends_with(3);
    let run = &runs(&env)[0];
    let pair = [format!("{run}:mender"), format!("{run}:talker")];
    let told = env.run(&["eval", "compare", &pair[0], &pair[1]]).ends_with(0).to_string();
    assert_snapshot!(told.replace(run.as_str(), "[RUN]"), @"[RUN]:mender has +100.0 points against [RUN]:talker over 1 case: better in 1, worse in 0; p = 1.0000 (exact)");
    env.run(&["eval", "compare", run, run])
        .ends_with(2)
        .says("has several agents")
        .says("name one: RUN:AGENT");
}

#[test]
fn reports_are_written_where_they_are_wanted() {
    let env = project(EVAL);
    env.run(&["eval", "run", "--junit", "e.xml", "--markdown", "e.md", "--html", "e.html"]).ends_with(3);
    let read_back = env.run(&["test", "--from", "e.xml", "--exit", "1", "--json"]).ends_with(3).document();
    assert_eq!((&read_back["summary"]["passed"], &read_back["summary"]["failed"]), (&2.into(), &2.into()));
    assert!(env.read("e.md").contains("| addition | mender | 2/2 |"), "{}", env.read("e.md"));
    assert!(env.read("e.html").contains("Eval mending"));
}

#[test]
fn what_is_wrong_in_an_eval_is_told_with_its_place() {
    let env = project(&EVAL.replace("type: files-modified", "type: file-modified"));
    assert_snapshot!(env.run(&["eval", "run"]), @"
    [stderr]
    error: unknown assertion `file-modified`; did you mean `files-modified`?
      --> .rehearsal/evals/mending.yaml:11:9
    hint: `rehearsal schema eval` has the form of the file
    [exit 2]
    ");
    let env = TestEnv::new();
    env.run(&["eval", "run"]).ends_with(2).says("there is no eval in .rehearsal/evals");
}

#[test]
fn a_case_is_tried_with_its_known_patch_and_with_nothing() {
    let patch = "    known_patch: |\n      --- a/add.sh\n      +++ b/add.sh\n      @@ -1 +1 @@\n      -echo 4\n      +echo 5\n";
    let good = EVAL.replace("add.sh: 'echo 4'", "add.sh: \"echo 4\\n\"") + patch;
    let env = project(&good);
    let document = env.run(&["eval", "oracle", "--json"]).ends_with(0).document();
    validate(&schema(&env, "eval-oracle"), &document);
    // A known patch makes no commits of an agent: the assertion on them is none on the repository, and is left out.
    assert_snapshot!(env.run(&["eval", "oracle"]), @"✓ mending, addition: the known patch passes; doing nothing fails");
    let toothless = project(
        &good
            .replace("'[ \"$(sh add.sh)\" = 5 ]'", "'true'")
            .replace("files-modified, value: 1", "files-modified, value: { max: 9 }")
            .replace("      - { type: diff-contains, value: '\\+echo 5' }\n", ""),
    );
    assert_snapshot!(toothless.run(&["eval", "oracle"]), @"
    ✗ mending, addition: the known patch passes; doing nothing passes, so it cannot fail
    [exit 3]
    ");
}
