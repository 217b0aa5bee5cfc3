//! `plan` for someone who sits at a terminal: it asks, and takes yes, no and an editor for an answer.

use crate::env::TestEnv;

const PLAN: &str = r#"{"tasks": [{"id": "change", "agent": "code", "description": "Say hi"}]}"#;

/// What is on the screen of someone who types this, and how the command ended.
fn typed(env: &TestEnv, keys: &str) -> Option<(String, i32)> {
    if !env.has_tool("script") {
        return None;
    }
    env.file("plan.json", PLAN);
    let command = format!("{} plan --from plan.json --session hi", env!("CARGO_BIN_EXE_rehearsal"));
    let mut script = env.command("script");
    script.env("NO_COLOR", "1").args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"]);
    let mut child =
        script.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), keys.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let screen = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    Some((screen, output.status.code().unwrap()))
}

fn titles(env: &TestEnv) -> Vec<String> {
    let tasks = env.json(&["task", "list", "--all"])["tasks"].as_array().unwrap().clone();
    tasks.iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_plan_is_asked_about_until_there_is_an_answer() {
    let env = TestEnv::new();
    let Some((screen, code)) = typed(&env, "perhaps\nyes\n") else { return };
    assert_eq!(screen.matches("Approve this plan? [y]es, [n]o, [e]dit:").count(), 2, "{screen}");
    assert!(screen.contains("1 task added to session `hi`"), "{screen}");
    assert_eq!((titles(&env), code), (vec!["Say hi".to_owned()], 0));
}

#[test]
fn a_plan_that_is_rejected_leaves_nothing_behind() {
    let env = TestEnv::new();
    let Some((screen, code)) = typed(&env, "n\n") else { return };
    assert!(screen.contains("the plan is rejected: nothing was added"), "{screen}");
    assert_eq!((titles(&env).len(), code), (0, 0));
}

#[test]
fn a_plan_can_be_changed_in_an_editor_and_is_asked_about_again() {
    let env = TestEnv::new().var("EDITOR", "./pen");
    env.script("pen", &format!("echo '{}' > \"$1\"", PLAN.replace("Say hi", "Say hello")));
    let Some((screen, _)) = typed(&env, "e\ny\n") else { return };
    assert!(screen.contains("Say hello"), "{screen}");
    assert_eq!(titles(&env), ["Say hello"]);
}

#[test]
fn what_the_editor_made_of_it_is_kept_and_told_if_it_is_no_plan() {
    let env = TestEnv::new().var("EDITOR", "./pen");
    env.script("pen", "echo nonsense > \"$1\"");
    let Some((screen, _)) = typed(&env, "e\nn\n") else { return };
    assert!(screen.contains("the plan cannot be used"), "{screen}");
    assert!(screen.contains("it is kept: mend it"), "{screen}");
    assert_eq!(titles(&env).len(), 0);
}

#[test]
fn who_goes_away_without_an_answer_finds_the_plan_again() {
    let env = TestEnv::new();
    let Some((screen, code)) = typed(&env, "\u{4}") else { return };
    assert!(screen.contains("the plan waits for your approval: nothing was added"), "{screen}");
    assert_eq!((titles(&env).len(), code), (0, 7));
}
