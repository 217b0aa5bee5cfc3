//! The roles of the crew: which there are, what is wrong with one's own, and what cannot begin.

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn the_roles_are_listed_and_shown() {
    let env = TestEnv::new();
    env.file(".rehearsal/agents/code.yaml", "turns: 7\nmodel: openai:gpt-x\n");
    assert_snapshot!(env.must(&["crew", "list"]), @"");
    assert_snapshot!(env.must(&["crew", "show", "code"]), @"");
    let prompt = env.must(&["crew", "show", "search", "--prompt"]).stdout;
    assert!(
        prompt.starts_with("You find things in a repository.") && prompt.contains("# Greetings"),
        "{prompt}"
    );
}

#[test]
fn what_is_wrong_with_a_role_is_told_with_its_place() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["crew", "show", "reviw"]), @"");
    assert_snapshot!(env.run(&["crew", "show", "cook"]), @"");
    env.file(".rehearsal/agents/search.yaml", "tools:\n  - read_file\n  - bash\n");
    assert_snapshot!(env.run(&["crew", "list"]), @"");
}

#[test]
fn what_cannot_begin_says_why() {
    let env = TestEnv::new();
    let run = |args: &[&str], input: &str| env.run_with_input(&[&["crew", "run"], args].concat(), input);
    assert_snapshot!(run(&["--role", "code"], "Do it"), @"");
    assert_snapshot!(run(&["--role", "code", "--model", "gemini:x"], "Do it"), @"");
    assert_snapshot!(run(&["--role", "code", "--model", "gemini:"], "Do it"), @"");
    let env = env.var("OPENAI_API_KEY", "k").var("GEMINI_API_KEY", "k");
    let run = |args: &[&str], input: &str| env.run_with_input(&[&["crew", "run"], args].concat(), input);
    assert_snapshot!(run(&["--role", "code"], "Do it"), @"");
    assert_snapshot!(run(&["--role", "code", "--model", "openai:x"], " \n"), @"");
}

#[test]
fn whoever_started_it_as_an_agent_reads_in_its_report_why_it_did_not_begin() {
    let env = TestEnv::new();
    let output = env.run_with_input(&["crew", "run", "--json", "--role", "code"], "Do it");
    let first: serde_json::Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    let error = &first["report"]["end"]["error"];
    assert_eq!(error["kind"], "auth");
    assert_eq!(error["message"], "no model can be asked: no vendor's key or address is set");
}

#[test]
fn an_agent_whose_role_there_is_not_is_refused_before_it_runs() {
    let env =
        TestEnv::new().session("s").task("Greet").agent_setting("driver: crew").agent_setting("role: cook");
    assert_snapshot!(env.run(&["run", "s"]), @"");
    let doctor = env.run(&["doctor"]).stdout;
    assert!(doctor.contains("bad   agent implementer"), "{doctor}");
}

#[test]
fn a_role_is_for_the_crew_only() {
    let env = TestEnv::new().agent_setting("driver: claude").agent_setting("role: code");
    assert_snapshot!(env.run(&["agent", "list"]), @"");
}

#[test]
fn the_crew_is_there_without_being_configured() {
    let env = TestEnv::new();
    let listed = env.json(&["agent", "list"]);
    let crew: Vec<String> = listed["agents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|agent| agent["driver"] == "crew")
        .map(|agent| format!("{} {}", agent["name"].as_str().unwrap(), agent["role"].as_str().unwrap()))
        .collect();
    assert_eq!(
        crew,
        [
            "code code",
            "docs docs",
            "init init",
            "research research",
            "review review",
            "search search",
            "test test"
        ]
    );
}

#[test]
fn where_no_cli_is_found_and_a_key_is_set_init_proposes_the_crew() {
    let env = TestEnv::new().var("ANTHROPIC_API_KEY", "not-a-key");
    let found = env.json(&["init"]);
    assert_eq!(found["found"]["agents"], serde_json::json!(["crew"]));
    assert!(env.read(".rehearsal/config.yaml").contains("driver: crew"));
}

#[test]
fn the_stand_in_speaks_like_the_crew() {
    let script = "run:\n  - say: I write.\n  - write: { path: hello.txt, content: hi }\n  - commit: { message: Greet }\n  - say: Done. <promise>COMPLETE</promise>\n";
    let env = TestEnv::new().agent_script_as("crew", script).session("s").task("Greet");
    env.run(&["run", "s", "--iterations", "1"]);
    assert_eq!(env.outcomes(), ["done"]);
}
