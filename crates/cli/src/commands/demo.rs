//! `demo`: the main job, whole, in a scratch directory: real git, real store, real processes, a scripted agent.

mod pull_request;
mod timeline;

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, ValueEnum};
use rehearsal_app::command_line::quote;
use rehearsal_app::places::scratch;
use rehearsal_app::project::Project;
use rehearsal_app::session_loop::LoopRequest;
use rehearsal_core::{NewSession, NewTask, SessionName, TaskId};
use rehearsal_engine::WorkSummary;
use rehearsal_store::{Change, RunQuery, Store};
use serde::Serialize;

use super::Done;
use super::run::{exit_of, run_loop};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BOLD, GOOD, styled, table};
use crate::words;
use rehearsal_git::scratch::{commit_all, init_repository};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal demo
  rehearsal demo --flow pull-request     # two agents, a review that rejects once, a merge
  rehearsal demo --keep /tmp/greet

Everything is real but the agents: git, the store, processes, tests. It takes seconds and no tokens.")]
pub(crate) struct DemoArgs {
    /// Which way the tasks go
    #[arg(long, value_enum, default_value_t = DemoFlow::Loop)]
    flow: DemoFlow,
    /// Keep the scratch repository here, to look around in it
    #[arg(long, value_name = "DIR")]
    keep: Option<Utf8PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DemoFlow {
    /// One agent, one task after another, in one checkout
    Loop,
    /// An implementer, a gatekeeper, and a local forge
    PullRequest,
}

#[cfg(all(test, feature = "schema"))]
pub(crate) use pull_request::PullRequestDemo;

/// `demo --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DemoDocument {
    /// The tests before the loop.
    before: TestResult,
    /// The tests after it.
    after: TestResult,
    /// What the loop came to.
    summary: WorkSummary,
    /// Where it happened, if it was kept.
    kept: Option<String>,
}

/// What the little test script said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TestResult {
    passed: usize,
    failed: usize,
}

const TESTS: &str = include_str!("demo/run-tests");
const SCRIPT: &str = include_str!("demo/script.yaml");
const GREET: &str = "#!/bin/sh\necho TODO\n";
const SESSION: &str = "greet";
const TASKS: [(&str, &str); 3] = [
    ("Say hello", "`sh greet.sh` begins with Hello"),
    ("Greet by name", "`sh greet.sh Ada` says Hello, Ada!"),
    ("Tell how to use it", "README.md shows `sh greet.sh NAME`"),
];

pub(crate) async fn run(args: DemoArgs, context: &Context) -> Done {
    let (scratch, _deleted) = scratch("rehearsal-demo-")?;
    let wanted = match &args.keep {
        Some(directory) => {
            let directory = context.directory.join(directory);
            fs_err::create_dir_all(&directory)?;
            if fs_err::read_dir(&directory)?.next().is_some() {
                return Err(
                    CliError::usage(format!("`{directory}` is not empty")).hint("name a new directory")
                );
            }
            Some(directory)
        }
        None => None,
    };
    if args.flow == DemoFlow::PullRequest {
        return pull_request::run(wanted.as_deref().unwrap_or(&scratch), wanted.is_some(), context).await;
    }
    let root = wanted.unwrap_or_else(|| scratch.join("greet"));
    let project = prepare(&root, context).await?;
    let before = run_tests(&root).await?;
    context.ui.say(format!("a scratch repository with a failing test: {}", in_words(before)));
    let store = project.store().await?;
    add_tasks(&project).await?;
    let (summary, interrupted) = run_loop(LoopRequest::default(), false, &project, context).await?;
    let after = run_tests(&root).await?;
    show(&summary, &*store, before, after, &args, context).await?;
    let exit = if after.failed == 0 { exit_of(&summary, interrupted) } else { Exit::Red };
    let kept = args.keep.map(|_| root.to_string());
    context.ui.document(DemoDocument { before, after, summary, kept });
    Ok(exit)
}

