//! `plan`: a wish becomes tasks once someone has approved them.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env::{Output, TestEnv};
use crate::json::{schema, validate};
use crate::stage::OpenStage;

const PLAN: &str = r#"{"tasks": [
  {"id": "find", "agent": "search", "description": "Find the greeting"},
  {"id": "change", "agent": "code", "description": "Change the greeting\nIt should say hi.", "depends_on": ["find"], "touches": ["*.sh"]}
]}"#;

/// A model that says this, in so many answers.
fn says(answers: &[&str]) -> String {
    let turns: Vec<Value> = answers.iter().map(|answer| json!({ "say": answer })).collect();
    json!({ "turns": turns }).to_string()
}

/// Plans with a model on a stage.
fn plans(env: &TestEnv, script: &str, args: &[&str]) -> Output {
    let stage = OpenStage::open(env, script);
    let vars = [("ANTHROPIC_BASE_URL", stage.url()), ("ANTHROPIC_API_KEY", "a-key-for-the-stage")];
    let output = env.run_with_vars(&vars, args);
    let (closed, _) = stage.close();
    assert_eq!(closed["clean"], true, "{closed}\n{output}");
    output
}

fn tasks(env: &TestEnv) -> Vec<Value> {
    env.json(&["task", "list", "--all"])["tasks"].as_array().unwrap().clone()
}

/// The plan that waits for approval.
fn kept(env: &TestEnv) -> String {
    let only = std::fs::read_dir(env.state_dir().join("plans")).unwrap().next().unwrap().unwrap();
    only.path().to_str().unwrap().to_owned()
}

