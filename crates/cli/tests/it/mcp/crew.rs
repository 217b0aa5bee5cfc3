//! The server as the crew uses it: as that of anybody else.

use rehearsal_core::{RunId, TaskId};
use rehearsal_crew::{CallEnd, Hooks, McpServer, Permissions, Toolbox, Tools, Workplace};
use rehearsal_llm::chat::{Arguments, ToolCall};
use rehearsal_sandbox::Demand;
use tokio_util::sync::CancellationToken;

use super::{RED, repository};
use crate::env::{PROGRAM, TestEnv};

fn workplace(env: &TestEnv) -> Workplace {
    let command = env.command(PROGRAM);
    let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
    // The sandbox of a role has its own temporary directory, where the programs of other tests are not.
    let passes = |name: &std::ffi::OsStr| name != "TMPDIR" && name != "PATH";
    let variables = command.get_envs().filter(|(name, _)| passes(name));
    let variables = variables.filter_map(|(name, value)| Some((text(name), text(value?)))).collect();
    let server = McpServer {
        command: PROGRAM.into(),
        args: vec!["mcp".into()],
        env: variables,
        start_timeout: None,
        trust_annotations: false,
        allow_network: false,
    };
    Workplace {
        role: "qa".into(),
        tools: Vec::new(),
        permissions: Permissions { read: true, write: true, execute: true, ..Permissions::default() },
        worktree: env.repo.clone(),
        task: TaskId::new("task1").unwrap(),
        run: RunId::new("run1").unwrap(),
        run_dir: env.scratch.join("agent"),
        variables: std::env::vars().filter(|(name, _)| name == "PATH").collect(),
        demand: Demand::BestEffort,
        base: None,
        hooks: Hooks::default(),
        mcp: [("rehearsal".to_owned(), server)].into(),
        web_search: None,
        tests: None,
    }
}

#[tokio::test]
async fn the_crew_calls_the_tools_of_our_own_server() {
    let env = repository(RED);
    let toolbox = Toolbox::open(&workplace(&env)).await.unwrap();
    assert!(toolbox.notes().is_empty(), "{:?}", toolbox.notes());
    let names: Vec<String> = toolbox.definitions().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["mcp__rehearsal__run_tests", "mcp__rehearsal__check", "mcp__rehearsal__test_history"]);
    let call = ToolCall {
        id: "1".into(),
        name: names[0].clone(),
        namespace: None,
        arguments: Arguments::read("{}".into()),
        signature: None,
    };
    let called = toolbox.call(&call, &CancellationToken::new()).await;
    assert_eq!(called.end, CallEnd::Done, "{}", called.text);
    assert!(called.text.contains("wrong sum"), "{}", called.text);
}