/// A tiny real repository, and a configuration whose agent is the stand-in.
async fn prepare(root: &Utf8Path, context: &Context) -> Result<Project, CliError> {
    fs_err::create_dir_all(root.join(".rehearsal"))?;
    fs_err::write(root.join("greet.sh"), GREET)?;
    fs_err::write(root.join("run-tests"), TESTS)?;
    fs_err::write(root.join("README.md"), "# greet\n")?;
    fs_err::write(root.join(".rehearsal/agent.yaml"), SCRIPT)?;
    let program = std::env::current_exe()?;
    let config = format!(
        "agents:\n  implementer:\n    driver: claude\n    program: {}\n    args: [mock-agent, --as, claude, --script, .rehearsal/agent.yaml]\n    env: {{ REHEARSAL_MOCK_STATE: .git/agent.calls }}\ntesting:\n  command: sh run-tests\n",
        serde_json::to_string(&program.display().to_string()).map_err(std::io::Error::other)?
    );
    fs_err::write(root.join(".rehearsal/config.yaml"), config)?;
    init_repository(root).await?;
    commit_all(root, "A greeting to be").await?;
    Ok(Project::at(root, context))
}

async fn add_tasks(project: &Project) -> Result<(), CliError> {
    let name = SessionName::new(SESSION)?;
    let flow = Arc::new(project.loop_flow()?);
    let tasks = TASKS.iter().map(|(title, criterion)| {
        let task = NewTask {
            session: Some(name.clone()),
            title: (*title).into(),
            criteria: vec![(*criterion).into()],
            ..NewTask::default()
        };
        (TaskId::from_random(rehearsal_engine::random_bits()), task)
    });
    let session = NewSession {
        name: name.clone(),
        description: "A script that greets people".into(),
        context: String::new(),
        criteria: Vec::new(),
    };
    let changes = vec![Change::AddSession(session), Change::AddTasks { tasks: tasks.collect(), flow }];
    project.commit(changes).await?;
    Ok(())
}

async fn run_tests(root: &Utf8Path) -> Result<TestResult, CliError> {
    let output = rehearsal_process::Command::new("sh", root).args(["run-tests"]).run().await;
    let output = output.map_err(|error| CliError::of(Exit::Internal, &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let count = |mark: &str| text.lines().filter(|line| line.starts_with(mark)).count();
    Ok(TestResult { passed: count("ok "), failed: count("FAIL ") })
}

fn in_words(tests: TestResult) -> String {
    format!("{} passed, {} failed", tests.passed, tests.failed)
}

async fn show(
    summary: &WorkSummary,
    store: &dyn Store,
    before: TestResult,
    after: TestResult,
    args: &DemoArgs,
    context: &Context,
) -> Result<(), CliError> {
    let ui = context.ui;
    let runs = store.runs(&RunQuery::default()).await?;
    let commits_of = |task: &rehearsal_core::Task| {
        let of_task = runs.iter().filter(|run| run.start.task == task.id).filter_map(|run| run.end.as_ref());
        let commits: Vec<String> = of_task
            .flat_map(|end| &end.commits)
            .map(|commit| format!("{:.7} {}", commit.id, commit.subject))
            .collect();
        commits.join(", ")
    };
    let rows: Vec<Vec<String>> = summary
        .tasks
        .iter()
        .map(|task| vec![task.title.clone(), task.status().to_owned(), commits_of(task)])
        .collect();
    ui.say(format!("\n{}", table(&["TASK", "STATUS", "COMMITS"], &rows)));
    ui.say(format!("\ntests before: {}", in_words(before)));
    ui.say(format!(
        "tests after:  {}",
        styled(if after.failed == 0 { GOOD } else { crate::ui::BAD }, in_words(after))
    ));
    ui.say(format!(
        "{} in {}, cost {} (the agent was scripted: no tokens)",
        words::count(u64::from(summary.iterations), "iteration"),
        words::duration(Duration::from_millis(summary.duration_ms)),
        words::cost(summary.cost_usd),
    ));
    ui.say(format!("\n{}", styled(BOLD, "Now in a repository of yours:")));
    ui.say("  rehearsal init                                   # look around, write a configuration");
    ui.say("  rehearsal session new work -d 'What it is about'");
    ui.say("  rehearsal task add 'The first thing to do'");
    ui.say("  rehearsal run work --dry-run                     # the prompt and the command, nothing runs");
    ui.say("  rehearsal run work");
    match &args.keep {
        Some(directory) => ui.say(format!(
            "\nThe scratch repository is in {directory}: try `rehearsal --repo {} runs list` there.",
            quote(directory.as_str()),
        )),
        None => ui.say("\n`rehearsal demo --keep DIR` keeps the scratch repository to look around in."),
    }
    Ok(())
}
