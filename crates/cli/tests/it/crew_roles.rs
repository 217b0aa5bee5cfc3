//! The roles of the crew: which there are, what is wrong with one's own, and what cannot begin.

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn the_roles_are_listed_and_shown() {
    let env = TestEnv::new();
    env.file(".rehearsal/agents/code.yaml", "turns: 7\nmodel: openai:gpt-x\n");
    assert_snapshot!(env.must(&["crew", "list"]), @"
    ROLE      MAY                   TIME  FOR
    search    read                  3m    Finds where things are in the code, and changes nothing
    research  read, web             5m    Answers questions from the code and from the web, with sources
    code *    read, write, execute  20m   Changes the code so that a task is done, and shows that it works
    review    read                  10m   Reviews a change, and approves it or sends it back
    test      read, write, execute  20m   Writes and mends tests, and runs them
    qa        read, execute         20m   Tries a change out with the real tests, and approves it or sends it back
    docs      read, write           10m   Writes documentation that says what the code does
    init      read, write           5m    Looks at a repository for the first time, and writes down how one works in it

    * from `.rehearsal/agents`
    ");
    assert_snapshot!(env.must(&["crew", "show", "code"]), @"
    code: Changes the code so that a task is done, and shows that it works
    may        read, write, execute
    tools      read_file, write_file, edit_file, glob, grep, bash, run_tests, git_diff, task_done, task_block, progress
    time       20m, up to 3h if asked for
    turns      7
    model      openai:gpt-x
    project    it is told of it
    from       [REPO]/.rehearsal/agents/code.yaml
    prompt     about 295 tokens; `--prompt` prints it
    ");
    let prompt = env.must(&["crew", "show", "search", "--prompt"]).stdout;
    assert!(
        prompt.starts_with("You find things in a repository.") && prompt.contains("# Greetings"),
        "{prompt}"
    );
}

#[test]
fn what_is_wrong_with_a_role_is_told_with_its_place() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["crew", "show", "reviw"]), @"
    [stderr]
    error: there is no role `reviw`
    hint: did you mean `review`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["crew", "show", "cook"]), @"
    [stderr]
    error: there is no role `cook`
    hint: there are search, research, code, review, test, qa, docs, init; your own go to `.rehearsal/agents/NAME.yaml`
    [exit 2]
    ");
    env.file(".rehearsal/agents/search.yaml", "tools:\n  - read_file\n  - bash\n");
    assert_snapshot!(env.run(&["crew", "list"]), @"
    [stderr]
    error: the tool `bash` needs the permission `execute`, which `search` does not have
      --> [REPO]/.rehearsal/agents/search.yaml:3:5
    hint: write `execute: true` under `permissions`, or take the tool away
    hint: `rehearsal schema role` has the form of the file
    [exit 2]
    ");
}

#[test]
fn what_cannot_begin_says_why() {
    let env = TestEnv::new();
    let run = |args: &[&str], input: &str| env.run_with_input(&[&["crew", "run"], args].concat(), input);
    assert_snapshot!(run(&["--role", "code"], "Do it"), @"
    [stderr]
    error: no model can be asked: no vendor's key or address is set
    hint: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or the address of your own server in ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL
    [exit 2]
    ");
    assert_snapshot!(run(&["--role", "code", "--model", "gemini:x"], "Do it"), @"
    [stderr]
    error: gemini cannot be asked
      because: `GEMINI_API_KEY` is not set
    hint: look at the vendor's variables
    [exit 2]
    ");
    assert_snapshot!(run(&["--role", "code", "--model", "gemini:"], "Do it"), @"
    [stderr]
    error: `gemini:` names no model
    hint: write `VENDOR:NAME`, such as `anthropic:claude-sonnet-4-5`
    [exit 2]
    ");
    let env = env.var("OPENAI_API_KEY", "k").var("GEMINI_API_KEY", "k");
    let run = |args: &[&str], input: &str| env.run_with_input(&[&["crew", "run"], args].concat(), input);
    assert_snapshot!(run(&["--role", "code"], "Do it"), @"
    [stderr]
    error: it is not clear which vendor is to be asked: OPENAI_API_KEY and GEMINI_API_KEY are set
    hint: say which: `--model anthropic:NAME`, `openai:NAME`, `responses:NAME` or `gemini:NAME`; or `model:` of the agent or of the role
    [exit 2]
    ");
    assert_snapshot!(run(&["--role", "code", "--model", "openai:x"], " \n"), @"
    [stderr]
    error: there is no task on standard input
    hint: for example: echo 'Where is main?' | rehearsal crew run --role search
    [exit 2]
    ");
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
    assert_snapshot!(env.run(&["run", "s"]), @"
    [stderr]
    error: there is no role `cook`
    hint: there are search, research, code, review, test, qa, docs, init; your own go to `.rehearsal/agents/NAME.yaml`
    [exit 2]
    ");
    let doctor = env.run(&["doctor"]).stdout;
    assert!(doctor.contains("bad   agent implementer"), "{doctor}");
}

#[test]
fn a_role_is_for_the_crew_only() {
    let env = TestEnv::new().agent_setting("driver: claude").agent_setting("role: code");
    assert_snapshot!(env.run(&["agent", "list"]), @"
    [stderr]
    error: agent `implementer` has the role `code`, and its driver `claude` knows no roles
      --> .rehearsal/config.yaml
    hint: roles are for `driver: crew`
    [exit 2]
    ");
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
            "qa qa",
            "research research",
            "review review",
            "search search",
            "test test"
        ]
    );
}

#[test]
fn the_crew_behaves_as_every_agent_must() {
    let env = TestEnv::new();
    if !env.has_tool("bash") {
        return;
    }
    let checked = env.run(&["agent", "check", "code", "--timeout", "1m", "--json"]);
    let document = checked.document();
    assert_eq!((checked.code, &document["conforms"]), (0, &true.into()), "{document:#}");
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