#[test]
fn nobody_is_asked_who_does_not_sit_at_a_terminal() {
    let env = TestEnv::new();
    let output = plans(&env, &says(&[PLAN]), &["plan", "Say hi"]);
    let shown = output.stdout.replace(&kept(&env), "PLAN.json");
    assert_eq!(output.code, 7, "{output}");
    assert_snapshot!(shown, @"
    TASK      AGENT   AFTER  WHAT
    find      search  -      Find the greeting
      change  code    find   Change the greeting

    the plan waits for your approval: nothing was added
    next: rehearsal plan --from PLAN.json --yes
    ");
    assert_eq!(tasks(&env).len(), 0);

    let plan = kept(&env);
    let approved = env.run(&["plan", "--from", &plan, "--yes", "--session", "hi"]);
    assert_eq!(approved.code, 0, "{approved}");
    assert!(!env.repo.join(plan).exists(), "it is in the store now");
    assert_snapshot!(approved.stdout, @"
    TASK      AGENT   AFTER  WHAT
    find      search  -      Find the greeting
      change  code    find   Change the greeting

    2 tasks added to session `hi`
    next: rehearsal work --session hi --until-idle
    ");
    env.know_all_tasks();
    assert_snapshot!(env.run(&["task", "list", "--all"]), @"
    ID        STATUS    FLOW/STATE     AGENT   PULL REQUEST  PRIORITY  SESSION  TITLE
    [TASK-1]  looking   look/looking   search  -             medium    hi       Find the greeting
    [TASK-2]  incoming  plan/incoming  code    -             medium    hi       Change the greeting
    ");
    assert_snapshot!(env.run(&["why", &env.task_id(2)]), @"
    [TASK-2]  Change the greeting is incoming
    - it depends on [TASK-1] (Find the greeting), which is looking
    next: rehearsal why [TASK-1]
    ");
}

#[test]
fn a_question_gets_an_answer_and_no_plan() {
    let env = TestEnv::new();
    let output = plans(&env, &says(&["It greets people."]), &["plan", "What does it do?"]);
    assert_snapshot!(output, @"It greets people.");
    assert_eq!(tasks(&env).len(), 0);
}

#[test]
fn an_approved_plan_is_told_as_a_document() {
    let env = TestEnv::new();
    let document = plans(&env, &says(&[PLAN]), &["plan", "Say hi", "--yes", "--json"]).document();
    validate(&schema(&env, "plan-document"), &document);
    validate(&schema(&env, "plan"), &document["plan"]);
    assert_eq!(document["approved"], true);
    let added: Vec<_> = document["tasks"].as_array().unwrap().iter().map(|task| &task["flow"]).collect();
    assert_eq!(added, ["look", "plan"]);
    let all = tasks(&env);
    let change = all.iter().find(|task| task["title"] == "Change the greeting").unwrap();
    assert_eq!(change["depends_on"], json!([document["tasks"][0]["id"]]));
    assert_eq!(change["author"], "code");
    assert_eq!(change["body"], "Change the greeting\nIt should say hi.");
    assert_eq!(change["session"], document["session"]);
    let session = env.json(&["session", "show", document["session"].as_str().unwrap()]);
    assert_eq!(session["session"]["description"], "Say hi");
}

#[test]
fn a_plan_is_edited_and_checked_again() {
    let env = TestEnv::new();
    let editor = env.scratch.join("edit.sh");
    let plan = env.scratch.join("plan.json");
    std::fs::write(&plan, PLAN).unwrap();
    let edits = |text: &str| {
        std::fs::write(&editor, format!("cat > \"$1\" <<'END'\n{text}\nEND\n")).unwrap();
        let editor = format!("sh {editor}");
        env.run_with_vars(&[("EDITOR", &editor)], &["plan", "--from", plan.as_str(), "--edit", "--yes"])
    };
    let wrong = edits(r#"{"tasks": [{"id": "a", "agent": "cod", "description": "Say hi"}]}"#);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert_snapshot!(wrong.stderr.replace(&kept(&env), "PLAN.json"), @"
    error: the plan cannot be used: task `a` is for agent `cod`, and there is none: did you mean `code`?
      --> PLAN.json
    hint: `rehearsal schema plan` has its form, and `rehearsal crew list` the agents
    hint: it is kept: mend it, then `rehearsal plan --from PLAN.json`
    ");
    assert_eq!(tasks(&env).len(), 0);
    let right = edits(r#"{"tasks": [{"id": "a", "agent": "code", "description": "Say hi"}]}"#);
    assert_eq!(right.code, 0, "{right}");
    assert_eq!(tasks(&env).len(), 1);
}

#[test]
fn a_model_that_cannot_plan_is_told_and_nothing_is_added() {
    let env = TestEnv::new();
    let wrong = r#"{"tasks": [{"id": "a", "agent": "gardener", "description": "x"}]}"#;
    assert_snapshot!(plans(&env, &says(&[wrong, wrong]), &["plan", "Say hi", "--yes"]), @"
    [stderr]
    error: the model's plan cannot be used, also not the mended one: task `a` is for agent `gardener`, and there is none: there are code, docs, init, research, search, test
    hint: ask again, with other words or another `--model`; a plan of your own goes in with `--from FILE`
    [exit 6]
    ");
    let refused = "turns:\n  - fault: { status: { code: 401, message: no such key } }\n";
    assert_snapshot!(plans(&env, refused, &["plan", "Say hi", "--yes"]), @"
    [stderr]
    error: the model gives no plan
      because: the vendor refuses the key: no such key
    hint: look at the vendor's key, such as ANTHROPIC_API_KEY
    [exit 6]
    ");
    assert_snapshot!(env.run(&["plan", "Say hi"]), @"
    [stderr]
    error: no model can be asked: no vendor's key or address is set
    hint: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or the address of your own server in ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL
    hint: a plan of your own needs no model: `rehearsal plan --from FILE`
    [exit 2]
    ");
    assert_snapshot!(env.run(&["plan", " "]), @"
    [stderr]
    error: there is nothing to plan
    hint: say what you want: rehearsal plan 'Fix the login'
    [exit 2]
    ");
    assert_eq!(tasks(&env).len(), 0);
}

#[test]
fn what_an_agent_of_the_plan_found_is_told_to_the_next_and_the_change_is_merged() {
    let env = TestEnv::new()
        .other_agent("search", "run: [{ say: 'The greeting is in greet.sh.' }]")
        .other_agent("code", "run: [{ write: { path: greet.sh, content: \"echo hi\\n\" } }, { commit: { message: Say hi } }, { result: { outcome: success } }, { say: done }]")
        .config("testing: { command: echo ok }");
    let plan = env.scratch.join("plan.json");
    std::fs::write(&plan, PLAN).unwrap();
    let output = env.run(&["plan", "Say hi", "--from", plan.as_str(), "--yes", "--work", "--session", "hi"]);
    env.know_all_tasks();
    assert_eq!(output.code, 0, "{output}");
    assert_snapshot!(env.stable().text(&output.stdout), @"
    TASK      AGENT   AFTER  WHAT
    find      search  -      Find the greeting
      change  code    find   Change the greeting

    2 tasks added to session `hi`

    TASK      STATUS  BRANCH              PULL REQUEST  MERGED      RUNS  COST   TITLE
    [TASK-1]  done    -                   -             -           1     $0.00  Find the greeting
    [TASK-2]  done    rehearsal/[TASK-2]  #1            [COMMIT10]  1     $0.00  Change the greeting

    2 runs in [TIME], cost $0.00
    2 tasks done
    next: git pull --no-rebase --no-edit [SCRATCH]/home/.local/share/rehearsal/remotes/repo-[HASH].git main
    ");
    assert!(env.prompt(2).contains("The greeting is in greet.sh."), "{}", env.prompt(2));
    assert_eq!(env.outcomes(), ["no_changes", "done"]);
}
