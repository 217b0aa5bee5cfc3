//! `demo --flow pull-request`: two scripted agents and a local forge, from a task to a merge.

use std::time::Duration;

use camino::Utf8Path;
use rehearsal_app::command_line::quote;
use rehearsal_app::project::Project;
use rehearsal_app::tasks::{self, TaskRequest};
use rehearsal_app::work::{WorkDocument, WorkRequest, Worked};
use rehearsal_core::FlowName;
use rehearsal_git::Git;
use rehearsal_store::{EventQuery, Store};
use serde::Serialize;

use super::timeline::{Moment, timeline};
use super::{GREET, TestResult, in_words, run_tests};
use crate::commands::Done;
use crate::commands::work::{exit_of, watch, work};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BAD, BOLD, GOOD, harmless, styled};
use crate::words;
use rehearsal_git::scratch::{commit_all, init_repository};

const TESTS: &str = include_str!("run-tests-of-two");
const AGENTS: [(&str, &str); 2] =
    [("implementer", include_str!("implementer.yaml")), ("gatekeeper", include_str!("gatekeeper.yaml"))];

/// `demo --flow pull-request --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PullRequestDemo {
    /// The tests of the base branch before.
    before: TestResult,
    /// The tests of the base branch after.
    after: TestResult,
    /// What happened, in order.
    timeline: Vec<Moment>,
    /// What landed on the base branch, newest first.
    landed: Vec<String>,
    /// What the worker came to.
    work: WorkDocument,
    /// Where it happened, if it was kept.
    kept: Option<String>,
}

pub(super) async fn run(directory: &Utf8Path, keep: bool, context: &Context) -> Done {
    let ui = context.ui;
    let directory = directory.canonicalize_utf8()?;
    let project = prepare(&directory, context).await?;
    let before = run_tests(&project.root).await?;
    ui.say(format!("a scratch repository with failing tests, and a local forge: {}", in_words(before)));
    let store = project.store().await?;
    add_task(&project).await?;
    let request = WorkRequest { until_idle: true, ..WorkRequest::default() };
    let (worked, interrupted) = work(request, watch(false, context), &project, context).await?;
    let landed = landed(&project).await?;
    let after = run_tests(&project.root).await?;
    let demo = PullRequestDemo {
        before,
        after,
        timeline: events_of(&*store).await?,
        landed,
        work: worked.document().await?,
        kept: keep.then(|| directory.to_string()),
    };
    show(&demo, &worked, &project, context);
    let exit = if after.failed == 0 { exit_of(&demo.work, interrupted) } else { Exit::Red };
    ui.document(demo);
    Ok(exit)
}

/// A tiny real repository, a bare one that it is pushed to, and a configuration with two stand-ins.
async fn prepare(directory: &Utf8Path, context: &Context) -> Result<Project, CliError> {
    let (root, origin) = (directory.join("greet"), directory.join("origin.git"));
    fs_err::create_dir_all(root.join(".rehearsal"))?;
    fs_err::write(root.join("greet.sh"), GREET)?;
    fs_err::write(root.join("run-tests"), TESTS)?;
    let program = std::env::current_exe()?.display().to_string();
    let mut config = format!(
        "flow: pull-request\nbase_branch: main\ntesting:\n  command: sh run-tests\nworktrees:\n  directory: {}\nagents:\n",
        quoted(directory.join("worktrees").as_str())?,
    );
    for (name, script) in AGENTS {
        let path = directory.join(format!("{name}.yaml"));
        fs_err::write(&path, script)?;
        config += &format!(
            "  {name}:\n    driver: claude\n    program: {}\n    args: [mock-agent, --as, claude, --script, {}]\n    env: {{ REHEARSAL_MOCK_STATE: {} }}\n    sandbox: off\n",
            quoted(&program)?,
            quoted(path.as_str())?,
            quoted(directory.join(format!("{name}.calls")).as_str())?,
        );
    }
    fs_err::write(root.join(".rehearsal/config.yaml"), config)?;
    init_repository(&root).await?;
    commit_all(&root, "A greeting to be").await?;
    fs_err::create_dir_all(&origin)?;
    let init =
        Git::at(&origin).run(&["init", "--quiet", "--bare", "--template=", "--initial-branch=main"]).await;
    init?;
    let git = Git::at(&root);
    for args in [["remote", "add", "origin", origin.as_str()], ["push", "--quiet", "origin", "main"]] {
        git.run(&args).await?;
    }
    Ok(Project::at(&root, context))
}

/// As YAML has it; JSON is a part of that.
fn quoted(text: &str) -> Result<String, CliError> {
    Ok(serde_json::to_string(text).map_err(std::io::Error::other)?)
}

async fn add_task(project: &Project) -> Result<(), CliError> {
    let request = TaskRequest {
        title: "Greet by name".into(),
        criteria: vec!["`sh greet.sh Ada` says Hello, Ada!".into()],
        flow: Some(FlowName::new("pull-request")?),
        ..TaskRequest::default()
    };
    tasks::add(project, request).await?;
    Ok(())
}

async fn events_of(store: &dyn Store) -> Result<Vec<Moment>, CliError> {
    let events = store.events(&EventQuery::default()).await?;
    timeline(&events, store).await
}

/// Brings what was merged into the checkout; its commits, newest first.
async fn landed(project: &Project) -> Result<Vec<String>, CliError> {
    let git = Git::at(&project.root);
    let before = git.line(&["rev-parse", "HEAD"]).await?;
    git.run(&["pull", "--quiet", "--ff-only", "origin", "main"]).await?;
    let range = format!("{before}..HEAD");
    let log = git.line(&["log", "--format=%h %s", &range]).await?;
    Ok(log.lines().map(str::to_owned).collect())
}

fn show(demo: &PullRequestDemo, worked: &Worked, project: &Project, context: &Context) {
    let ui = context.ui;
    ui.say(format!("\n{}", styled(BOLD, "What happened")));
    for moment in &demo.timeline {
        ui.say(harmless(&moment.to_string()));
    }
    ui.say(format!("\n{}", styled(BOLD, "What landed on main")));
    for commit in &demo.landed {
        ui.say(format!("  {}", harmless(commit)));
    }
    ui.say(format!("\ntests before: {}", in_words(demo.before)));
    let style = if demo.after.failed == 0 { GOOD } else { BAD };
    ui.say(format!("tests after:  {}", styled(style, in_words(demo.after))));
    ui.say(format!(
        "{} in {} (the agents were scripted: no tokens)",
        words::count(worked.summary.runs.len() as u64, "run"),
        words::duration(Duration::from_millis(worked.summary.duration_ms)),
    ));
    ui.say(format!("\n{}", styled(BOLD, "Now in a repository of yours:")));
    ui.say("  rehearsal init                                        # look around, write a configuration");
    ui.say("  rehearsal doctor                                      # where work is done, and where it goes");
    ui.say("  rehearsal task add 'The first thing to do' --flow pull-request");
    ui.say("  rehearsal work --until-idle");
    match &demo.kept {
        Some(directory) => ui.say(format!(
            "\nIt is all in {directory}: try `rehearsal --repo {} task list --all` there.",
            quote(project.root.as_str()),
        )),
        None => ui.say("\n`rehearsal demo --flow pull-request --keep DIR` keeps it to look around in."),
    }
}
