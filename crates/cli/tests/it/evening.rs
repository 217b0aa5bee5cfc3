//! The first evening: a repository whose test fails, one task, a real agent CLI with a scripted model. However the agent is
//! confined, and whether it is trusted or not, the work is committed, tested and where it belongs in the morning.

use serde_json::Value;

use crate::env::TestEnv;
use crate::real_agents::agents;
use crate::stage::OpenStage;
use crate::staged_agents::more_agents;

/// The model edits, tests and commits. It reports in its last message, as the prompt asks; the reviewer decides there.
const SCRIPT: &str = r#"
turns:
  - when: { contains: You review the work }
    say: "It greets.\n<promise>APPROVE: it greets</promise>"
    times: any
  - do: [{ write_file: { path: hello.txt, content: "hello world\n" } }]
  - do: [{ run: sh check }]
  - do: [{ run: git add --all && git commit --quiet --message 'Say hello' }]
  - say: "Done.\n<promise>DONE</promise>"
"#;

/// How the agent is kept within bounds.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    sandbox: &'static str,
    trust: bool,
}

const ALL_BOUNDS: [Bounds; 6] = [
    Bounds { sandbox: "auto", trust: false },
    Bounds { sandbox: "auto", trust: true },
    Bounds { sandbox: "required", trust: false },
    Bounds { sandbox: "required", trust: true },
    Bounds { sandbox: "off", trust: false },
    Bounds { sandbox: "off", trust: true },
];

/// A repository outside of `/tmp`, which some CLIs make writable; its test fails until somebody greets.
fn repository() -> TestEnv {
    let env = TestEnv::outside_tmp();
    env.file("check", "grep --quiet hello hello.txt\n").commit("Expect a greeting");
    env
}

fn configure(env: &TestEnv, cli: &str, directory: &str, stage: &OpenStage<'_>, sandbox: &str) {
    if ["gemini", "opencode"].contains(&cli) {
        assert!(env.has_tool("node"));
    }
    let setup = stage.setup(cli);
    let mut lines = vec!["agents:".to_owned(), "  implementer:".to_owned()];
    lines.push(format!("    driver: {cli}\n    program: {directory}/{cli}\n    sandbox: {sandbox}"));
    let arguments = serde_json::to_string(&setup["arguments"]).unwrap();
    lines.push(format!("    args: {arguments}"));
    let variables = setup["variables"].as_array().unwrap().iter();
    let pair = |pair: &Value| (pair[0].as_str().unwrap().to_owned(), pair[1].clone());
    let variables: serde_json::Map<String, Value> = variables.map(pair).collect();
    lines.push(format!("    env: {}", Value::Object(variables)));
    lines.push("testing: { command: sh check }".to_owned());
    env.file(".rehearsal/config.yaml", lines.join("\n")).commit("Configure");
    for file in setup["files"].as_array().unwrap() {
        let path = env.scratch.join("home").join(file[0].as_str().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file[1].as_str().unwrap()).unwrap();
    }
}

#[track_caller]
fn works_in_the_checkout(cli: &str, directory: &str) {
    for bounds in ALL_BOUNDS {
        let env = repository().session("greet").task("Greet the world");
        let stage_env = TestEnv::without_repository();
        let stage = OpenStage::open(&stage_env, SCRIPT);
        configure(&env, cli, directory, &stage, bounds.sandbox);
        let trust: &[&str] = if bounds.trust { &["--trust"] } else { &[] };
        let output = env.run(&[&["run"], trust].concat());
        let last = env.runs().last().map(|run| env.run_dir(run).join("stderr.log"));
        let said = last.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let told = format!("{cli} {bounds:?}\n{output}\n{said}");
        assert_eq!(output.code, 0, "{told}");
        assert_eq!(env.task_now(1)["task"]["state"], "done", "{told}");
        assert_eq!(env.read("hello.txt"), "hello world\n", "{told}");
        assert_eq!(env.git(&["status", "--porcelain"]), "", "{told}");
        assert_eq!(env.git(&["log", "--max-count=1", "--name-only", "--format="]), "hello.txt", "{told}");
    }
}

#[track_caller]
fn is_merged(cli: &str, directory: &str) {
    for bounds in ALL_BOUNDS {
        let env = repository().task_of("pull-request", "Greet the world", &[]);
        let stage_env = TestEnv::without_repository();
        let stage = OpenStage::open(&stage_env, SCRIPT);
        configure(&env, cli, directory, &stage, bounds.sandbox);
        let trust: &[&str] = if bounds.trust { &["--trust"] } else { &[] };
        let output = env.run(&[&["work", "--until-idle"], trust].concat());
        let told = format!("{cli} {bounds:?}\n{output}");
        assert_eq!(output.code, 0, "{told}");
        assert_eq!(env.task_now(1)["task"]["state"], "done", "{told}");
        let pull = output.stdout.lines().find_map(|line| line.split_once("git pull ")).unwrap().1;
        let arguments: Vec<&str> = pull.split(' ').collect();
        env.git(&[&["pull", "--quiet"], &arguments[..]].concat());
        assert_eq!(env.read("hello.txt"), "hello world\n", "{told}");
        let files = env.git(&["log", "--name-only", "--format=", "HEAD~1..HEAD"]);
        assert_eq!(files, "hello.txt", "nothing else is in the base\n{told}");
    }
}

#[test]
fn claude_works_in_the_checkout() {
    let Some(directory) = agents() else { return };
    works_in_the_checkout("claude", &directory);
}

#[test]
fn what_claude_did_is_merged() {
    let Some(directory) = agents() else { return };
    is_merged("claude", &directory);
}

#[test]
fn codex_works_in_the_checkout() {
    let Some(directory) = agents() else { return };
    works_in_the_checkout("codex", &directory);
}

#[test]
fn what_codex_did_is_merged() {
    let Some(directory) = agents() else { return };
    is_merged("codex", &directory);
}

#[test]
fn gemini_works_in_the_checkout() {
    let Some(directory) = more_agents() else { return };
    works_in_the_checkout("gemini", &directory);
}

#[test]
fn what_gemini_did_is_merged() {
    let Some(directory) = more_agents() else { return };
    is_merged("gemini", &directory);
}

#[test]
fn opencode_works_in_the_checkout() {
    let Some(directory) = more_agents() else { return };
    works_in_the_checkout("opencode", &directory);
}

#[test]
fn what_opencode_did_is_merged() {
    let Some(directory) = more_agents() else { return };
    is_merged("opencode", &directory);
}
